// Normalize: the core that layer, instance and group normalisation share.
#ifndef HEDDLE_ONNX_NORMALIZE_H
#define HEDDLE_ONNX_NORMALIZE_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

struct Normalized {
  Value value, mean, inverseDeviation;
};
/// (x - mean) / sqrt(variance + epsilon) over `axes`.
Normalized normalize(Emitter &e, Value x, llvm::ArrayRef<int64_t> axes, double epsilon);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_NORMALIZE_H
