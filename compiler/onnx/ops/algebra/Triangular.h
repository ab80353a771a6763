// Triangular: matrices that are 0 on one side of a diagonal.
#ifndef HEDDLE_ONNX_TRIANGULAR_H
#define HEDDLE_ONNX_TRIANGULAR_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// x [..., m, n] with 0 on the other side of a diagonal, an i64 scalar; null: the main one.
Value triangular(Node &n, Value x, bool isUpper, Value diagonal = {});

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_TRIANGULAR_H
