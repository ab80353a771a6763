// Numbers: lists and sizes as constants.

#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

Value numbers(Emitter &e, ArrayRef<double> values, ArrayRef<int64_t> shape, Type element) {
  auto floating = dyn_cast<FloatType>(element);
  if (!floating)
    refuse("elements must be floating point here, but are " + nameOf(element));
  int64_t width = bytesOf(element);
  std::vector<char> bytes(values.size() * width);
  for (auto [i, value] : llvm::enumerate(values)) {
    llvm::APFloat number(value);
    bool loses;
    number.convert(floating.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &loses);
    uint64_t word = number.bitcastToAPInt().getZExtValue();
    std::memcpy(bytes.data() + i * width, &word, width);
  }
  return e.constant(constantAttr(RankedTensorType::get(shape, element), bytes));
}

Value sizeNumber(Emitter &e, const Dim &size, Type element) {
  if (auto known = size.constant())
    return isa<FloatType>(element) ? e.scalar(element, static_cast<double>(*known))
                                   : e.integerScalar(element, *known);
  return e.cast(e.size(size), element);
}

bool isFloat(Value x) { return isa<FloatType>(elementOf(x)); }

Value countUp(Emitter &e, const Dim &count, Type element) {
  return e.cast(e.iota({count}, 0, e.i64()), element);
}

Value countUpTo(Emitter &e, Value count, StringRef what) {
  return countUp(e, e.bindSizes(e.reshape(count, {}), what)[0], e.i64());
}

Value elementAt(Emitter &e, Value vector, int64_t i) {
  return e.reshape(e.sliceAlong(vector, 0, Dim(i), Dim(1)), {});
}

Value clampTo(Emitter &e, Value x, Value low, Value high) {
  return e.binary<MinOp>(e.binary<MaxOp>(x, low), high);
}

Value inverseRoot(Emitter &e, const Dim &size, Type element) {
  if (auto known = size.constant())
    return e.scalar(element, 1 / std::sqrt(static_cast<double>(*known)));
  Value one = e.scalar(wideType(e, element), 1);
  return e.cast(e.div(one, e.unary<SqrtOp>(sizeNumber(e, size, elementOf(one)))), element);
}

} // namespace heddle::onnx
