// StraightThrough: the slope of rounding to integers and back, as quantisation does it: 1 within
// the range of the integers, its ends included, and 0 beyond it and for what is no number (Bengio
// et al., 2013; Jacob et al., CVPR 2018). Any other rounding is flat between its steps.
#ifndef HEDDLE_GRAD_STRAIGHTTHROUGH_H
#define HEDDLE_GRAD_STRAIGHTTHROUGH_H

#include "compiler/grad/Maker.h"

#include <optional>

namespace heddle::grad {

/// cast(cast(min(max(round(x) + zero, least), most)) - zero); both zeros may be missing.
struct Rounding {
  Value x, shifted, least, most; // shifted: round(x) + zero
};

/// The rounding that ends with this cast to floats, if one does.
std::optional<Rounding> roundingBefore(mlir::Operation *op);

/// The adjoint of `rounding.x`, with dy that of the rounding's result.
Value straightThrough(Maker &m, const Rounding &rounding, Value dy);

} // namespace heddle::grad

#endif // HEDDLE_GRAD_STRAIGHTTHROUGH_H
