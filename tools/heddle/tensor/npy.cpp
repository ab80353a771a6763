// Npy: see npy.h.

#include "tools/heddle/tensor/npy.h"

#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"

#include <algorithm>
#include <cstring>

namespace heddle::cli {

namespace {
struct Descr {
  const char *text; // without the byte order
  int32_t dtype;
};

struct Header {
  std::string descr;
  bool isFortran = false;
  std::vector<int64_t> dims;
};
} // namespace

static const Descr kDescrs[] = {
    {"f4", HEDDLE_FLOAT32},   {"f8", HEDDLE_FLOAT64},    {"f2", HEDDLE_FLOAT16},
    {"u1", HEDDLE_UINT8},     {"i1", HEDDLE_INT8},       {"u2", HEDDLE_UINT16},
    {"i2", HEDDLE_INT16},     {"u4", HEDDLE_UINT32},     {"i4", HEDDLE_INT32},
    {"u8", HEDDLE_UINT64},    {"i8", HEDDLE_INT64},      {"b1", HEDDLE_BOOL},
    {"c8", HEDDLE_COMPLEX64}, {"c16", HEDDLE_COMPLEX128}};

/// The text after "'key':" in the header's dictionary, without leading blanks.
static std::string valueOf(const std::string &path, const std::string &header, const char *key) {
  size_t at = header.find("'" + std::string(key) + "'");
  if (at != std::string::npos)
    at = header.find(':', at);
  if (at != std::string::npos)
    at = header.find_first_not_of(' ', at + 1);
  if (at == std::string::npos)
    failUsage("'" + path + "': its header has no '" + key + "'");
  return header.substr(at);
}

static std::vector<int64_t> parseShape(const std::string &path, const std::string &text) {
  size_t end = text.find(')');
  if (text[0] != '(' || end == std::string::npos)
    failUsage("'" + path + "': its header has no 'shape' in parentheses");
  std::vector<int64_t> dims;
  for (size_t at = 1; at < end;) {
    if (text[at] == ' ' || text[at] == ',') {
      ++at;
      continue;
    }
    if (!std::isdigit(static_cast<unsigned char>(text[at])))
      failUsage("'" + path + "': its shape is '" + text.substr(0, end + 1) +
                "', but sizes are numbers of digits alone");
    char *after = nullptr;
    dims.push_back(std::strtoll(text.c_str() + at, &after, 10));
    at = static_cast<size_t>(after - text.c_str());
  }
  return dims;
}

static Header parseHeader(const std::string &path, const std::string &file, size_t &dataAt) {
  if (file.size() < 12 || file.compare(0, 6, "\x93NUMPY") != 0)
    failUsage("'" + path + "' is not an .npy file: it does not begin with \\x93NUMPY");
  size_t lengthBytes = file[6] == 1 ? 2 : 4, length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= static_cast<size_t>(static_cast<unsigned char>(file[8 + i])) << 8 * i;
  dataAt = 8 + lengthBytes + length;
  if (dataAt > file.size())
    failUsage("'" + path + "' is truncated: its header has " + std::to_string(length) +
              " bytes, and the file ends before");
  std::string text = file.substr(8 + lengthBytes, length);
  Header header;
  std::string descr = valueOf(path, text, "descr");
  header.descr = descr.substr(1, descr.find(descr[0], 1) - 1);
  header.isFortran = valueOf(path, text, "fortran_order").starts_with("True");
  header.dims = parseShape(path, valueOf(path, text, "shape"));
  return header;
}

static int32_t dtypeOfDescr(const std::string &path, const std::string &descr, int32_t wanted) {
  bool hasOrder = !descr.empty() && std::strchr("<>|=", descr[0]);
  std::string kind = hasOrder ? descr.substr(1) : descr;
  for (const Descr &entry : kDescrs)
    if (kind == entry.text && !(descr[0] == '>' && heddle_dtype_bits(entry.dtype) > 8))
      return entry.dtype;
  if (kind == "V2" && wanted == HEDDLE_BFLOAT16)
    return wanted;
  if (kind == "V1" && (heddle_dtype_bits(wanted) <= 8 && wanted))
    return wanted;
  if (int32_t named = dtypeOf(descr); named && named != HEDDLE_STRING) // as ml_dtypes names it
    return named;
  failUsage("'" + path + "': its type is '" + descr +
            "'; supported are numbers and bool of this machine's byte order, V2 for bfloat16 and "
            "V1 for 8-bit floats");
}

/// Column-major elements in row-major order.
static std::string transposed(const std::string &data, const std::vector<int64_t> &dims,
                              size_t bytes) {
  std::string result(data.size(), '\0');
  std::vector<int64_t> at(dims.size());
  for (size_t target = 0; target < data.size(); target += bytes) {
    size_t source = 0;
    for (size_t i = dims.size(); i-- > 0;)
      source = source * static_cast<size_t>(dims[i]) + static_cast<size_t>(at[i]);
    std::memcpy(&result[target], &data[source * bytes], bytes);
    for (size_t i = dims.size(); i-- > 0 && ++at[i] == dims[i];)
      at[i] = 0;
  }
  return result;
}

Tensor readNpy(const std::string &path, int32_t wanted) {
  std::string file = readFile(path, kMaxTensorBytes);
  size_t dataAt = 0;
  Header header = parseHeader(path, file, dataAt);
  int32_t dtype = dtypeOfDescr(path, header.descr, wanted);
  if (isPacked(wanted) && heddle_dtype_bits(dtype) <= 8)
    dtype = wanted;
  // A byte holds one element of two or four bits.
  size_t elementBytes = isPacked(dtype) ? 1 : static_cast<size_t>(heddle_dtype_bits(dtype)) / 8;
  checkDims(header.dims, "'" + path + "'");
  // Memory is asked for what is there, or refused for more than any machine has.
  size_t bytes, count = static_cast<size_t>(countOf(header.dims));
  if (!__builtin_mul_overflow(count, elementBytes, &bytes) && file.size() - dataAt < bytes)
    failUsage("'" + path + "' is truncated: " + formatDims(header.dims) + " of '" + header.descr +
              "' needs " + std::to_string(bytes) + " bytes, but " +
              std::to_string(file.size() - dataAt) + " follow the header");
  Tensor tensor = makeTensor(dtype, header.dims, "'" + path + "'");
  std::string data = file.substr(dataAt, bytes);
  if (header.isFortran && header.dims.size() > 1)
    data = transposed(data, header.dims, elementBytes);
  if (isPacked(dtype))
    for (int64_t i = 0; i < tensor.count(); ++i)
      setInteger(tensor, i, data[static_cast<size_t>(i)]);
  else
    std::copy(data.begin(), data.end(), tensor.bytes.begin());
  return tensor;
}

static std::string descrOf(int32_t dtype) {
  for (const Descr &entry : kDescrs)
    if (entry.dtype == dtype)
      return (heddle_dtype_bits(dtype) > 8 ? "<" : "|") + std::string(entry.text);
  if (isPacked(dtype))
    return isSigned(dtype) ? "|i1" : isInteger(dtype) ? "|u1" : "|V1";
  return "|V" + std::to_string(heddle_dtype_bits(dtype) / 8);
}

void writeNpy(const std::string &path, const Tensor &tensor) {
  std::string shape;
  for (int64_t dim : tensor.dims)
    shape += std::to_string(dim) + ", ";
  if (tensor.dims.size() > 1)
    shape.resize(shape.size() - 2);
  std::string header = "{'descr': '" + descrOf(tensor.dtype) +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // The data begins at a multiple of 64 bytes; the header ends with a line end.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file +=
      {'\1', '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  file += header;
  if (isPacked(tensor.dtype))
    for (int64_t i = 0; i < tensor.count(); ++i)
      file += static_cast<char>(integerElement(tensor, i));
  else
    file.append(tensor.bytes.begin(), tensor.bytes.end());
  writeFile(path, file);
}

} // namespace heddle::cli
