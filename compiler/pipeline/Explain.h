// Explain: what was decided about each group of a compiled model, and why, as JSON.
//
// It reads what the stages left on the graph and in the program; it decides nothing and changes
// nothing. docs/guide/explain.md describes the fields.
#ifndef HEDDLE_PIPELINE_EXPLAIN_H
#define HEDDLE_PIPELINE_EXPLAIN_H

#include "compiler/pipeline/Pipeline.h"

namespace heddle {

/// Sizes of a run, for which work and traffic are told as numbers.
struct RunSizes {
  std::map<std::string, int64_t> symbols;
  std::vector<int64_t> lengths; // those of a ragged model's rows
};

llvm::Expected<std::string> explain(const Compiled &compiled, const RunSizes &sizes = {});

} // namespace heddle

#endif // HEDDLE_PIPELINE_EXPLAIN_H
