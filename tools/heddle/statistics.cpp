// Statistics: quantiles, interpolated between the two samples beside them.

#include "tools/heddle/statistics.h"

#include <algorithm>

namespace heddle::cli {

static double quantile(const std::vector<double> &sorted, double q) {
  double position = q * static_cast<double>(sorted.size() - 1);
  size_t below = static_cast<size_t>(position);
  size_t above = std::min(below + 1, sorted.size() - 1);
  double part = position - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

Statistics summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {samples.size(), samples.front(), quantile(samples, 0.5), quantile(samples, 0.9),
          quantile(samples, 0.99)};
}

} // namespace heddle::cli
