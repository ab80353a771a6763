// Sampling: values of an image at places between its pixels.
#ifndef HEDDLE_ONNX_SAMPLING_H
#define HEDDLE_ONNX_SAMPLING_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

enum class Interpolation { Nearest, Linear, Cubic };
enum class Outside { Zeros, Border, Reflection };

struct SampleRule {
  Interpolation interpolation = Interpolation::Linear;
  Outside outside = Outside::Zeros;
  bool alignsCorners = true; // reflects at the centres of the border pixels
};

/// Values of x [n, channels, sizes...] at places [n, count], one tensor of pixel coordinates a
/// spatial dimension: [n, channels, count]. All are of one floating-point type.
Value sampleImage(Emitter &e, Value x, llvm::ArrayRef<Value> places, const SampleRule &rule);
/// Keys' cubic convolution as a function of the distance, which is at most 2.
Value cubicWeight(Emitter &e, Value distance, double coefficient);
/// Row-major strides of sizes, as i64 scalars.
llvm::SmallVector<Value> stridesOf(Emitter &e, llvm::ArrayRef<graph::Dim> sizes);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_SAMPLING_H
