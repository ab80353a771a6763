// TensorProto: the wire format is a sequence of (field number, wire type, value).

#include "tools/heddle/tensor/tensor_proto.h"

#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"

#include <cstring>
#include <string_view>

namespace heddle::cli {

namespace {

enum Field {
  Dims = 1,
  DataType = 2,
  FloatData = 4,
  Int32Data = 5,
  StringData = 6,
  Int64Data = 7,
  RawData = 9,
  DoubleData = 10,
  Uint64Data = 11,
  External = 13
};

class Reader {
public:
  Reader(const std::string &path, std::string_view rest) : path(path), rest(rest) {}
  bool isAtEnd() const { return rest.empty(); }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      auto byte = static_cast<unsigned char>(bytes(1)[0]);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128)
        return value;
    }
    fail("a number has more than ten bytes");
  }

  std::string_view bytes(uint64_t count) {
    if (count > rest.size())
      fail("it ends too early");
    std::string_view taken = rest.substr(0, count);
    rest.remove_prefix(count);
    return taken;
  }

  template <typename T> T fixed() {
    T value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }

  [[noreturn]] void fail(const std::string &why) const {
    failUsage("'" + path + "' is not an onnx.TensorProto: " + why);
  }

private:
  const std::string &path;
  std::string_view rest;
};

/// The fields of a tensor as they are in the file.
struct Fields {
  std::vector<int64_t> dims, integers;
  std::vector<double> numbers;
  std::vector<std::string> strings;
  std::string_view raw;
  int32_t dtype = 0;
  bool hasRaw = false, isExternal = false;
};

} // namespace

/// Calls `one` for each value of a repeated field, packed or not.
template <typename One>
static void each(Reader &reader, const std::string &path, int wire, One one) {
  if (wire != 2)
    return one(reader);
  Reader packed(path, reader.bytes(reader.varint()));
  while (!packed.isAtEnd())
    one(packed);
}

static void readField(Reader &reader, const std::string &path, Fields &fields) {
  uint64_t tag = reader.varint();
  int wire = static_cast<int>(tag & 7);
  auto integer = [](std::vector<int64_t> &to) {
    return [&to](Reader &from) { to.push_back(static_cast<int64_t>(from.varint())); };
  };
  switch (tag >> 3) {
  case Dims:
    return each(reader, path, wire, integer(fields.dims));
  case DataType:
    fields.dtype = static_cast<int32_t>(reader.varint());
    return;
  case FloatData:
    return each(reader, path, wire,
                [&](Reader &from) { fields.numbers.push_back(from.fixed<float>()); });
  case DoubleData:
    return each(reader, path, wire,
                [&](Reader &from) { fields.numbers.push_back(from.fixed<double>()); });
  case Int32Data:
  case Int64Data:
  case Uint64Data:
    return each(reader, path, wire, integer(fields.integers));
  case StringData:
    fields.strings.emplace_back(reader.bytes(reader.varint()));
    return;
  case RawData:
    fields.raw = reader.bytes(reader.varint());
    fields.hasRaw = true;
    return;
  case External:
    fields.isExternal = true;
    break;
  default:
    break;
  }
  if (wire == 0)
    reader.varint();
  else if (wire == 1 || wire == 5)
    reader.bytes(wire == 1 ? 8 : 4);
  else if (wire == 2)
    reader.bytes(reader.varint());
  else
    reader.fail("its wire type " + std::to_string(wire) + " is unknown");
}

/// Refuses elements in a field that is not for the data type, or in two fields.
static void checkPlaces(const Reader &reader, const Fields &fields) {
  bool isString = fields.dtype == HEDDLE_STRING;
  bool isNumber =
      fields.dtype == HEDDLE_FLOAT32 || fields.dtype == HEDDLE_FLOAT64 || isComplex(fields.dtype);
  if (fields.hasRaw + !fields.strings.empty() + !fields.numbers.empty() + !fields.integers.empty() >
      1)
    reader.fail("its elements are in two fields");
  if ((fields.hasRaw && isString) || (!fields.strings.empty() && !isString) ||
      (!fields.numbers.empty() && !isNumber) ||
      (!fields.integers.empty() && (isString || isNumber)))
    reader.fail("its elements are in a field that is not for " +
                std::string(heddle_dtype_name(fields.dtype)));
}

Tensor readTensorProto(const std::string &path) {
  std::string file = readFile(path, kMaxTensorBytes);
  Reader reader(path, file);
  Fields fields;
  while (!reader.isAtEnd())
    readField(reader, path, fields);
  if (fields.isExternal)
    reader.fail("its data lies in another file");
  if (fields.dtype != HEDDLE_STRING && heddle_dtype_bits(fields.dtype) == 0)
    reader.fail("its data type is " + std::to_string(fields.dtype));
  checkPlaces(reader, fields);
  checkDims(fields.dims, "'" + path + "'");
  auto count = static_cast<size_t>(countOf(fields.dims));
  size_t found = fields.hasRaw
                     ? fields.raw.size()
                     : fields.strings.size() + fields.numbers.size() + fields.integers.size();
  // Memory is asked for what is there: a byte holds no more than four elements.
  if (count / 4 > found)
    reader.fail(formatDims(fields.dims) + " of " + heddle_dtype_name(fields.dtype) +
                " is more than the " + std::to_string(found) +
                (fields.hasRaw ? " bytes" : " values") + " that it has");
  Tensor tensor = makeTensor(fields.dtype, fields.dims, "'" + path + "'");
  bool isInBytes = isPacked(fields.dtype); // int32_data then holds a byte of elements each
  size_t wanted =
      fields.hasRaw || isInBytes ? tensor.bytes.size() : count * (isComplex(fields.dtype) ? 2 : 1);
  if (found != wanted)
    reader.fail(formatDims(tensor.dims) + " of " + heddle_dtype_name(fields.dtype) + " needs " +
                std::to_string(wanted) + (fields.hasRaw ? " bytes" : " values") + ", but it has " +
                std::to_string(found));
  if (fields.dtype == HEDDLE_STRING)
    tensor.strings = fields.strings;
  if (fields.hasRaw)
    std::copy(fields.raw.begin(), fields.raw.end(), tensor.bytes.begin());
  for (size_t i = 0; i < fields.numbers.size(); ++i)
    setElement(tensor, static_cast<int64_t>(i), fields.numbers[i]);
  for (size_t i = 0; i < fields.integers.size(); ++i)
    if (isInBytes)
      tensor.bytes[i] = static_cast<char>(fields.integers[i]);
    else // 16-bit and 8-bit floats are given by their bits, as integers are
      setInteger(tensor, static_cast<int64_t>(i), fields.integers[i]);
  return tensor;
}

} // namespace heddle::cli
