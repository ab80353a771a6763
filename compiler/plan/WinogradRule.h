// WinogradRule: whether a 3x3 convolution is faster in transformed tiles, and in tiles of which
// size.
#ifndef HEDDLE_PLAN_WINOGRADRULE_H
#define HEDDLE_PLAN_WINOGRADRULE_H

#include "compiler/graph/Graph.h"
#include "compiler/loop/Machine.h"

namespace heddle::plan {

/// Rows and columns of pixels of a tile, 2 or 4; 0 where products of the pixels themselves are
/// faster.
int64_t winogradTile(graph::ConvOp conv, const loop::Machine &machine);

} // namespace heddle::plan

#endif // HEDDLE_PLAN_WINOGRADRULE_H
