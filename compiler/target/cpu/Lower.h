// Lower: kernels in program, scf, arith, math and vector become the LLVM dialect.
#ifndef HEDDLE_TARGET_CPU_LOWER_H
#define HEDDLE_TARGET_CPU_LOWER_H

#include "compiler/target/cpu/Target.h"
#include "compiler/target/cpu/math/FloatMath.h"

namespace heddle::cpu {

/// Leaves only the LLVM dialect in `module`. The target decides what has an instruction.
llvm::Error lowerToLLVM(mlir::ModuleOp module, const Target &target);

/// For heddle-opt: each pass by itself.
void registerPasses();

/// Lowers ops of the program dialect in a function, and their types, to those of LLVM, the offsets
/// in heddle_call_t, and the target's own instructions.
mlir::LogicalResult lowerProgram(mlir::func::FuncOp function, const Target &target);

/// math on f32, scalars and vectors, by short polynomials.
void populateExpPatterns(mlir::RewritePatternSet &patterns, Scaling scaling);
void populateTrigonometryPatterns(mlir::RewritePatternSet &patterns);
void populatePowerPatterns(mlir::RewritePatternSet &patterns);
/// remf, also of f64.
void populateRemainderPatterns(mlir::RewritePatternSet &patterns);
/// Maximum and minimum, also of f64.
void populateExtremesPatterns(mlir::RewritePatternSet &patterns);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_LOWER_H
