// Dialect: registration, the dims attribute, and the helpers on types and constants.

#include "compiler/graph/Constants.h"

#include "compiler/graph/Dialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/graph/Attrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/graph/Types.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/graph/Ops.cpp.inc"

using namespace mlir;

namespace heddle::graph {

void GraphDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/graph/Attrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/graph/Types.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/graph/Ops.cpp.inc"
      >();
}

Attribute DimsAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> sizes;
  auto parseOne = [&]() -> ParseResult {
    SMLoc place = parser.getCurrentLocation();
    APInt number; // read as int64, large negative ones are refused
    OptionalParseResult integer = parser.parseOptionalInteger(number);
    if (integer.has_value()) {
      if (failed(*integer))
        return failure();
      auto value = number.trySExtValue();
      if (!value)
        return parser.emitError(place) << "a size has at most 64 bits";
      sizes.push_back(StringAttr::get(parser.getContext(), std::to_string(*value)));
      return success();
    }
    std::string text;
    if (failed(parser.parseString(&text)))
      return failure();
    auto dim = Dim::parse(text);
    if (!dim)
      return parser.emitError(place) << "'" << text << "' is not a size expression";
    sizes.push_back(StringAttr::get(parser.getContext(), dim->str()));
    return success();
  };
  if (failed(parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseOne)))
    return {};
  return DimsAttr::get(parser.getContext(), sizes);
}

void DimsAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getSizes(), printer, [&](StringAttr size) {
    int64_t number;
    if (size.getValue().getAsInteger(10, number))
      printer << size;
    else
      printer << number;
  });
  printer << ">";
}

LogicalResult DimsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  if (getSizes().size() != shape.size())
    return emitError() << "#graph.dims has " << getSizes().size() << " sizes, the tensor has rank "
                       << shape.size();
  for (auto [size, extent] : llvm::zip(getSizes(), shape)) {
    int64_t number = ShapedType::kDynamic;
    bool isNumber = !size.getValue().getAsInteger(10, number) && number >= 0;
    if (isNumber != !ShapedType::isDynamic(extent) || (isNumber && number != extent))
      return emitError() << "#graph.dims says '" << size.getValue()
                         << "' where the shape of the tensor says otherwise";
  }
  return success();
}

/// The Dim of a text. Few texts are read very often, while groups are made above all.
static const Dim &parsed(StringRef text) {
  constexpr size_t kMost = 1 << 14;
  thread_local llvm::StringMap<Dim> known;
  if (known.size() > kMost)
    known.clear();
  auto [place, isNew] = known.try_emplace(text);
  if (isNew)
    place->second = *Dim::parse(text);
  return place->second;
}

DimVector dimsOf(DimsAttr attr) {
  DimVector dims;
  for (StringAttr size : attr.getSizes())
    dims.push_back(parsed(size.getValue()));
  return dims;
}

DimVector dimsOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (auto named = dyn_cast_or_null<DimsAttr>(tensor.getEncoding()))
    return dimsOf(named);
  DimVector dims;
  for (int64_t extent : tensor.getShape())
    dims.push_back(ShapedType::isDynamic(extent) ? Dim::tooLarge() : Dim(extent));
  return dims;
}

bool hasNamedSizes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.hasStaticShape() || isa_and_nonnull<DimsAttr>(tensor.getEncoding());
}

DimsAttr dimsAttr(MLIRContext *context, ArrayRef<Dim> dims) {
  SmallVector<StringAttr> sizes;
  for (const Dim &dim : dims)
    sizes.push_back(StringAttr::get(context, dim.str()));
  return DimsAttr::get(context, sizes);
}

RankedTensorType tensorOf(MLIRContext *context, ArrayRef<Dim> dims, Type element) {
  SmallVector<int64_t> shape;
  bool isDynamic = false;
  for (const Dim &dim : dims) {
    auto constant = dim.constant();
    // MLIR knows no negative sizes; where a shape rule makes one, only the text says it.
    bool isSize = constant && *constant >= 0;
    isDynamic |= !isSize;
    shape.push_back(isSize ? *constant : ShapedType::kDynamic);
  }
  return RankedTensorType::get(shape, element, isDynamic ? dimsAttr(context, dims) : Attribute());
}

RankedTensorType listTensor(MLIRContext *context, StringRef kind, Type element, int64_t rank) {
  return RankedTensorType::get({}, ListType::get(context, kind, element, rank));
}

Dim freshSymbol(Operation *anchor, StringRef stem) {
  Operation *top = anchor;
  while (top->getParentOp())
    top = top->getParentOp();
  int64_t next = 0;
  if (auto counter = top->getAttrOfType<IntegerAttr>(GraphDialect::kSymbolCounter))
    next = counter.getInt();
  Builder builder(top->getContext());
  top->setAttr(GraphDialect::kSymbolCounter, builder.getI64IntegerAttr(next + 1));
  return Dim::symbol(("$" + stem + "." + Twine(next)).str());
}

Type storageOf(Type element) {
  MLIRContext *context = element.getContext();
  if (isFloat4(element))
    return IntegerType::get(context, 4, IntegerType::Unsigned);
  if (isFloat8Scale(element))
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  return isString(element) ? IntegerType::get(context, 64) : element;
}

int64_t bytesOf(Type element) {
  if (isa<ListType>(element))
    return sizeof(void *);
  return std::max<int64_t>(1, llvm::divideCeil(storageOf(element).getIntOrFloatBitWidth(), 8));
}

ElementsAttr codesOf(ElementsAttr value) {
  auto bits = dyn_cast<BitsAttr>(value);
  return bits ? bits.getCodes() : value;
}

ElementsAttr constantAttr(RankedTensorType type, ElementsAttr codes) {
  if (!isBits(type.getElementType()))
    return codes;
  return BitsAttr::get(type.getContext(), type, codes);
}

/// The tensor type of the codes of a constant.
static RankedTensorType codesType(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), storageOf(type.getElementType()));
}

ArrayRef<char> constantBytes(ElementsAttr value, std::vector<char> &storage) {
  value = codesOf(value);
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    return resource.getRawHandle().getBlob()->getData();
  if (auto stored = dyn_cast<StoredAttr>(value)) {
    storage = storedBytes(stored);
    return storage;
  }
  auto dense = cast<DenseElementsAttr>(value);
  int64_t width = bytesOf(dense.getElementType()), count = dense.getNumElements();
  storage.resize(width * count);
  auto write = [&](int64_t i, APInt bits) {
    uint64_t word = bits.zextOrTrunc(64).getZExtValue();
    std::memcpy(storage.data() + i * width, &word, width);
  };
  int64_t i = 0;
  if (isa<FloatType>(dense.getElementType()))
    for (APFloat element : dense.getValues<APFloat>())
      write(i++, element.bitcastToAPInt());
  else
    for (APInt element : dense.getValues<APInt>())
      write(i++, element);
  return storage;
}

static constexpr int64_t kPrintedElements = 64;

ElementsAttr constantAttr(RankedTensorType type, ArrayRef<char> bytes) {
  Type element = type.getElementType();
  if (isBits(element))
    return constantAttr(type, constantAttr(codesType(type), bytes));
  int64_t width = bytesOf(element), count = type.getNumElements();
  if (count > kPrintedElements)
    return DenseResourceElementsAttr::get(type, "constant",
                                          HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, 64));
  unsigned bits = element.getIntOrFloatBitWidth();
  auto read = [&](int64_t i) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * width, width);
    return APInt(64, word).zextOrTrunc(bits);
  };
  if (auto floating = dyn_cast<FloatType>(element)) {
    SmallVector<APFloat> values;
    for (int64_t i = 0; i < count; ++i)
      values.emplace_back(floating.getFloatSemantics(), read(i));
    return DenseElementsAttr::get(type, values);
  }
  SmallVector<APInt> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(read(i));
  return DenseElementsAttr::get(type, values);
}

ElementsAttr mappedConstantAttr(RankedTensorType type, ArrayRef<char> bytes, StringRef name) {
  if (type.getNumElements() <= kPrintedElements)
    return constantAttr(type, bytes);
  return constantAttr(type, DenseResourceElementsAttr::get(
                                codesType(type), name.empty() ? StringRef("constant") : name,
                                UnmanagedAsmResourceBlob::allocateWithAlign(bytes, 1)));
}

std::optional<SmallVector<int64_t>> constantIntegers(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  Type type = storageOf(value);
  if (!constant || !isa<IntegerType>(type))
    return std::nullopt;
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(constant.getValue(), storage);
  int64_t width = bytesOf(type);
  unsigned bits = type.getIntOrFloatBitWidth();
  SmallVector<int64_t> integers;
  for (size_t i = 0; i < bytes.size(); i += width) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, width);
    APInt element = APInt(64, word).zextOrTrunc(bits);
    bool isUnsigned = type.isUnsignedInteger() || bits == 1;
    integers.push_back(isUnsigned ? element.getZExtValue() : element.getSExtValue());
  }
  return integers;
}

int32_t onnxTypeOf(Type type) {
  if (type.isF32())
    return 1;
  if (type.isF64())
    return 11;
  if (type.isF16())
    return 10;
  if (type.isBF16())
    return 16;
  if (type.isFloat8E4M3FN())
    return 17;
  if (type.isFloat8E4M3FNUZ())
    return 18;
  if (type.isFloat8E5M2())
    return 19;
  if (type.isFloat8E5M2FNUZ())
    return 20;
  if (isString(type))
    return 8;
  if (isFloat4(type))
    return 23;
  if (isFloat8Scale(type))
    return 24;
  if (auto list = dyn_cast<ListType>(type))
    return onnxTypeOf(list.getElement());
  bool isUnsigned = type.isUnsignedInteger();
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return 9;
  case 2:
    return isUnsigned ? 25 : 26;
  case 4:
    return isUnsigned ? 21 : 22;
  case 8:
    return isUnsigned ? 2 : 3;
  case 16:
    return isUnsigned ? 4 : 5;
  case 32:
    return isUnsigned ? 12 : 6;
  default:
    return isUnsigned ? 13 : 7;
  }
}

std::string sourceName(Location location) {
  if (auto named = dyn_cast<NameLoc>(location))
    return named.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (std::string name = sourceName(part); !name.empty())
        return name;
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return (file.getFilename().getValue() + ":" + Twine(file.getLine())).str();
  return "";
}

} // namespace heddle::graph
