// Difference: see difference.h.

#include "tools/heddle/tensor/difference.h"

#include "tools/heddle/table.h"

#include <cmath>
#include <limits>

namespace heddle::cli {

/// The quotient of |a - b| and what is allowed; at most 1 is right.
static double excessOf(double distance, double allowed) {
  if (distance == 0)
    return 0;
  return allowed > 0 ? distance / allowed : std::numeric_limits<double>::infinity();
}

static double distanceOf(double actual, double expected) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected)))
    return 0;
  double distance = std::fabs(actual - expected);
  return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

static double distanceOfIntegers(const Tensor &actual, const Tensor &expected, int64_t index) {
  int64_t a = integerElement(actual, index), b = integerElement(expected, index);
  if (a == b)
    return 0;
  double distance = std::fabs(element(actual, index) - element(expected, index));
  return distance > 0 ? distance : 1; // beyond 2^53 doubles may be equal
}

/// The largest |element| that is finite, of floats.
static double largestOf(const Tensor &tensor, int64_t parts) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.count() * parts; ++i)
    if (double size = std::fabs(element(tensor, i)); std::isfinite(size))
      largest = std::max(largest, size);
  return largest;
}

Difference differenceOf(const Tensor &actual, const Tensor &expected, Tolerance tolerance,
                        double step) {
  Difference result;
  if (actual.dtype != expected.dtype || actual.dims != expected.dims) {
    result.mismatch = std::string(heddle_dtype_name(actual.dtype)) + " " + formatDims(actual.dims) +
                      ", expected " + heddle_dtype_name(expected.dtype) + " " +
                      formatDims(expected.dims);
    return result;
  }
  bool isExact = actual.dtype == HEDDLE_STRING || actual.dtype == HEDDLE_BOOL ||
                 (isInteger(actual.dtype) && heddle_dtype_bits(actual.dtype) > 16);
  bool isCounted = isInteger(actual.dtype) || actual.dtype == HEDDLE_BOOL;
  auto steps = static_cast<double>(tolerance.steps);
  int64_t parts = isComplex(actual.dtype) ? 2 : 1;
  bool isFloat = !isCounted && actual.dtype != HEDDLE_STRING;
  double least = tolerance.atol;
  if (isFloat && tolerance.share.value_or(0) > 0)
    least = std::max(least, *tolerance.share * largestOf(expected, parts));
  for (int64_t i = 0; i < actual.count() * parts; ++i) {
    double distance = 0, allowed = 0;
    if (actual.dtype == HEDDLE_STRING) {
      auto at = static_cast<size_t>(i);
      distance = actual.strings[at] == expected.strings[at] ? 0 : 1;
    } else if (isCounted) {
      distance = distanceOfIntegers(actual, expected, i);
      allowed = isExact ? 0 : steps;
    } else {
      double value = element(expected, i);
      distance = distanceOf(element(actual, i), value);
      bool isFinite = std::isfinite(value);
      allowed =
          std::max(least, tolerance.atol + (isFinite ? tolerance.rtol * std::fabs(value) : 0));
      if (step > 0) // a thousandth more, for the rounding of the two products
        allowed = std::max(allowed, steps * step * 1.001);
    }
    result.largest = std::max(result.largest, distance);
    double excess = excessOf(distance, allowed);
    result.wrong += excess > 1;
    if (excess > result.excess) {
      result.excess = excess;
      result.worst = i / parts;
    }
  }
  if (result.worst >= 0) {
    result.actual = formatElement(actual, result.worst);
    result.expected = formatElement(expected, result.worst);
  }
  return result;
}

std::string Difference::text() const {
  if (!mismatch.empty())
    return "is " + mismatch;
  if (wrong == 0)
    return "agrees, largest difference " + formatNumber(largest, 3);
  return std::to_string(wrong) + (wrong == 1 ? " element differs" : " elements differ") +
         ", the worst at " + std::to_string(worst) + ": " + actual + ", expected " + expected +
         ", " + formatNumber(excess, 3) + " times what is allowed";
}

} // namespace heddle::cli
