// Block: what a task computes of the gradient of filters, a part of it at a time.
#ifndef HEDDLE_LOWER_GRADIENT_BLOCK_H
#define HEDDLE_LOWER_GRADIENT_BLOCK_H

#include "compiler/lower/gradient/Lines.h"

namespace heddle::lower {

/// Channels [low, high) of a group, by a panel of its filters at a time.
struct GradientBlock {
  Value group, panel, low, high;
  Value sums; // pointer to [panels][high - low][places][n], or to those of a panel
};
/// Channels from one on at one place of the window.
struct GradientTile {
  Value channel, place;
  int64_t rows;
};
/// Counted from its line's first.
struct LineColumn {
  Value line, number;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_GRADIENT_BLOCK_H
