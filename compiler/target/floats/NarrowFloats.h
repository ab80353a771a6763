// NarrowFloats: f16, bf16 and f8 types for targets that compute in f32.
#ifndef HEDDLE_TARGET_FLOATS_NARROWFLOATS_H
#define HEDDLE_TARGET_FLOATS_NARROWFLOATS_H

#include "compiler/Prelude.h"

namespace heddle::target {

/// Arithmetic on f16, bf16 and f8 types is done in f32, and their conversions with integers, but
/// those between f16 and f32 where the target has instructions (`convertsHalves`). Factors of
/// products (program.factor) become bf16 by instructions where `roundsFactors`.
void populateNarrowFloatPatterns(mlir::RewritePatternSet &patterns, bool convertsHalves,
                                 bool roundsFactors = false);

/// Applies the patterns below `root` until none fits; blocks stay as they are.
mlir::LogicalResult applyAll(mlir::Operation *root, const mlir::FrozenRewritePatternSet &patterns);

} // namespace heddle::target

#endif // HEDDLE_TARGET_FLOATS_NARROWFLOATS_H
