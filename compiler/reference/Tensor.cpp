// Tensor: bytes to numbers and back, for every element type.

#include "compiler/reference/Tensor.h"

#include "compiler/graph/Graph.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

using namespace mlir;

namespace heddle::reference {

int64_t countOf(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Tensor Tensor::zeros(Type element, ArrayRef<int64_t> shape) {
  Tensor result{element, SmallVector<int64_t>(shape), nullptr, {}};
  result.owned = std::make_shared<std::vector<char>>(result.count() * result.width());
  return result;
}

Tensor Tensor::borrow(Type element, ArrayRef<int64_t> shape, ArrayRef<char> bytes) {
  return {element, SmallVector<int64_t>(shape), nullptr, bytes};
}

int64_t Tensor::count() const { return countOf(shape); }
int64_t Tensor::width() const { return graph::bytesOf(element); }

Tensor Tensor::reshaped(ArrayRef<int64_t> to) const {
  Tensor result = *this;
  result.shape.assign(to.begin(), to.end());
  return result;
}

Tensor Tensor::row(int64_t index) const {
  ArrayRef<int64_t> inner = ArrayRef<int64_t>(shape).drop_front();
  int64_t size = countOf(inner) * width();
  Tensor result = zeros(element, inner);
  if (size > 0)
    std::memcpy(result.data(), bytes().data() + index * size, size);
  return result;
}

SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

void forEachIndex(ArrayRef<int64_t> shape,
                  llvm::function_ref<void(ArrayRef<int64_t>, int64_t)> function) {
  int64_t count = countOf(shape);
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t number = 0; number < count; ++number) {
    function(index, number);
    for (int64_t i = static_cast<int64_t>(shape.size()) - 1; i >= 0; --i) {
      if (++index[i] < shape[i])
        break;
      index[i] = 0;
    }
  }
}

/// Value of each bit pattern of a float of at most 16 bits.
static const std::vector<double> &valuesOf(FloatType type) {
  static std::mutex mutex;
  static std::map<const llvm::fltSemantics *, std::vector<double>> tables;
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<double> &table = tables[&type.getFloatSemantics()];
  if (table.empty())
    for (uint64_t bits = 0; bits < (1u << type.getWidth()); ++bits) {
      llvm::APFloat value(type.getFloatSemantics(), llvm::APInt(type.getWidth(), bits));
      bool losesInfo;
      value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      table.push_back(value.convertToDouble());
    }
  return table;
}

static uint64_t wordAt(const char *bytes, int64_t width, int64_t index) {
  uint64_t word = 0;
  std::memcpy(&word, bytes + index * width, width);
  return word;
}

static double floatAt(FloatType type, const char *bytes, int64_t index) {
  if (type.isF32()) {
    float value;
    std::memcpy(&value, bytes + index * sizeof value, sizeof value);
    return value;
  }
  if (type.isF64()) {
    double value;
    std::memcpy(&value, bytes + index * sizeof value, sizeof value);
    return value;
  }
  return valuesOf(type)[wordAt(bytes, graph::bytesOf(type), index)];
}

static int64_t wrap(uint64_t word, unsigned bits, bool isUnsigned) {
  if (bits >= 64)
    return word;
  word <<= 64 - bits;
  return isUnsigned ? static_cast<int64_t>(word >> (64 - bits))
                    : static_cast<int64_t>(word) >> (64 - bits);
}

/// Toward zero; what i64 cannot hold (and NaN) becomes its lowest value, as hardware does.
static int64_t truncate(double value) {
  if (!(value >= -0x1p63 && value < 0x1p63))
    return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

/// Truncates as `cast` is defined: through i32 to i32 and narrower types, through i64 to u32.
static int64_t truncate(double value, Type to) {
  unsigned bits = to.getIntOrFloatBitWidth();
  bool isUnsigned = to.isUnsignedInteger();
  if (bits == 64 && isUnsigned && value >= 0x1p63)
    return static_cast<uint64_t>(truncate(value - 0x1p63)) + (uint64_t(1) << 63);
  if (bits > 32 || (bits == 32 && isUnsigned))
    return truncate(value);
  return value > -0x1p31 && value < 0x1p31 ? static_cast<int32_t>(value)
                                           : std::numeric_limits<int32_t>::min();
}

/// Calls function(index, word) for each element, a word being as many bits as an element has.
template <typename Word, typename Function>
static void forEachWord(const Tensor &tensor, Function function) {
  const char *bytes = tensor.bytes().data();
  for (int64_t i = 0, count = tensor.count(); i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * sizeof word, sizeof word);
    function(i, word);
  }
}

template <typename Function> static void forEachWord(const Tensor &tensor, Function function) {
  switch (tensor.width()) {
  case 1:
    return forEachWord<uint8_t>(tensor, function);
  case 2:
    return forEachWord<uint16_t>(tensor, function);
  case 4:
    return forEachWord<uint32_t>(tensor, function);
  default:
    return forEachWord<uint64_t>(tensor, function);
  }
}

template <typename T> std::vector<T> load(const Tensor &tensor) {
  std::vector<T> values(tensor.count());
  auto type = dyn_cast<FloatType>(tensor.element);
  auto set = [&](int64_t i, double value) {
    if constexpr (std::is_floating_point_v<T>)
      values[i] = static_cast<T>(value);
    else
      values[i] = static_cast<T>(truncate(value));
  };
  if (type && type.getWidth() <= 16) {
    const std::vector<double> &table = valuesOf(type);
    forEachWord(tensor, [&](int64_t i, uint64_t word) { set(i, table[word]); });
  } else if (type && type.isF32()) {
    forEachWord<float>(tensor, set);
  } else if (type) {
    forEachWord<double>(tensor, set);
  } else {
    Type storage = graph::storageOf(tensor.element);
    unsigned bits = storage.getIntOrFloatBitWidth();
    bool hasNoSign = isUnsigned(storage);
    forEachWord(tensor, [&](int64_t i, uint64_t word) {
      int64_t value = wrap(word, bits, hasNoSign);
      values[i] = hasNoSign ? static_cast<T>(static_cast<uint64_t>(value)) : static_cast<T>(value);
    });
  }
  return values;
}
template std::vector<double> load<double>(const Tensor &);
template std::vector<float> load<float>(const Tensor &);
template std::vector<int64_t> load<int64_t>(const Tensor &);
template std::vector<uint64_t> load<uint64_t>(const Tensor &);

int64_t integerAt(const Tensor &tensor, int64_t index) {
  if (isFloat(tensor.element))
    return truncate(numberAt(tensor, index));
  Type storage = graph::storageOf(tensor.element);
  return wrap(wordAt(tensor.bytes().data(), tensor.width(), index), storage.getIntOrFloatBitWidth(),
              isUnsigned(storage));
}

double numberAt(const Tensor &tensor, int64_t index) {
  if (auto type = dyn_cast<FloatType>(tensor.element))
    return floatAt(type, tensor.bytes().data(), index);
  int64_t value = integerAt(tensor, index);
  return isUnsigned(tensor.element) ? static_cast<double>(static_cast<uint64_t>(value))
                                    : static_cast<double>(value);
}

/// The bits of a number in a float type of at most 16 bits.
template <typename T> static uint64_t narrow(T value, FloatType type, bool saturate) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  constexpr auto nearest = llvm::APFloat::rmNearestTiesToEven;
  llvm::APFloat result(semantics);
  bool losesInfo, isNan = false, isNegative = false;
  if constexpr (std::is_floating_point_v<T>) {
    isNan = std::isnan(value);
    isNegative = std::signbit(value);
    result = llvm::APFloat(static_cast<double>(value));
    result.convert(semantics, nearest, &losesInfo);
  } else {
    isNegative = std::is_signed_v<T> && static_cast<int64_t>(value) < 0;
    result.convertFromAPInt(llvm::APInt(64, static_cast<uint64_t>(value)), std::is_signed_v<T>,
                            nearest);
  }
  // ONNX Cast: with saturation, infinities too are the largest values.
  bool isOutside = result.isNaN() || result.isInfinity();
  if (saturate && isOutside && !isNan)
    result = llvm::APFloat::getLargest(semantics, isNegative);
  return result.bitcastToAPInt().getZExtValue();
}

template <typename T> void store(Tensor &tensor, ArrayRef<T> values, bool saturate) {
  char *bytes = tensor.data();
  int64_t width = tensor.width();
  auto write = [&](size_t i, const void *value) { std::memcpy(bytes + i * width, value, width); };
  auto floating = dyn_cast<FloatType>(tensor.element);
  Type storage = graph::storageOf(tensor.element);
  unsigned bits = storage.getIntOrFloatBitWidth();
  bool saturates = saturate && bits == 8;
  for (size_t i = 0; i < values.size(); ++i) {
    T value = values[i];
    if (tensor.element.isF32()) {
      float number = static_cast<float>(value);
      write(i, &number);
    } else if (tensor.element.isF64()) {
      double number = static_cast<double>(value);
      write(i, &number);
    } else {
      uint64_t word;
      if (floating)
        word = narrow(value, floating, saturates);
      else if (bits == 1)
        word = value != T(0);
      else if constexpr (std::is_floating_point_v<T>)
        word = wrap(truncate(value, storage), bits, true);
      else
        word = wrap(value, bits, true);
      write(i, &word);
    }
  }
}
template void store<double>(Tensor &, ArrayRef<double>, bool);
template void store<int64_t>(Tensor &, ArrayRef<int64_t>, bool);
template void store<uint64_t>(Tensor &, ArrayRef<uint64_t>, bool);

template <typename T> static T extremeOf(Type element, bool highest) {
  if (auto type = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    llvm::APFloat value = llvm::APFloat::getInf(semantics, !highest);
    if (!value.isInfinity())
      value = llvm::APFloat::getLargest(semantics, !highest);
    bool losesInfo;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return static_cast<T>(value.convertToDouble());
  }
  unsigned bits = graph::storageOf(element).getIntOrFloatBitWidth();
  uint64_t top = uint64_t(1) << (bits - 1);
  if (isUnsigned(element))
    return static_cast<T>(highest ? top | (top - 1) : 0);
  return static_cast<T>(highest ? static_cast<int64_t>(top - 1)
                                : -static_cast<int64_t>(top - 1) - 1);
}
template <typename T> T lowestOf(Type element) { return extremeOf<T>(element, false); }
template <typename T> T highestOf(Type element) { return extremeOf<T>(element, true); }
template double lowestOf<double>(Type);
template int64_t lowestOf<int64_t>(Type);
template uint64_t lowestOf<uint64_t>(Type);
template double highestOf<double>(Type);
template int64_t highestOf<int64_t>(Type);
template uint64_t highestOf<uint64_t>(Type);

} // namespace heddle::reference
