// Places: where elements are that fulfil a condition, as many as the run finds.
#ifndef HEDDLE_ONNX_OPS_PLACES_H
#define HEDDLE_ONNX_OPS_PLACES_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

/// Places of the elements of i1[n] that are true, in order: i64[count].
Value placesOf(Emitter &e, Value flags);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_OPS_PLACES_H
