// Products: matrix and convolution helpers that quantised and fused ops share with the plain ones.
#ifndef HEDDLE_ONNX_PRODUCTS_H
#define HEDDLE_ONNX_PRODUCTS_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// Window attributes, one entry a spatial dimension.
struct Window {
  DimVector size;
  Ints strides, dilations, low, high;
  DimVector symbolicLow, symbolicHigh; // SAME padding of sizes that are not constant
};
/// Refuses entries of an attribute that are 0 or less.
void requirePositive(llvm::StringRef name, llvm::ArrayRef<int64_t> values);
/// The windows of `size` over `sizes`, as the node's attributes describe them.
Window readWindow(Node &n, DimVector size, llvm::ArrayRef<Dim> sizes);
/// How many windows fit, a dimension; `sizes` hold the symbolic padding already.
DimVector pooledSizes(llvm::ArrayRef<Dim> sizes, const Window &window, bool ceiling);
/// Indices, in the whole of x, of the largest element of each window of a MaxPool.
Value maxPlaces(Node &n, Value x);

Value transposeMatrix(Emitter &e, Value x);
/// The convolution that the node's attributes describe (auto_pad, dilations, group, ...), without
/// bias.
Value convolve(Node &n, Value x, Value w);
/// A pool of the given kind with the node's window attributes.
Value poolWindows(Node &n, Value x, llvm::StringRef kind, bool channelsLast);
/// x + bias along the channels, dimension 1.
Value addChannelBias(Emitter &e, Value x, Value bias);
/// Axes of all spatial dimensions.
Ints spatialAxes(Value x, bool channelsLast = false);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_PRODUCTS_H
