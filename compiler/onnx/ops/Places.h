// Places: where elements are that fulfil a condition, as many as are found at run time.
#ifndef HEDDLE_ONNX_OPS_PLACES_H
#define HEDDLE_ONNX_OPS_PLACES_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

/// Places of the elements of i1[n] that are true, in order: i64[count].
Value placesOf(Emitter &e, Value flags);
/// The largest or smallest elements along an axis, sorted, and their places (i64).
std::pair<Value, Value> topK(Emitter &e, Value x, int64_t axis, const Dim &count, bool largest);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_OPS_PLACES_H
