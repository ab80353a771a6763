// WinogradRule: whether a 3x3 convolution is faster in transformed tiles, their size, and when its
// filters are transformed.
#ifndef HEDDLE_PLAN_WINOGRADRULE_H
#define HEDDLE_PLAN_WINOGRADRULE_H

#include "compiler/graph/Graph.h"
#include "compiler/program/Machine.h"

namespace heddle::plan {

struct WinogradForm {
  /// Rows and columns of pixels of a tile, 2 or 4; 0 if products of the pixels themselves are
  /// faster.
  int64_t tile = 0;
  /// Whether the filters are transformed by each task instead of when the model is compiled.
  bool isLate = false;
};

WinogradForm winogradForm(graph::ConvOp conv, const program::Machine &machine);

} // namespace heddle::plan

#endif // HEDDLE_PLAN_WINOGRADRULE_H
