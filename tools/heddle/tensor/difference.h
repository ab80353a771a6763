// Difference: how far two tensors are apart, and whether that is allowed.
//
//   floats    |actual - expected| <= atol + rtol |expected|, or <= share of the largest finite
//             |expected|; NaN equals NaN, inf equals inf
//   integers  of at most 16 bits, which are quantised values: within `steps`; wider ones equal
//   others    equal
#ifndef HEDDLE_TOOLS_HEDDLE_TENSOR_DIFFERENCE_H
#define HEDDLE_TOOLS_HEDDLE_TENSOR_DIFFERENCE_H

#include "tools/heddle/tensor/tensor.h"

#include <optional>

namespace heddle::cli {

struct Tolerance {
  double rtol = 1e-4, atol = 1e-4;
  std::optional<double> share; // of an output's largest number
  int64_t steps = 1;
};

struct Difference {
  std::string mismatch;         // dtypes or shapes that differ; then nothing else is said
  double largest = 0;           // |actual - expected|
  double excess = 0;            // the largest quotient of a difference and what is allowed
  int64_t wrong = 0;            // elements beyond what is allowed
  int64_t worst = -1;           // index of the element with the largest excess
  std::string actual, expected; // the worst element's

  bool isAllowed() const { return mismatch.empty() && wrong == 0; }
  /// "within 1e-4 ..." or what is wrong, without the tensor's name.
  std::string text() const;
};

/// `step` > 0: floats that a DequantizeLinear made, allowed to differ by `steps` of them.
Difference differenceOf(const Tensor &actual, const Tensor &expected, Tolerance tolerance,
                        double step = 0);

} // namespace heddle::cli

#endif
