// Group: see Group.h.

#include "compiler/trial/Group.h"

#include "compiler/graph/edit/Sizes.h"
#include "compiler/warehouse/Warehouse.h"

using namespace mlir;

namespace heddle::trial {

std::unique_ptr<MLIRContext> makeContext() {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  DialectRegistry registry;
  warehouse::registerDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadDialect<graph::GraphDialect, func::FuncDialect, transform::TransformDialect>();
  return context;
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

graph::GroupOp groupOf(ModuleOp module) {
  graph::GroupOp found;
  module.walk([&](graph::GroupOp group) { found = group; });
  return found;
}

void fixSizes(ModuleOp module, const Sizes &sizes) {
  graph::substituteSymbols(module, [&](StringRef symbol) -> std::optional<graph::Dim> {
    auto known = sizes.find(symbol.str());
    return known == sizes.end() ? std::nullopt : std::optional(graph::Dim(known->second));
  });
}

} // namespace heddle::trial
