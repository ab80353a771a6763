// Elements: the value of any tensor of a group at any place, computed where it is asked for.
//
// Each op says once how an element of its result follows from elements of its operands; asking for
// an element of the last op of a group therefore writes the code of the whole group, fused, with no
// intermediate tensor. An index is the same in all lanes, or grows by a constant from lane to lane,
// or is free; from that it follows whether a tensor is read once, as a vector, or gathered.
//
// A schedule overrides this with `bind`: what it has already computed (a sum of the row, the
// accumulators of a product) is not computed again.
#ifndef HEDDLE_LOWER_ELEMENTS_ELEMENTS_H
#define HEDDLE_LOWER_ELEMENTS_ELEMENTS_H

#include "compiler/lower/Kernel.h"

namespace heddle::lower {

struct Index {
  Value base;       // i64: of lane 0
  int64_t step = 0; // lane i is base + i * step
  Value free;       // or vector<lanes x i64>, when not null
  /// Whether a free one's lanes rise, and mostly stay within a vector's length of the first one.
  bool isRising = false;

  bool isUniform() const { return step == 0 && !free; }
  bool operator<(const Index &other) const;
};
using Indices = llvm::SmallVector<Index, 6>;

class Elements {
public:
  /// `group` bounds what is computed: values defined outside of it are read from memory.
  Elements(KernelBuilder &kernel, mlir::Block *group);

  /// A scalar, or a vector when the element differs between lanes.
  Value at(Value tensor, llvm::ArrayRef<Index> place);

  using Source = std::function<Value(llvm::ArrayRef<Index>)>;
  void bind(Value tensor, Source source) { sources[tensor] = std::move(source); }
  void unbind(Value tensor) { sources.erase(tensor); }
  /// Forgets what was computed at code that no longer dominates; call where a new loop body begins.
  struct Scope {
    explicit Scope(Elements &elements) : elements(elements) { elements.memo.emplace_back(); }
    ~Scope() { elements.memo.pop_back(); }
    Elements &elements;
  };

  /// Lanes that count; null means all.
  Value mask;

  /// Stores a lane value of `tensor` (one written to memory) at a place; where it lies inside of
  /// another tensor, there.
  void store(Value tensor, Value value, llvm::ArrayRef<Index> place);
  /// Reads memory laid out row-major with these sizes.
  Value read(Type element, Value pointer, llvm::ArrayRef<Value> sizes, llvm::ArrayRef<Index> place);
  Index linear(llvm::ArrayRef<Value> sizes, llvm::ArrayRef<Index> place);

  Index uniform(Value base) { return {base, 0, {}}; }
  Index shift(const Index &index, Value offset); // + offset
  Index scale(const Index &index, int64_t factor);
  Value lanesOf(const Index &index); // i64 scalar when uniform, else vector
  Index fromLanes(Value value);      // integer lane value of any width -> index
  Values sizesOf(Value tensor);
  mlir::Block *block() const { return group; }

  Code &code() { return kernel.code(); }
  KernelBuilder &kernel;

private:
  friend struct Definitions;
  Value compute(mlir::Operation *op, Value tensor, llvm::ArrayRef<Index> place);
  Value keptFloat(mlir::Operation *op, llvm::ArrayRef<Index> place);
  Value clampedAt(graph::CastOp cast, Value clamped, double zero, llvm::ArrayRef<Index> place);
  Value bounded(mlir::Operation *op, Value x, double bound);
  Value quantised(mlir::Operation *op, llvm::ArrayRef<Index> place);
  void ignoreZeroSign(mlir::Operation *op, Value result);
  Value constantAt(Value tensor, llvm::ArrayRef<Index> place);

  mlir::Block *group;
  llvm::DenseMap<Value, Source> sources;
  std::vector<std::map<std::pair<void *, std::vector<Index>>, Value>> memo;
};

/// The scalar or vector code of an elementwise op. Operands are all scalars or all vectors.
Value emitElementwise(Code &code, mlir::Operation *op, llvm::ArrayRef<Value> operands);

/// The combining op of a reduction (reduce_sum -> addition ...) and its neutral element.
Value combine(Code &code, mlir::Operation *reduction, Value x, Value y);
Value neutral(Code &code, mlir::Operation *reduction, Type element);
/// Whether x is larger (smaller) than y, or NaN where y is none.
Value isBefore(Code &code, Type element, bool descending, Value x, Value y);
/// Reduces the lanes of a vector into a scalar.
Value combineLanes(Code &code, mlir::Operation *reduction, Value vector);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_ELEMENTS_ELEMENTS_H
