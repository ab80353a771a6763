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
/// f32 to i32 by x86's instructions.
void populateConversionPatterns(mlir::RewritePatternSet &patterns);
/// Quotients that are rounded to whole numbers, by fused multiplications and additions where there
/// are some.
void populateQuotientPatterns(mlir::RewritePatternSet &patterns, bool fma);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_LOWER_H
