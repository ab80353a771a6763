// DimFuzz: whatever a size expression is made of, its value is that of exact arithmetic, or none.
//
// `./dev fuzz-dims` builds and runs this; DimTest runs a fixed number of expressions.

#include "compiler/graph/fuzz/DimExpression.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string problem = heddle::graph::DimExpression({data, size}).problem();
  if (problem.empty())
    return 0;
  llvm::errs() << problem << "\n";
  abort();
}
