// FilterGradient: what those who choose and carry out a gradient of filters ask of it.
#ifndef HEDDLE_MECHANISM_FILTERGRADIENT_H
#define HEDDLE_MECHANISM_FILTERGRADIENT_H

#include "compiler/graph/Graph.h"

namespace heddle::mechanism {

/// Whether each position of dy meets the pixel of its own place only.
bool meetsOnePixel(graph::ConvFilterGradientOp op);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_FILTERGRADIENT_H
