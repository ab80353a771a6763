// Printer: functions in the dialects program, scf, arith, math and vector as C99.
//
// Integers are unsigned and wrap; an op that has a sign casts. Floats that C does not have are
// their bits. A vector is a struct of its lanes, and an op on it a loop over them. Memory is read
// and written by memcpy, so that neither alignment nor types of objects matter.
#ifndef HEDDLE_TARGET_C_PRINTER_H
#define HEDDLE_TARGET_C_PRINTER_H

#include "compiler/Prelude.h"
#include "compiler/program/Dialect.h"

#include <map>
#include <set>

namespace heddle::c {

class Printer {
public:
  /// Appends the definition of a function to `functions`. An error names the op.
  llvm::Error print(mlir::func::FuncOp function);
  /// "static void h_kernel(...)", for a declaration.
  std::string signatureOf(mlir::func::FuncOp function);

  std::string functions;
  std::set<std::string> helpers;              // functions of Operators.cpp that are called
  std::map<std::string, std::string> vectors; // type name: its lanes, "float v[4]"

private:
  using Value = mlir::Value;
  using Lane = llvm::function_ref<std::string(llvm::ArrayRef<std::string>)>;

  // Printer.cpp: statements and control flow.
  void block(mlir::Block &block);
  void statement(mlir::Operation *op);
  bool control(mlir::Operation *op);
  void forLoop(mlir::scf::ForOp loop);
  void whileLoop(mlir::scf::WhileOp loop);
  void branch(mlir::scf::IfOp branch);
  void call(mlir::func::CallOp call);
  void assign(mlir::ValueRange targets, mlir::ValueRange values);
  void line(const llvm::Twine &text);
  std::string define(Value value); // "float v3", and gives it the name v3
  std::string nameOf(Value value);
  std::string typeOf(mlir::Type type);
  void unsupported(mlir::Operation *op, const llvm::Twine &why);

  /// One lane of a value, or the scalar that it is.
  std::string laneOf(Value value, llvm::StringRef index);
  /// Each lane of the result is that expression of lanes of the operands.
  void lanes(mlir::Operation *op, Lane expression);
  std::string helper(llvm::StringRef name);
  std::string constant(mlir::Attribute value, mlir::Type type);

  // Arithmetic.cpp
  bool arithmetic(mlir::Operation *op);
  bool integers(mlir::Operation *op);
  bool floats(mlir::Operation *op);
  bool conversions(mlir::Operation *op);
  bool functionsOfMath(mlir::Operation *op);
  void extreme(mlir::Operation *op, bool isMaximum);

  // Memory.cpp
  bool memory(mlir::Operation *op);
  bool maskedMemory(mlir::Operation *op);
  bool values(mlir::Operation *op);
  bool vectorOps(mlir::Operation *op);
  void reduction(mlir::vector::ReductionOp op);
  void shuffle(mlir::vector::ShuffleOp op);
  bool run(mlir::Operation *op);

  llvm::DenseMap<Value, std::string> names;
  int64_t count = 0, depth = 0;
  std::string problem;
};

/// The C function of each name, in an order in which each is after those it calls.
std::string helperText(const std::set<std::string> &names);

/// Literals: "5u", "0x1.8p+1f".
std::string literal(const llvm::APInt &value);
bool isLiteral(const llvm::APFloat &value);
std::string literal(const llvm::APFloat &value);
int64_t lanesOf(mlir::Type type);
/// Bits of an integer, of a float as the integer that has its bits.
unsigned widthOf(mlir::Type type);
/// "uint32_t" for the bits of an element.
std::string unsignedOf(unsigned width);
std::string signedOf(unsigned width);

} // namespace heddle::c

#endif // HEDDLE_TARGET_C_PRINTER_H
