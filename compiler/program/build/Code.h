// Code: a builder of loops over memory and vectors, the vocabulary in which kernels are written.
//
// Sizes, indices and offsets are i64 values and fold as they are made. Memory is reached through
// !program.ptr with a linear element index, so a kernel needs no descriptors and no bufferization.
// A "lane value" is either a scalar (the same in all lanes) or vector<lanes x T>.
#ifndef HEDDLE_PROGRAM_BUILD_CODE_H
#define HEDDLE_PROGRAM_BUILD_CODE_H

#include "compiler/program/Dialect.h"

namespace heddle::program {

using mlir::Type;
using mlir::Value;
using Values = llvm::SmallVector<Value, 6>;

/// The signless type that arithmetic is done in: ui8 -> i8; others as they are.
Type computeType(Type element);
/// The type of an element in memory: i1 and 4-bit types take an i8, 8-bit floats their bits.
Type memoryType(Type element);

class Code {
public:
  Code(mlir::OpBuilder &builder, mlir::Location location, int64_t lanes)
      : b(builder), loc(location), lanes(lanes) {}

  mlir::OpBuilder &b;
  mlir::Location loc;
  int64_t lanes; // of a vector now; 1 makes scalar code

  // Integers.
  Value number(int64_t value);
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value div(Value x, Value y); // floor
  Value rem(Value x, Value y); // of x >= 0
  Value min(Value x, Value y);
  Value max(Value x, Value y);
  Value ceilDiv(Value x, int64_t y) { return div(add(x, number(y - 1)), number(y)); }
  Value less(Value x, Value y); // signed
  Value both(Value x, Value y); // and; either may be null, which holds
  static std::optional<int64_t> constant(Value value);

  // Control.
  using Body = llvm::function_ref<void(Value)>;
  using Step = llvm::function_ref<Values(Value, mlir::ValueRange)>;
  void forEach(Value low, Value high, int64_t step, Body body);
  Values fold(Value low, Value high, int64_t step, mlir::ValueRange initial, Step body);
  Values choose(Value condition, mlir::TypeRange types, llvm::function_ref<Values()> yes,
                llvm::function_ref<Values()> no);
  void when(Value condition, llvm::function_ref<void()> body);

  // Lanes.
  mlir::VectorType vectorOf(Type element) { return mlir::VectorType::get({lanes}, element); }
  static bool isVector(Value value) { return mlir::isa<mlir::VectorType>(value.getType()); }
  Value spread(Value value); // scalar -> vector; a vector stays
  Value laneNumbers();       // vector<lanes x i64>: 0, 1, 2 ...
  Value maskOf(Value count); // lanes below count
  Value reversed(Value vector);
  /// `lanes` vectors as the rows of a square; its columns.
  Values transpose(Values rows);
  /// The sums of `lanes` vectors of floats, a lane each.
  Value sumRows(Values rows);
  /// Vectors of as many lanes, in which the first lanes of all come first, then the second ones.
  Values interleave(mlir::ValueRange rows);
  Value constantOf(Type element, double value);
  Value integerOf(Type element, int64_t value);

  // Memory. `element` is the tensor's element type.
  Value at(Value pointer, Type element, Value index); // address
  Value load(Type element, Value pointer, Value index);
  Value loadLanes(Type element, Value pointer, Value index, Value mask);
  Value gather(Type element, Value pointer, Value indices, Value mask);
  void store(Type element, Value value, Value pointer, Value index);
  void storeLanes(Type element, Value value, Value pointer, Value index, Value mask);
  void scatter(Type element, Value value, Value pointer, Value indices, Value mask);
  void prefetch(Value pointer, Type element, Value index);
  Type pointerType() { return program::pointerType(b.getContext()); }

private:
  std::pair<Value, Value> swapBlocks(Value upper, Value lower, int64_t distance);
  Value fromMemory(Type element, Value raw);
  Value toMemory(Type element, Value value);
};

} // namespace heddle::program

#endif // HEDDLE_PROGRAM_BUILD_CODE_H
