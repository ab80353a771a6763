// Statistics: what a bench says about many runs.
#ifndef HEDDLE_TOOLS_HEDDLE_STATISTICS_H
#define HEDDLE_TOOLS_HEDDLE_STATISTICS_H

#include <cstddef>
#include <vector>

namespace heddle::cli {

struct Statistics {
  size_t runs = 0;
  double min = 0, median = 0, p90 = 0, p99 = 0; // in the unit of the samples
};

/// `samples` is not empty.
Statistics summarize(std::vector<double> samples);

} // namespace heddle::cli

#endif
