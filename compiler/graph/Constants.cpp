// Constants: numbers of constant tensors.

#include "compiler/graph/Constants.h"

using namespace mlir;

namespace heddle::graph {

static constexpr int kDepthLimit = 8;

std::optional<double> elementAt(ArrayRef<char> bytes, Type element, int64_t i) {
  int64_t width = bytesOf(element);
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + i * width, width);
  APInt bits = APInt(64, word).trunc(element.getIntOrFloatBitWidth());
  if (auto floating = dyn_cast<FloatType>(element))
    return APFloat(floating.getFloatSemantics(), bits).convertToDouble();
  bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  constexpr int64_t kExact = int64_t(1) << 53;
  if (isUnsigned)
    return bits.ugt(kExact) ? std::nullopt : std::optional<double>(bits.getZExtValue());
  int64_t number = bits.getSExtValue();
  return number > kExact || number < -kExact ? std::nullopt : std::optional<double>(number);
}

std::optional<double> splatOf(Value value) {
  for (int depth = 0; depth < kDepthLimit; ++depth) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return std::nullopt;
    if (!isa<BroadcastOp, ReshapeOp, TransposeOp, SliceOp>(op))
      break;
    value = op->getOperand(0);
  }
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant || !elementOf(value).isIntOrFloat())
    return std::nullopt;
  std::vector<char> storage;
  if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()); dense && dense.isSplat())
    return elementAt(constantBytes(dense.resizeSplat(cast<ShapedType>(
                                       RankedTensorType::get({}, dense.getElementType()))),
                                   storage),
                     dense.getElementType(), 0);
  ArrayRef<char> bytes = constantBytes(constant.getValue(), storage);
  size_t width = bytesOf(elementOf(value));
  // All elements are equal when the bytes equal themselves one element further on.
  if (bytes.size() < width ||
      std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) != 0)
    return std::nullopt;
  return elementAt(bytes, elementOf(value), 0);
}

} // namespace heddle::graph
