// GroupText: see GroupText.h.

#include "compiler/learn/GroupText.h"

#include "compiler/graph/edit/Sizes.h"
#include "compiler/records/GroupKey.h"
#include "compiler/support/Error.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace heddle::learn {

llvm::Expected<OwningOpRef<ModuleOp>> parseGroup(MLIRContext &context, StringRef text) {
  std::string problem;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    problem += (problem.empty() ? "" : "; ") + diagnostic.str();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return makeError(ErrorCode::Refused, problem);
  if (graph::GroupOp group = groupOf(*module))
    records::readWords(group);
  return module;
}

void setSizes(ModuleOp module, ArrayRef<int64_t> sizes) {
  graph::substituteSymbols(module, [&](StringRef symbol) -> std::optional<graph::Dim> {
    size_t number = 0;
    if (!symbol.consume_front("$") || symbol.getAsInteger(10, number) || number >= sizes.size())
      return std::nullopt;
    return graph::Dim(sizes[number]);
  });
}

graph::GroupOp groupOf(ModuleOp module) {
  graph::GroupOp group;
  module.walk([&](graph::GroupOp each) { group = each; });
  return group;
}

} // namespace heddle::learn
