// Phases: a transposed convolution as one convolution of stride 1 for each phase of its result.
#ifndef HEDDLE_SIMPLIFY_CONVOLUTION_PHASES_H
#define HEDDLE_SIMPLIFY_CONVOLUTION_PHASES_H

#include "compiler/graph/Graph.h"

namespace heddle::simplify {

/// The result of a channels-last op, of any groups; null if a phase would begin or end within
/// x, which borders cannot say, and for dilations with strides.
mlir::Value convolvePhases(mlir::OpBuilder &builder, graph::ConvTransposeOp op);

} // namespace heddle::simplify

#endif // HEDDLE_SIMPLIFY_CONVOLUTION_PHASES_H
