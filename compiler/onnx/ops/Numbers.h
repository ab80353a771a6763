// Numbers: lists and sizes as constants of an element type, for ops that compute with them.
#ifndef HEDDLE_ONNX_NUMBERS_H
#define HEDDLE_ONNX_NUMBERS_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

/// A constant of a floating-point type from its elements in row-major order.
Value numbers(Emitter &e, llvm::ArrayRef<double> values, llvm::ArrayRef<int64_t> shape,
              Type element);
/// A size as a scalar of `element`.
Value sizeNumber(Emitter &e, const Dim &size, Type element);
bool isFloat(Value x);
/// The numbers from 0 to count - 1 as a vector.
Value countUp(Emitter &e, const Dim &count, Type element);
/// The numbers from 0 to the scalar `count` - 1, as i64; the run refuses a negative one.
Value countUpTo(Emitter &e, Value count, llvm::StringRef what);
/// Element i of a vector as a scalar.
Value elementAt(Emitter &e, Value vector, int64_t i);
/// x clamped to [low, high].
Value clampTo(Emitter &e, Value x, Value low, Value high);
/// The reciprocal of a square root of a size.
Value inverseRoot(Emitter &e, const Dim &size, Type element);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_NUMBERS_H
