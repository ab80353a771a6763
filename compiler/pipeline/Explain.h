// Explain: what was decided about each group of a compiled model, and why, as JSON.
//
// It reads what the stages left on the graph and in the program; it decides nothing and changes
// nothing. docs/guide/explain.md describes the fields.
#ifndef HEDDLE_PIPELINE_EXPLAIN_H
#define HEDDLE_PIPELINE_EXPLAIN_H

#include "compiler/pipeline/Pipeline.h"

namespace heddle {

llvm::Expected<std::string> explain(const Compiled &compiled);

} // namespace heddle

#endif // HEDDLE_PIPELINE_EXPLAIN_H
