// Unfold: convolutions whose filters have sizes known only at run time, as products with all
// windows of the image laid out. Memory grows with the size of the filters.
#ifndef HEDDLE_ONNX_OPS_UNFOLD_H
#define HEDDLE_ONNX_OPS_UNFOLD_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

/// One entry a spatial dimension; negative paddings crop.
struct Sliding {
  Ints strides, dilations;
  DimVector low, high;
  int64_t groups = 1;
};

/// x: [N, C, ...], w: [M, C / groups, ...] -> [N, M, ...].
Value unfoldedConvolution(Emitter &e, Value x, Value w, const Sliding &sliding);
/// x: [N, C, ...], w: [C, M / groups, ...] -> [N, M, ...]: a convolution of x with zeros between
/// its elements and with turned filters.
Value unfoldedTransposedConvolution(Emitter &e, Value x, Value w, const Sliding &sliding);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_OPS_UNFOLD_H
