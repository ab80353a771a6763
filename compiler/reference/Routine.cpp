// Routine: compacting, different rows, suppression of boxes, trees and Fourier transforms, each by
// its definition.

#include "compiler/reference/Families.h"

#include "llvm/ADT/bit.h"

#include <numeric>

using namespace mlir;

namespace heddle::reference {

using namespace graph;

Results compute(NonzeroOp, const Call &call) {
  const Tensor &x = call[0];
  std::vector<std::vector<int64_t>> digits(x.rank());
  int64_t found = 0;
  forEachIndex(x.shape, [&](ArrayRef<int64_t> index, int64_t number) {
    if (!integerAt(x, number))
      return;
    ++found;
    for (auto [i, digit] : llvm::enumerate(index))
      digits[i].push_back(digit);
  });
  auto result = call.allocate({x.rank(), found});
  if (!result)
    return result.takeError();
  std::vector<int64_t> all;
  for (const auto &row : digits)
    llvm::append_range(all, row);
  store<int64_t>(*result, all);
  return single(*result);
}

Results compute(UniqueOp op, const Call &call) {
  const Tensor &x = call[0];
  int64_t rows = x.shape[0], width = x.shape[1];
  std::vector<int64_t> first, inverse(rows), counts;
  withNumber(x.element, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values = load<T>(x);
    auto isLess = [](T a, T b) { return a != a ? false : b != b ? true : a < b; };
    auto isBefore = [&](int64_t a, int64_t b) { // compares the first difference
      for (int64_t i = 0; i < width; ++i) {
        T left = values[a * width + i], right = values[b * width + i];
        if (isLess(left, right) || isLess(right, left))
          return isLess(left, right);
      }
      return false;
    };
    auto areEqual = [&](int64_t a, int64_t b) { // never with a NaN
      for (int64_t i = 0; i < width; ++i)
        if (!(values[a * width + i] == values[b * width + i]))
          return false;
      return true;
    };
    std::vector<int64_t> order(rows);
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order,
               [&](int64_t a, int64_t b) { return isBefore(a, b) || (!isBefore(b, a) && a < b); });
    for (int64_t i = 0; i < rows; ++i) {
      if (i == 0 || !areEqual(order[i - 1], order[i])) {
        first.push_back(order[i]);
        counts.push_back(0);
      }
      ++counts.back();
      inverse[order[i]] = first.size() - 1;
    }
    return 0;
  });
  if (!op.getSorted()) {
    std::vector<int64_t> order(first.size()), place(first.size()), firsts, sizes;
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](int64_t a, int64_t b) { return first[a] < first[b]; });
    for (auto [i, group] : llvm::enumerate(order)) {
      place[group] = i;
      firsts.push_back(first[group]);
      sizes.push_back(counts[group]);
    }
    for (int64_t &group : inverse)
      group = place[group];
    first = firsts;
    counts = sizes;
  }
  Tensors results;
  for (const auto *list : {&first, &inverse, &counts}) {
    auto result = call.allocate(static_cast<int64_t>(list->size()), results.size());
    if (!result)
      return result.takeError();
    store<int64_t>(*result, *list);
    results.push_back(*result);
  }
  return results;
}

namespace {
struct Box {
  float low[2], high[2];
  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};
} // namespace

static Box boxOf(ArrayRef<double> numbers, bool isCenter) {
  Box box;
  for (int d = 0; d < 2; ++d) {
    float a = numbers[d], b = numbers[d + 2];
    if (isCenter) {
      float half = b / 2;
      b = a + half;
      a = a - half;
    }
    box.low[d] = std::min(a, b);
    box.high[d] = std::max(a, b);
  }
  return box;
}

static bool isCovered(const Box &a, const Box &b, float most) {
  Box shared;
  for (int d = 0; d < 2; ++d) {
    shared.low[d] = std::max(a.low[d], b.low[d]);
    shared.high[d] = std::max(shared.low[d], std::min(a.high[d], b.high[d]));
  }
  float common = shared.area(), all = a.area() + b.area() - common;
  return common > 0 && all > 0 && common / all > most;
}

Results compute(SuppressOp op, const Call &call) {
  std::vector<double> boxes = load<double>(call[0]), scores = load<double>(call[1]);
  int64_t most = integerAt(call[2], 0), count = call[1].shape[2], classes = call[1].shape[1];
  float overlap = numberAt(call[3], 0), least = numberAt(call[4], 0);
  std::vector<int64_t> found;
  for (int64_t row = 0; row < call[1].shape[0] * classes; ++row) {
    ArrayRef<double> own = ArrayRef<double>(scores).slice(row * count, count);
    std::vector<int64_t> order;
    for (int64_t i = 0; i < count; ++i)
      if (!op.getBounded() || own[i] > least)
        order.push_back(i);
    llvm::sort(order, [&](int64_t a, int64_t b) { // NaN first, equal ones in order
      bool isNan = own[a] != own[a], isOther = own[b] != own[b];
      if (isNan != isOther)
        return isNan;
      return isNan || own[a] == own[b] ? a < b : own[a] > own[b];
    });
    std::vector<Box> taken;
    for (int64_t i : order) {
      ArrayRef<double> numbers = ArrayRef<double>(boxes).slice((row / classes * count + i) * 4, 4);
      Box box = boxOf(numbers, op.getCenter());
      if (static_cast<int64_t>(taken.size()) >= most ||
          llvm::any_of(taken, [&](const Box &other) { return isCovered(other, box, overlap); }))
        continue;
      taken.push_back(box);
      found.insert(found.end(), {row / classes, row % classes, i});
    }
  }
  auto result = call.allocate({static_cast<int64_t>(found.size() / 3), 3});
  if (!result)
    return result.takeError();
  store<int64_t>(*result, found);
  return single(*result);
}

/// The integer whose order is that of the floats of x's type; NaN is not asked for.
static int64_t keyOf(double value, bool isDouble) {
  if (value == 0)
    return 0;
  int64_t bits = isDouble ? llvm::bit_cast<int64_t>(value)
                          : llvm::bit_cast<int32_t>(static_cast<float>(value));
  return bits >= 0 ? bits : bits ^ (isDouble ? INT64_MAX : INT32_MAX);
}

Results compute(ForestOp op, const Call &call) {
  const Tensor &x = call[0];
  std::vector<int64_t> nodes = load<int64_t>(call[1]), roots = load<int64_t>(call[2]);
  std::vector<double> values = load<double>(x), weights = load<double>(call[3]);
  int64_t features = x.shape[1], targets = call[3].shape[1];
  auto result = call.allocate({x.shape[0], targets});
  if (!result)
    return result.takeError();
  std::vector<double> sums;
  for (int64_t row = 0; row < x.shape[0]; ++row)
    for (int64_t k = 0; k < targets; ++k) {
      double sum = op.getCombine() == 0 ? 0 : op.getCombine() == 1 ? INFINITY : -INFINITY;
      for (size_t tree = 0; tree < roots.size(); tree += 2) {
        int64_t at = roots[tree];
        for (int64_t step = 0; step < roots[tree + 1]; ++step) {
          int64_t feature = nodes[2 * at + 1] & 0xffffffff, child = nodes[2 * at + 1] >> 32;
          bool isMirror = feature >= features;
          double value = values[row * features + (isMirror ? feature - features : feature)];
          int64_t key = value == value ? keyOf(value, x.element.isF64())
                        : isMirror     ? INT64_MIN
                                       : INT64_MAX;
          at = child + (key > nodes[2 * at]);
        }
        double weight = weights[at * targets + k];
        sum = op.getCombine() == 0   ? sum + weight
              : op.getCombine() == 1 ? std::min(sum, weight)
                                     : std::max(sum, weight);
      }
      sums.push_back(sum);
    }
  store<double>(*result, sums);
  return single(*result);
}

Results compute(FourierOp op, const Call &call) {
  const Tensor &x = call[0];
  auto shape = call.shapeOfResult();
  auto lengths = call.sizesOf(op.getLength());
  if (!shape || !lengths)
    return llvm::joinErrors(shape.takeError(), lengths.takeError());
  int64_t axis = op.getAxis(), length = lengths->front(), parts = x.shape.back();
  auto result = call.allocate(*shape);
  if (!result || result->count() == 0)
    return result ? single(*result) : Results(result.takeError());
  if (length < 1)
    return call.error("a transform of length " + Twine(length));
  std::vector<double> values = load<double>(x), sums(result->count());
  SmallVector<int64_t> strides = stridesOf(x.shape);
  bool isInverse = op.getInverse(), isReal = isInverse && op.getOnesided();
  forEachIndex(*shape, [&](ArrayRef<int64_t> index, int64_t number) {
    int64_t start = 0, frequency = index[axis];
    for (size_t i = 0; i + 1 < index.size(); ++i)
      start += static_cast<int64_t>(i) == axis ? 0 : index[i] * strides[i];
    double sum = 0;
    for (int64_t k = 0; k < length; ++k) {
      bool isMirror = isReal && 2 * k > length, isAlone = k == 0 || 2 * k == length;
      int64_t place = isMirror ? length - k : k;
      if (place >= x.shape[axis])
        continue;
      const double *from = values.data() + start + place * strides[axis];
      double re = from[0], im = parts == 2 && (isInverse || !op.getOnesided()) ? from[1] : 0;
      im = isReal && isAlone ? 0 : isMirror ? -im : im;
      double angle = 2 * M_PI * (frequency * k % length) / length * (isInverse ? 1 : -1);
      sum += index.back() == 0 ? re * std::cos(angle) - im * std::sin(angle)
                               : re * std::sin(angle) + im * std::cos(angle);
    }
    sums[number] = isInverse ? sum / length : sum;
  });
  store<double>(*result, sums);
  return single(*result);
}

} // namespace heddle::reference
