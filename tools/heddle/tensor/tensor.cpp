// Tensor: see tensor.h.

#include "tools/heddle/tensor/tensor.h"

#include "tools/heddle/failure.h"
#include "tools/heddle/table.h"
#include "tools/heddle/tensor/small_float.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unistd.h>

namespace heddle::cli {

namespace {
struct ShortName {
  const char *name;
  int32_t dtype;
};
} // namespace

static const ShortName kShortNames[] = {
    {"f32", HEDDLE_FLOAT32},   {"f64", HEDDLE_FLOAT64}, {"f16", HEDDLE_FLOAT16},
    {"bf16", HEDDLE_BFLOAT16}, {"i8", HEDDLE_INT8},     {"i16", HEDDLE_INT16},
    {"i32", HEDDLE_INT32},     {"i64", HEDDLE_INT64},   {"u8", HEDDLE_UINT8},
    {"u16", HEDDLE_UINT16},    {"u32", HEDDLE_UINT32},  {"u64", HEDDLE_UINT64},
    {"i4", HEDDLE_INT4},       {"u4", HEDDLE_UINT4},    {"i2", HEDDLE_INT2},
    {"u2", HEDDLE_UINT2},      {"bool", HEDDLE_BOOL},   {"string", HEDDLE_STRING},
};

int32_t dtypeOf(const std::string &name) {
  for (const ShortName &entry : kShortNames)
    if (name == entry.name)
      return entry.dtype;
  for (int32_t dtype = HEDDLE_FLOAT32; dtype <= HEDDLE_INT2; ++dtype)
    if (name == heddle_dtype_name(dtype))
      return dtype;
  return 0;
}

std::vector<std::string> dtypeNames() {
  std::vector<std::string> names;
  for (const ShortName &entry : kShortNames)
    names.push_back(entry.name);
  for (int32_t dtype = HEDDLE_FLOAT32; dtype <= HEDDLE_INT2; ++dtype)
    names.push_back(heddle_dtype_name(dtype));
  return names;
}

bool isFloating(int32_t dtype) {
  return dtype == HEDDLE_FLOAT32 || dtype == HEDDLE_FLOAT64 || smallFloatOf(dtype).exponentBits > 0;
}

bool isInteger(int32_t dtype) {
  return !isFloating(dtype) && !isComplex(dtype) && dtype != HEDDLE_BOOL && dtype != HEDDLE_STRING;
}

bool isSigned(int32_t dtype) {
  return dtype == HEDDLE_INT2 || dtype == HEDDLE_INT4 || dtype == HEDDLE_INT8 ||
         dtype == HEDDLE_INT16 || dtype == HEDDLE_INT32 || dtype == HEDDLE_INT64;
}

bool isComplex(int32_t dtype) { return dtype == HEDDLE_COMPLEX64 || dtype == HEDDLE_COMPLEX128; }

int64_t countOf(const std::vector<int64_t> &dims) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end())
    return 0;
  int64_t count = 1;
  for (int64_t dim : dims)
    if (__builtin_mul_overflow(count, dim, &count))
      return INT64_MAX;
  return count;
}

int64_t Tensor::count() const { return countOf(dims); }

heddle_tensor_t Tensor::view() const {
  heddle_tensor_t tensor = {};
  tensor.data = const_cast<char *>(bytes.data());
  tensor.bytes = static_cast<int64_t>(bytes.size());
  if (dtype == HEDDLE_STRING) {
    stringViews.clear();
    for (const std::string &text : strings)
      stringViews.push_back({text.data(), text.size()});
    tensor.data = stringViews.data();
    tensor.bytes = static_cast<int64_t>(stringViews.size() * sizeof stringViews[0]);
  }
  tensor.dtype = dtype;
  tensor.rank = static_cast<int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor.dims);
  return tensor;
}

bool isPacked(int32_t dtype) {
  int bits = heddle_dtype_bits(dtype);
  return bits > 0 && bits < 8;
}

void checkDims(const std::vector<int64_t> &dims, const std::string &what) {
  if (dims.size() > HEDDLE_MAX_RANK)
    failUsage(what + ": its rank is " + std::to_string(dims.size()) + ", but at most " +
              std::to_string(HEDDLE_MAX_RANK) + " is supported");
  for (int64_t dim : dims)
    if (dim < 0)
      failUsage(what + ": a size of " + formatDims(dims) + " is negative");
}

Tensor makeTensor(int32_t dtype, std::vector<int64_t> dims, const std::string &what) {
  checkDims(dims, what);
  int64_t count = countOf(dims), total = 0;
  bool isText = dtype == HEDDLE_STRING;
  int64_t bits = isText ? int64_t(8 * sizeof(std::string)) : heddle_dtype_bits(dtype);
  bool isTooLarge = __builtin_mul_overflow(count, bits, &total);
  int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  int64_t bytes = total / 8 + (total % 8 != 0);
  if (isTooLarge || bytes > memory)
    throw Failure(HEDDLE_LIMIT, what + ": " + heddle_dtype_name(dtype) + " of " + formatDims(dims) +
                                    " is larger than this machine's memory, " +
                                    formatBytes(memory));
  Tensor tensor = {dtype, std::move(dims), {}, {}, {}};
  if (dtype == HEDDLE_STRING) {
    tensor.strings.resize(static_cast<size_t>(count));
    return tensor;
  }
  tensor.bytes.reserve(std::max<size_t>(1, static_cast<size_t>(bytes))); // data() is not null
  tensor.bytes.resize(static_cast<size_t>(bytes));
  return tensor;
}

Tensor copyOf(const heddle_tensor_t &source) {
  if (source.dtype == HEDDLE_SEQUENCE)
    failUsage("results that are sequences cannot be shown; use the C API or Python");
  Tensor tensor = makeTensor(source.dtype, {source.dims, source.dims + source.rank}, "a result");
  for (size_t i = 0; i < tensor.strings.size(); ++i) {
    const auto &text = static_cast<const heddle_string_t *>(source.data)[i];
    tensor.strings[i].assign(text.data, text.size);
  }
  if (!tensor.bytes.empty())
    std::memcpy(tensor.bytes.data(), source.data, tensor.bytes.size());
  return tensor;
}

template <typename T> static T load(const Tensor &tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + static_cast<size_t>(index) * sizeof value,
              sizeof value);
  return value;
}

template <typename T> static void store(Tensor &tensor, int64_t index, T value) {
  std::memcpy(tensor.bytes.data() + static_cast<size_t>(index) * sizeof value, &value,
              sizeof value);
}

/// The bits of one element, not extended. The first of several elements in a byte is lowest.
static uint64_t loadBits(const Tensor &tensor, int64_t index) {
  switch (heddle_dtype_bits(tensor.dtype)) {
  case 2:
    return static_cast<uint8_t>(tensor.bytes[static_cast<size_t>(index / 4)]) >> 2 * (index % 4) &
           3;
  case 4:
    return static_cast<uint8_t>(tensor.bytes[static_cast<size_t>(index / 2)]) >> 4 * (index % 2) &
           15;
  case 8:
    return load<uint8_t>(tensor, index);
  case 16:
    return load<uint16_t>(tensor, index);
  case 32:
    return load<uint32_t>(tensor, index);
  default:
    return load<uint64_t>(tensor, index);
  }
}

static void storeBits(Tensor &tensor, int64_t index, uint64_t bits) {
  switch (heddle_dtype_bits(tensor.dtype)) {
  case 2:
  case 4: {
    int width = heddle_dtype_bits(tensor.dtype), each = 8 / width, mask = (1 << width) - 1;
    char &all = tensor.bytes[static_cast<size_t>(index / each)];
    int shift = width * static_cast<int>(index % each);
    all = static_cast<char>((all & ~(mask << shift)) | (static_cast<int>(bits) & mask) << shift);
    return;
  }
  case 8:
    return store(tensor, index, static_cast<uint8_t>(bits));
  case 16:
    return store(tensor, index, static_cast<uint16_t>(bits));
  case 32:
    return store(tensor, index, static_cast<uint32_t>(bits));
  default:
    return store(tensor, index, bits);
  }
}

double element(const Tensor &tensor, int64_t index) {
  switch (tensor.dtype) {
  case HEDDLE_FLOAT32:
  case HEDDLE_COMPLEX64:
    return load<float>(tensor, index);
  case HEDDLE_FLOAT64:
  case HEDDLE_COMPLEX128:
    return load<double>(tensor, index);
  case HEDDLE_UINT64:
    return static_cast<double>(load<uint64_t>(tensor, index));
  default:
    break;
  }
  SmallFloat format = smallFloatOf(tensor.dtype);
  if (format.exponentBits)
    return decode(format, static_cast<uint32_t>(loadBits(tensor, index)));
  return static_cast<double>(integerElement(tensor, index));
}

int64_t integerElement(const Tensor &tensor, int64_t index) {
  uint64_t bits = loadBits(tensor, index);
  int unused = 64 - heddle_dtype_bits(tensor.dtype);
  if (!isSigned(tensor.dtype) || unused <= 0)
    return static_cast<int64_t>(bits);
  return static_cast<int64_t>(bits << unused) >> unused;
}

void setElement(Tensor &tensor, int64_t index, double value) {
  SmallFloat format = smallFloatOf(tensor.dtype);
  if (tensor.dtype == HEDDLE_FLOAT32 || tensor.dtype == HEDDLE_COMPLEX64)
    store(tensor, index, static_cast<float>(value));
  else if (tensor.dtype == HEDDLE_FLOAT64 || tensor.dtype == HEDDLE_COMPLEX128)
    store(tensor, index, value);
  else if (format.exponentBits)
    storeBits(tensor, index, encode(format, value));
  else
    setInteger(tensor, index, static_cast<int64_t>(value));
}

void setInteger(Tensor &tensor, int64_t index, int64_t value) {
  storeBits(tensor, index, static_cast<uint64_t>(value));
}

std::string formatDims(const std::vector<int64_t> &dims) {
  std::string text;
  for (int64_t dim : dims)
    text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text.empty() ? "scalar" : text;
}

std::string formatElement(const Tensor &tensor, int64_t index) {
  if (tensor.dtype == HEDDLE_STRING)
    return "'" + tensor.strings[static_cast<size_t>(index)] + "'";
  if (tensor.dtype == HEDDLE_BOOL)
    return integerElement(tensor, index) ? "true" : "false";
  if (tensor.dtype == HEDDLE_UINT64)
    return std::to_string(static_cast<uint64_t>(integerElement(tensor, index)));
  if (isInteger(tensor.dtype))
    return std::to_string(integerElement(tensor, index));
  if (isComplex(tensor.dtype)) {
    double imaginary = element(tensor, 2 * index + 1);
    return formatNumber(element(tensor, 2 * index), 6) + (std::signbit(imaginary) ? "-" : "+") +
           formatNumber(std::fabs(imaginary), 6) + "i";
  }
  return formatNumber(element(tensor, index), 6);
}

std::string formatFirst(const Tensor &tensor, int64_t limit) {
  std::string text;
  int64_t count = tensor.count();
  for (int64_t i = 0; i < std::min(count, limit); ++i)
    text += (i ? " " : "") + formatElement(tensor, i);
  return count > limit ? text + " ..." : text;
}

} // namespace heddle::cli
