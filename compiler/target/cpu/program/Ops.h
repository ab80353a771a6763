// Ops: the parts of lowerProgram, by what the ops are about. Each is told a builder that
// is before the op.
#ifndef HEDDLE_TARGET_CPU_PROGRAM_OPS_H
#define HEDDLE_TARGET_CPU_PROGRAM_OPS_H

#include "compiler/target/cpu/Target.h"

namespace heddle::cpu {

/// Whether the op is one of memory or of sizes, which then has become LLVM's.
bool lowerMemory(mlir::OpBuilder &b, mlir::Operation *op);
/// Whether the op is one about the run, which then has become calls and accesses through
/// heddle_call_t.
bool lowerRun(mlir::OpBuilder &b, mlir::Operation *op);
/// Whether the op is one that the target has instructions for, which then it has become.
bool lowerVectors(mlir::OpBuilder &b, mlir::Operation *op, const Target &target);

/// Whether the op is a product of matrices in registers, which then has become instructions of AMX.
bool lowerMatrices(mlir::OpBuilder &b, mlir::Operation *op, const Target &target);

/// Sets up the registers of such products where the function begins, if it has any, and releases
/// them where it ends.
mlir::LogicalResult configureMatrices(mlir::func::FuncOp function, const Target &target);

mlir::Type pointerOf(mlir::OpBuilder &b);
mlir::Value numberOf(mlir::OpBuilder &b, mlir::Location loc, int64_t value);
/// `(element *)pointer + index`.
mlir::Value addressOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value pointer,
                      mlir::Type element, mlir::Value index);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_PROGRAM_OPS_H
