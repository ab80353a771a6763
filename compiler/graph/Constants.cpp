// Constants: numbers of constant tensors.

#include "compiler/graph/Constants.h"

using namespace mlir;

namespace heddle::graph {

static constexpr int kDepthLimit = 8;

std::optional<double> elementAt(ArrayRef<char> bytes, Type element, int64_t i) {
  if (element.isF32()) { // by far the most, and the fastest so
    float number;
    std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
    return number;
  }
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
  // Numbers of a stored matrix would have to be made.
  if (!constant || !elementOf(value).isIntOrFloat() || isa<StoredAttr>(constant.getValue()))
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

std::vector<float> floatsOf(ElementsAttr value) {
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(value, storage);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

int64_t storedSize(StoredAttr stored) {
  int64_t bits = stored.getCodes().getElementType().getIntOrFloatBitWidth();
  int64_t bytes = llvm::divideCeil(stored.getCodes().getNumElements() * bits, 8);
  for (ElementsAttr part : {stored.getScales(), stored.getZeros()})
    if (part)
      bytes += part.getNumElements() * static_cast<int64_t>(sizeof(float));
  return bytes;
}

std::vector<char> storedBytes(StoredAttr stored) {
  int64_t rows = stored.getRows(), columns = stored.getColumns();
  std::vector<char> storage, result(rows * columns * sizeof(float));
  ArrayRef<char> codes = constantBytes(stored.getCodes(), storage);
  std::vector<float> scales, zeros;
  if (stored.getScales())
    scales = floatsOf(stored.getScales());
  if (stored.getZeros())
    zeros = floatsOf(stored.getZeros());
  Type element = stored.getCodes().getElementType();
  int64_t width = bytesOf(element);
  // Codes have 16 bits at most: each is looked up.
  std::vector<float> numbers(size_t(1) << 8 * width);
  for (size_t code = 0; code < numbers.size(); ++code)
    numbers[code] = static_cast<float>(
        *elementAt(ArrayRef(reinterpret_cast<const char *>(&code), sizeof code), element, 0));
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t n = 0; n < columns; ++n) {
      uint16_t code = 0;
      std::memcpy(&code, codes.data() + (k * columns + n) * width, width);
      float number = numbers[code];
      int64_t part = k / stored.getBlock() * columns + n;
      if (!zeros.empty())
        number -= zeros[part];
      if (!scales.empty())
        number *= scales[part];
      std::memcpy(result.data() + (k * columns + n) * sizeof number, &number, sizeof number);
    }
  return result;
}

} // namespace heddle::graph
