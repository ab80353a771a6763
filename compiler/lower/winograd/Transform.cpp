// Transform: rows of the matrices as sums, each with one addition or multiply-add a coefficient.

#include "compiler/lower/winograd/Transform.h"

using namespace mlir;

namespace heddle::lower {

WinogradTransform::WinogradTransform(int64_t outputs) {
  if (outputs == 2)
    pairs = {1};
  else
    pairs = {0.75, 1.5};
  std::vector<double> points{0};
  for (double p : pairs)
    points.insert(points.end(), {p, -p});
  for (double p : points) {
    double divisor = 1;
    for (double q : points)
      divisor *= p == q ? 1 : p - q;
    filterRows.push_back({1 / divisor, p / divisor, p * p / divisor});
  }
  filterRows.push_back({0, 0, 1}); // infinity
}

SmallVector<double> WinogradTransform::product(size_t left) const {
  SmallVector<double> polynomial{1};
  for (auto [i, p] : llvm::enumerate(pairs)) {
    if (i == left)
      continue;
    SmallVector<double> next(polynomial.size() + 1, 0);
    for (auto [k, coefficient] : llvm::enumerate(polynomial)) {
      next[k + 1] += coefficient;
      next[k] -= p * p * coefficient;
    }
    polynomial = std::move(next);
  }
  return polynomial;
}

/// sum + factor * value.
static Value addTimes(Code &code, Value sum, double factor, Value value) {
  if (factor == 1)
    return code.b.create<arith::AddFOp>(code.loc, sum, value);
  if (factor == -1)
    return code.b.create<arith::SubFOp>(code.loc, sum, value);
  Type element = getElementTypeOrSelf(value.getType());
  return code.b.create<math::FmaOp>(code.loc, code.spread(code.constantOf(element, factor)), value,
                                    sum);
}

static Value times(Code &code, double factor, Value value) {
  if (factor == 1)
    return value;
  Type element = getElementTypeOrSelf(value.getType());
  return code.b.create<arith::MulFOp>(code.loc, code.spread(code.constantOf(element, factor)),
                                      value);
}

/// The sum of coefficients[k] * values[first + 2 k]; the last coefficient is 1.
static Value everySecond(Code &code, ArrayRef<double> coefficients, ArrayRef<Value> values,
                         size_t first) {
  Value sum = values[first + 2 * (coefficients.size() - 1)];
  for (size_t k = coefficients.size() - 1; k-- > 0;)
    sum = addTimes(code, sum, coefficients[k], values[first + 2 * k]);
  return sum;
}

Values WinogradTransform::input(Code &code, ArrayRef<Value> pixels) const {
  SmallVector<double> all = product(pairs.size());
  Values result{everySecond(code, all, pixels, 0)};
  for (auto [i, p] : llvm::enumerate(pairs)) {
    SmallVector<double> others = product(i);
    Value even = everySecond(code, others, pixels, 2), odd = everySecond(code, others, pixels, 1);
    result.push_back(addTimes(code, even, p, odd));
    result.push_back(addTimes(code, even, -p, odd));
  }
  result.push_back(everySecond(code, all, pixels, 1));
  return result;
}

Values WinogradTransform::output(Code &code, ArrayRef<Value> products) const {
  Values sums, differences;
  for (size_t i = 0; i < pairs.size(); ++i) {
    sums.push_back(addTimes(code, products[2 * i + 1], 1, products[2 * i + 2]));
    differences.push_back(addTimes(code, products[2 * i + 1], -1, products[2 * i + 2]));
  }
  Values result;
  for (int64_t power = 0; power < outputs(); ++power) {
    ArrayRef<Value> terms = power % 2 == 0 ? sums : differences;
    Value sum = power == 0 ? products.front() : Value();
    if (power == outputs() - 1)
      sum = products.back();
    for (auto [p, term] : llvm::zip(pairs, terms)) {
      double factor = std::pow(p, power);
      sum = sum ? addTimes(code, sum, factor, term) : times(code, factor, term);
    }
    result.push_back(sum);
  }
  return result;
}

/// Rows of a pair differ in the sign of their middle coefficient.
Values WinogradTransform::filter(Code &code, ArrayRef<Value> taps) const {
  Values result{times(code, filterRows[0][0], taps[0])};
  for (size_t row = 1; row < filterRows.size() - 1; row += 2) {
    auto [first, middle, last] = filterRows[row];
    Value even = addTimes(code, times(code, last, taps[2]), first, taps[0]);
    result.push_back(addTimes(code, even, middle, taps[1]));
    result.push_back(addTimes(code, even, -middle, taps[1]));
  }
  result.push_back(taps[2]);
  return result;
}

SmallVector<double> WinogradTransform::filter(ArrayRef<double> taps) const {
  SmallVector<double> result;
  for (auto &row : filterRows) {
    std::array<double, 3> sums{};
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j)
        sums[j] += row[i] * taps[i * 3 + j];
    for (auto &column : filterRows)
      result.push_back(column[0] * sums[0] + column[1] * sums[1] + column[2] * sums[2]);
  }
  return result;
}

} // namespace heddle::lower
