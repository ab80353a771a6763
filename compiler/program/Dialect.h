// Program: the dialect in which kernels and the program around them are written, beside func,
// arith, scf, vector and math. Its ops are described in Memory.td, Run.td and Values.td.
#ifndef HEDDLE_PROGRAM_DIALECT_H
#define HEDDLE_PROGRAM_DIALECT_H

#include "compiler/Prelude.h"

#include "compiler/program/Dialect.h.inc"
#include "compiler/program/Enums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/program/Types.h.inc"
#define GET_OP_CLASSES
#include "compiler/program/Ops.h.inc"

namespace heddle::program {

/// Unit attribute of a function that is copied to where it is called.
inline constexpr llvm::StringLiteral kInline = "program.inline";

inline PtrType pointerType(mlir::MLIRContext *context) { return PtrType::get(context); }

/// The type of a kernel's functions, of which program.launch runs one.
mlir::FunctionType kernelType(mlir::MLIRContext *context);

} // namespace heddle::program

#endif // HEDDLE_PROGRAM_DIALECT_H
