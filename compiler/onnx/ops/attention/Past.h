// Past: keys and values of past tokens with those of new ones.
#ifndef HEDDLE_ONNX_PAST_H
#define HEDDLE_ONNX_PAST_H

#include "compiler/onnx/Node.h"
#include "compiler/onnx/Reader.h"

namespace heddle::onnx {

/// x with `fresh` written along the axis, at places [...] that are broadcast to the sizes of fresh
/// up to the axis.
Value writeSlices(Node &n, Value x, Value fresh, int64_t axis, Value places);

/// The buffer that the past lies in and the node extends; null if there is none.
const Buffer *bufferOf(Node &n, Value past);
/// Reads what a buffer holds at the first `size` places of the axis, as numbers of this type.
Value readBuffer(Emitter &e, const Buffer &buffer, int64_t axis, const Dim &size, Type element);
/// Writes `fresh` to a buffer, and reads that in the type of `fresh`.
Value extendBuffer(Node &n, const Buffer &buffer, Value fresh, int64_t axis, Value places,
                   const Dim &size);

/// The past and then `fresh` along the axis; of a past that lies in a buffer, a part of that.
Value appendToPast(Node &n, Value past, Value fresh, int64_t axis);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_PAST_H
