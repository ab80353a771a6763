// Constants: numbers of constant tensors.

#include "compiler/graph/Constants.h"

using namespace mlir;

namespace heddle::graph {

static constexpr int kDepthLimit = 8;

std::optional<double> elementAt(ArrayRef<char> bytes, Type element, int64_t i) {
  if (element.isF32()) { // by far the most frequent, and the fastest so
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
    if (!isRearrangement(op))
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

std::string valueRefusal(ElementsAttr value) {
  value = codesOf(value);
  if (isa<DenseElementsAttr>(value))
    return "";
  if (auto stored = dyn_cast<StoredAttr>(value)) {
    for (ElementsAttr part : {stored.getCodes(), stored.getScales(), stored.getZeros()})
      if (std::string why = part ? valueRefusal(part) : ""; !why.empty())
        return "has a part that " + why;
    return "";
  }
  auto resource = dyn_cast<DenseResourceElementsAttr>(value);
  if (!resource)
    return "is neither dense nor a resource; write it as dense<[...]>";
  AsmResourceBlob *blob = resource.getRawHandle().getBlob();
  if (!blob)
    return "is the resource '" + resource.getRawHandle().getKey().str() +
           "', which the file does not have";
  int64_t wanted = bytesOf(resource.getElementType());
  for (int64_t size : resource.getShapedType().getShape())
    if (llvm::MulOverflow(wanted, size, wanted))
      return "has more than 2^63 - 1 bytes";
  int64_t found = blob->getData().size();
  return found == wanted
             ? ""
             : "takes " + std::to_string(wanted) + " bytes, but the resource '" +
                   resource.getRawHandle().getKey().str() + "' has " + std::to_string(found);
}

/// Whether the type of a part of a stored matrix is a matrix with elements.
static bool isMatrix(ShapedType type) {
  return isa<RankedTensorType>(type) && type.hasStaticShape() && type.getRank() == 2 &&
         type.getDimSize(0) > 0 && type.getDimSize(1) > 0;
}

LogicalResult StoredAttr::verify(function_ref<InFlightDiagnostic()> emitError, ShapedType type,
                                 ElementsAttr codes, ElementsAttr scales, ElementsAttr zeros) {
  // Contents of resources come last in a file: CO1 looks at them.
  for (ElementsAttr part : {codes, scales, zeros})
    if (part && !llvm::isa<DenseElementsAttr, DenseResourceElementsAttr>(part))
      return emitError() << "a part of a stored matrix is neither dense nor a resource";
  ShapedType of = codes.getShapedType();
  Type code = of.getElementType();
  bool isShort = code.isInteger(4) || code.isInteger(8) || code.isF16() || code.isBF16();
  if (!isMatrix(of) || !isShort)
    return emitError() << "codes of a stored matrix are a matrix of integers of 4 or 8 bits or of "
                          "floats of 16 bits, but are of "
                       << of;
  ArrayRef<int64_t> sizes = type.getShape();
  if (!llvm::isa<RankedTensorType>(type) || !type.getElementType().isF32() || sizes.size() < 2 ||
      sizes.take_back(2) != of.getShape() ||
      llvm::any_of(sizes.drop_back(2), [](int64_t size) { return size != 1; }))
    return emitError() << "a stored matrix with codes of " << of
                       << " is of f32 and of their shape, "
                       << "after sizes of 1, but is of " << type;
  for (ElementsAttr part : {scales, zeros}) {
    ShapedType each = part ? part.getShapedType() : ShapedType();
    if (part && (!isMatrix(each) || !each.getElementType().isF32() ||
                 each.getDimSize(1) != of.getDimSize(1) || of.getDimSize(0) % each.getDimSize(0)))
      return emitError()
             << "scales and zeros of a stored matrix are of f32, a row for each of equal "
                "blocks of the rows of "
             << of << ", but one is of " << each;
  }
  if (scales && zeros && scales.getShapedType().getShape() != zeros.getShapedType().getShape())
    return emitError() << "scales and zeros of a stored matrix have one shape, but are of "
                       << scales.getShapedType() << " and " << zeros.getShapedType();
  return success();
}

LogicalResult BitsAttr::verify(function_ref<InFlightDiagnostic()> emitError, ShapedType type,
                               ElementsAttr codes) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || !isBits(tensor.getElementType()))
    return emitError() << "CO2: bits are a static tensor of float4, scale8 or string, but not "
                       << type;
  if (!llvm::isa<DenseElementsAttr, DenseResourceElementsAttr>(codes)) // CO1 looks into them
    return emitError() << "CO2: codes of bits are neither dense nor a resource";
  Type storage = storageOf(tensor.getElementType());
  if (codes.getElementType() != storage || codes.getShapedType().getShape() != tensor.getShape())
    return emitError() << "CO2: bits of " << type << " are kept as " << storage
                       << " in the same shape, but the codes are of " << codes.getShapedType();
  return success();
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
