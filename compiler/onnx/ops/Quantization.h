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
/// Each entry of x repeated `block` times along `axis`, up to the size `whole`.
Value repeatBlocks(Emitter &e, Value x, int64_t block, int64_t axis, const Dim &whole);
/// x uint8 [..., bytes] as the numbers of `bits` bits in it, the lowest bits first.
Value unpackBits(Emitter &e, Value x, int64_t bits);

struct Quantized {
  Value value, scale, zero;
};
/// x as uint8 over its range, widened to hold 0.
Quantized quantizeDynamically(Emitter &e, Value x);
/// The product of x, quantised dynamically, with the integers b, whose scale and zero point may be
/// vectors of its columns.
Value dynamicProduct(Emitter &e, Value x, Value b, Value scale, Value zero);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_QUANTIZATION_H
