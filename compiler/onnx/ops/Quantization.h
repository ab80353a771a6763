// Quantization: the three steps that all quantised ops are made of. `axis` is that of vectors of
// scales.
#ifndef HEDDLE_ONNX_QUANTIZATION_H
#define HEDDLE_ONNX_QUANTIZATION_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

/// saturate(round(x / scale) + zero); `zero` may be null.
Value quantize(Emitter &e, Value x, Value scale, Value zero, Type element, int64_t axis);
/// (x - zero) * scale; `zero` may be null.
Value dequantize(Emitter &e, Value x, Value scale, Value zero, int64_t axis);
/// x - zero as i32, exact for integers of 8 and 16 bits; `zero` may be null.
Value minusZero(Emitter &e, Value x, Value zero, int64_t axis);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_QUANTIZATION_H
