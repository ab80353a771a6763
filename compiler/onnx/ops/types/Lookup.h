// Lookup: values for keys, for ops of all categories.
#ifndef HEDDLE_ONNX_LOOKUP_H
#define HEDDLE_ONNX_LOOKUP_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// For each element of x the one of `values` whose place in the constant vector `keys` holds an
/// equal element, or `otherwise`. Where keys are equal the last one counts.
Value lookUp(Node &n, Value x, Value keys, Value values, Value otherwise);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_LOOKUP_H
