// Tensor: the four ways in which a TensorProto may hold its elements, each checked against its
// shape.

#include "compiler/onnx/Tensor.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace heddle::onnx {

using Proto = proto::TensorProto;

Type elementType(MLIRContext *context, int dataType) {
  auto integer = [&](unsigned width, bool isUnsigned = false) {
    return IntegerType::get(context, width,
                            isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
  };
  // Numbers, not names: an onnx.proto may be older than the newest types.
  switch (dataType) {
  case 1:
    return Float32Type::get(context);
  case 2:
    return integer(8, true);
  case 3:
    return integer(8);
  case 4:
    return integer(16, true);
  case 5:
    return integer(16);
  case 6:
    return integer(32);
  case 7:
    return integer(64);
  case 8:
    return graph::StringType::get(context);
  case 9:
    return integer(1);
  case 10:
    return Float16Type::get(context);
  case 11:
    return Float64Type::get(context);
  case 12:
    return integer(32, true);
  case 13:
    return integer(64, true);
  case 16:
    return BFloat16Type::get(context);
  case 17:
    return Float8E4M3FNType::get(context);
  case 18:
    return Float8E4M3FNUZType::get(context);
  case 19:
    return Float8E5M2Type::get(context);
  case 20:
    return Float8E5M2FNUZType::get(context);
  case 21:
    return integer(4, true);
  case 22:
    return integer(4);
  case 23:
    return graph::Float4Type::get(context);
  case 24:
    return graph::Scale8Type::get(context);
  case 25:
    return integer(2, true);
  case 26:
    return integer(2);
  default:
    return {};
  }
}

std::string dataTypeName(int dataType) {
  return proto::TensorProto_DataType_IsValid(dataType)
             ? proto::TensorProto_DataType_Name(static_cast<proto::TensorProto_DataType>(dataType))
             : "number " + std::to_string(dataType);
}

static int64_t countElements(const Proto &tensor) {
  int64_t count = 1;
  for (int64_t dim : tensor.dims()) {
    if (dim < 0)
      refuse("a size of the tensor is " + Twine(dim) + ", but must not be negative");
    if (__builtin_mul_overflow(count, dim, &count) || count > INT64_MAX / 16)
      refuse("the sizes of the tensor multiply to more elements than can be counted");
  }
  return count;
}

/// Bytes in the file of `count` elements.
static int64_t packedBytes(Type element, int64_t count) {
  unsigned width = element.getIntOrFloatBitWidth();
  return width == 1 ? count : llvm::divideCeil(count * width, 8);
}

/// One byte an element from elements of 2 or 4 bits.
static std::vector<char> unpack(ArrayRef<char> packed, Type element, int64_t count) {
  unsigned width = element.getIntOrFloatBitWidth(), each = 8 / width;
  std::vector<char> bytes(count);
  for (int64_t i = 0; i < count; ++i)
    bytes[i] =
        (static_cast<unsigned char>(packed[i / each]) >> (i % each * width)) & ((1 << width) - 1);
  return bytes;
}

static bool isPacked(Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  return width == 2 || width == 4;
}

/// Elements from a typed field, narrowed to `width` bytes each.
template <typename Field> static std::vector<char> narrow(const Field &field, int64_t width) {
  std::vector<char> bytes(field.size() * width);
  for (int i = 0; i < field.size(); ++i) {
    auto word = field.Get(i);
    std::memcpy(bytes.data() + i * width, &word, width);
  }
  return bytes;
}

static std::vector<char> typedBytes(const Proto &tensor, Type element, int64_t count) {
  int64_t width = graph::bytesOf(element), found = 0;
  std::vector<char> bytes;
  const char *field = "";
  auto take = [&](const auto &values, const char *name) {
    field = name;
    found = values.size();
    bytes = narrow(values, width);
  };
  bool isSigned64 = element.isInteger(64) && !element.isUnsignedInteger();
  if (element.isF32())
    take(tensor.float_data(), "float_data");
  else if (element.isF64())
    take(tensor.double_data(), "double_data");
  else if (isSigned64)
    take(tensor.int64_data(), "int64_data");
  else if (element.isUnsignedInteger(64) || element.isUnsignedInteger(32))
    take(tensor.uint64_data(), "uint64_data");
  else
    take(tensor.int32_data(), "int32_data");
  int64_t expected = isPacked(element) ? packedBytes(element, count) : count;
  if (found != expected)
    refuse("'" + Twine(field) + "' has " + Twine(found) + " entries, but the shape needs " +
           Twine(expected));
  return isPacked(element) ? unpack(bytes, element, count) : bytes;
}

static ArrayRef<char> externalBytes(const Proto &tensor, ModelFile &file, int64_t maxBytes,
                                    Mapping &owner, int64_t expected) {
  std::string location;
  int64_t offset = 0, length = -1;
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    for (auto [key, slot] : {std::pair{"offset", &offset}, {"length", &length}})
      if (entry.key() == key && (StringRef(entry.value()).getAsInteger(10, *slot) || *slot < 0))
        refuse("external data has '" + Twine(key) + "' '" + entry.value() +
               "', but it must be a number that is not negative");
  }
  if (location.empty())
    refuse("the tensor is external, but names no 'location'");
  owner = file.mapExternal(location, maxBytes);
  int64_t size = owner->getBufferSize();
  if (length < 0)
    length = expected;
  if (length != expected)
    refuse("external data has length " + Twine(length) + ", but the shape needs " +
           Twine(expected) + " bytes");
  if (offset > size || length > size - offset)
    refuse("external data ends at byte " + Twine(offset) + " + " + Twine(length) + ", but '" +
           location + "' has only " + Twine(size));
  return {owner->getBufferStart() + offset, (size_t)length};
}

/// A constant that points at `bytes` and keeps `owner` alive as long as it needs them.
template <typename Owner>
static ElementsAttr mapped(RankedTensorType type, ArrayRef<char> bytes, StringRef name,
                           Owner owner) {
  auto blob = UnmanagedAsmResourceBlob::allocateWithAlign(
      bytes, 1, [owner](void *, size_t, size_t) mutable { owner.reset(); });
  auto kept = RankedTensorType::get(type.getShape(), graph::storageOf(type.getElementType()));
  return graph::constantAttr(type, DenseResourceElementsAttr::get(
                                       kept, name.empty() ? "constant" : name, std::move(blob)));
}

static constexpr int64_t kCopiedElements = 64;

static ElementsAttr readStrings(const Proto &tensor, RankedTensorType type, StringTable &strings) {
  int64_t count = type.getNumElements();
  if (tensor.string_data_size() != count)
    refuse("'string_data' has " + Twine(tensor.string_data_size()) +
           " entries, but the shape needs " + Twine(count));
  std::vector<int64_t> numbers;
  for (const std::string &text : tensor.string_data())
    numbers.push_back(strings.numberOf(text));
  ArrayRef<char> bytes(reinterpret_cast<const char *>(numbers.data()), count * sizeof(int64_t));
  return graph::constantAttr(type, bytes);
}

int64_t StringTable::numberOf(StringRef text) {
  auto [place, isNew] = numbers.try_emplace(text, texts.size());
  if (isNew)
    texts.push_back(text.str());
  return place->second;
}

ElementsAttr readTensor(MLIRContext *context, const Proto &tensor, ModelFile &file,
                        int64_t maxBytes, StringTable &strings) {
  int64_t count = countElements(tensor);
  Type element = elementType(context, tensor.data_type());
  if (!element)
    refuse("tensors of " + dataTypeName(tensor.data_type()) + " are not supported");
  if (tensor.has_segment())
    refuse("the tensor is split into segments, which is not supported");
  Ints shape(tensor.dims().begin(), tensor.dims().end());
  auto type = RankedTensorType::get(shape, element);
  bool isExternal = tensor.data_location() == proto::TensorProto_DataLocation_EXTERNAL;
  int sources = isExternal + tensor.has_raw_data() + (tensor.float_data_size() > 0) +
                (tensor.int32_data_size() > 0) + (tensor.int64_data_size() > 0) +
                (tensor.double_data_size() > 0) + (tensor.uint64_data_size() > 0) +
                (tensor.string_data_size() > 0);
  if (sources > 1)
    refuse(
        "the tensor has its elements in more than one field, such as both raw_data and float_data");
  if (tensor.data_type() == Proto::STRING)
    return readStrings(tensor, type, strings);
  Type storage = graph::storageOf(element);
  if (!isExternal && !tensor.has_raw_data()) {
    std::vector<char> bytes = typedBytes(tensor, storage, count);
    return graph::constantAttr(type, bytes);
  }
  int64_t expected = packedBytes(storage, count);
  Mapping mapping;
  ArrayRef<char> bytes;
  if (isExternal) {
    bytes = externalBytes(tensor, file, maxBytes, mapping, expected);
  } else {
    bytes = {tensor.raw_data().data(), tensor.raw_data().size()};
    if ((int64_t)bytes.size() != expected)
      refuse("'raw_data' has " + Twine(bytes.size()) + " bytes, but the shape needs " +
             Twine(expected));
  }
  if (isPacked(storage))
    return graph::constantAttr(type, unpack(bytes, storage, count));
  if (count <= kCopiedElements)
    return graph::constantAttr(type, bytes);
  return isExternal ? mapped(type, bytes, tensor.name(), mapping)
                    : mapped(type, bytes, tensor.name(), file.model);
}

/// Limit of a dense tensor that the model stores as a few numbers: protobuf's for any other.
static constexpr int64_t kMostSparseBytes = INT32_MAX;

ElementsAttr readSparse(MLIRContext *context, const proto::SparseTensorProto &sparse,
                        ModelFile &file, int64_t maxBytes, StringTable &strings) {
  Proto shape;
  shape.mutable_dims()->CopyFrom(sparse.dims());
  int64_t count = countElements(shape), rank = sparse.dims_size();
  ElementsAttr values = readTensor(context, sparse.values(), file, maxBytes, strings);
  ElementsAttr indices = readTensor(context, sparse.indices(), file, maxBytes, strings);
  auto valueType = cast<RankedTensorType>(values.getType()),
       indexType = cast<RankedTensorType>(indices.getType());
  Type element = valueType.getElementType();
  int64_t width = graph::bytesOf(element), given = valueType.getNumElements();
  bool isFlat = indexType.getRank() == 1;
  if (valueType.getRank() != 1 || !indexType.getElementType().isSignlessInteger(64) ||
      (!isFlat && (indexType.getRank() != 2 || indexType.getDimSize(1) != rank)) ||
      indexType.getDimSize(0) != given)
    refuse("the values must be a vector, and the indices INT64 of shape [values] or [values, " +
           Twine(rank) + "]");
  if (count > kMostSparseBytes / width)
    throw Refusal{"the dense tensor has " + std::to_string(count) + " elements, but at most " +
                      std::to_string(kMostSparseBytes / width) + " of this type are allowed",
                  "", ErrorCode::Limit};
  std::vector<char> storage, places, bytes(count * width, 0);
  ArrayRef<char> from = graph::constantBytes(values, storage);
  ArrayRef<char> numbers = graph::constantBytes(indices, places);
  if (graph::isString(element)) {
    int64_t nothing = strings.numberOf("");
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(bytes.data() + i * width, &nothing, width);
  }
  int64_t before = -1, columns = isFlat ? 1 : rank;
  for (int64_t i = 0; i < given; ++i) {
    int64_t place = 0;
    for (int64_t d = 0; d < columns; ++d) {
      int64_t index, size = isFlat ? count : sparse.dims(d);
      std::memcpy(&index, numbers.data() + (i * columns + d) * sizeof(index), sizeof(index));
      if (index < 0 || index >= size)
        refuse("index " + Twine(index) + " is outside of [0, " + Twine(size) + ")");
      place = place * size + index;
    }
    if (place <= before)
      refuse("the indices must ascend, but entry " + Twine(i) + " does not follow the one before");
    before = place;
    std::memcpy(bytes.data() + place * width, from.data() + i * width, width);
  }
  return graph::constantAttr(
      RankedTensorType::get(Ints(sparse.dims().begin(), sparse.dims().end()), element), bytes);
}

} // namespace heddle::onnx
