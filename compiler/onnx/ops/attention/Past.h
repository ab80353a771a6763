// Past: keys and values of past tokens with those of new ones.
#ifndef HEDDLE_ONNX_PAST_H
#define HEDDLE_ONNX_PAST_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// The buffer with `fresh` written along the axis, at places that are broadcast to the sizes of
/// fresh up to the axis.
Value extendBuffer(Node &n, Value buffer, Value fresh, int64_t axis, Value places);

/// The past and then `fresh` along the axis; of a past that lies in a buffer, a part of that.
Value appendToPast(Node &n, Value past, Value fresh, int64_t axis);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_PAST_H
