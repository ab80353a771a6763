// Lookup: values for keys, for ops of all categories.
#ifndef HEDDLE_ONNX_LOOKUP_H
#define HEDDLE_ONNX_LOOKUP_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// The element of `values` at the place of each element of x in the constant vector `keys`, or
/// `otherwise`. The last of equal keys counts.
Value lookUp(Node &n, Value x, Value keys, Value values, Value otherwise);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_LOOKUP_H
