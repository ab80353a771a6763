// Program: the dialect in which kernels and the program around them are written, beside func,
// arith, scf, vector and math. Its ops are described in Memory.td, Run.td and Values.td.
#ifndef HEDDLE_PROGRAM_DIALECT_H
#define HEDDLE_PROGRAM_DIALECT_H

#include "compiler/Prelude.h"

#include "compiler/program/Dialect.h.inc"
#include "compiler/program/Enums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/program/Types.h.inc"

namespace heddle::program {
/// The space of a pointer's type in the text of an op: nothing, or `in "npu"`.
mlir::ParseResult parseSpace(mlir::OpAsmParser &parser, mlir::Type &type);
void printSpace(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Type type);
} // namespace heddle::program

#define GET_OP_CLASSES
#include "compiler/program/Ops.h.inc"

namespace heddle::program {

/// Unit attribute of a function that is copied to where it is called.
inline constexpr llvm::StringLiteral kInline = "program.inline";
/// Attribute of an arith.truncf whose result is a factor of a product: subnormal numbers may become
/// 0, which they count as there.
inline constexpr llvm::StringLiteral kFactor = "program.factor";
/// Attribute of an arith.divf whose quotient is NaN or below 2^16 in size, and is then rounded to a
/// whole number: one that rounds to 0 may be any other that does.
inline constexpr llvm::StringLiteral kSteps = "program.steps";

/// Attribute of a function that a device runs: words of its arguments.
inline constexpr llvm::StringLiteral kWords = "program.words";
/// Attribute of such a function: threads that carry out a task together, its team; one without.
inline constexpr llvm::StringLiteral kThreads = "program.threads";
/// Threads of the team of a function.
int64_t threadsOf(mlir::func::FuncOp function);

inline PtrType pointerType(mlir::MLIRContext *context, llvm::StringRef space = "") {
  return PtrType::get(context, space);
}

/// The type of a kernel's functions, of which program.launch runs one, for a device whose memory is
/// of this space.
mlir::FunctionType kernelType(mlir::MLIRContext *context, llvm::StringRef space = "");
/// The space of a function of such a type.
llvm::StringRef spaceOf(mlir::func::FuncOp kernel);
/// A space that ops below `root`, or types of functions, name beside the host's; "" if none does.
llvm::StringRef otherSpaceIn(mlir::Operation *root);

} // namespace heddle::program

#endif // HEDDLE_PROGRAM_DIALECT_H
