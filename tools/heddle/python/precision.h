// Precision: `heddle compile --tolerance`, whose search is Heddle's Python package.
#ifndef HEDDLE_TOOLS_HEDDLE_PYTHON_PRECISION_H
#define HEDDLE_TOOLS_HEDDLE_PYTHON_PRECISION_H

#include "tools/heddle/model.h"

namespace heddle::cli {

/// How precisions of groups are chosen.
struct PrecisionOptions {
  std::optional<double> tolerance; // greatest error of an output, relative to its largest number
  std::vector<std::string> data;   // files of samples; none: random inputs
  int batch = 1;                   // samples of a run, where the model leaves that open
  bool isEach = false;             // the error of each group alone is measured
  bool isUntimed = false;          // nothing is timed: estimates say what is faster
};

void addPrecision(Parser app, PrecisionOptions &options);

/// Answer of the search: {"plan", "math", "facts", "text"}, the last two of
/// python/heddle/precision/report.py.
Json choosePrecision(const std::string &model, const PrecisionOptions &options,
                     const CompileOptions &compile);

} // namespace heddle::cli

#endif
