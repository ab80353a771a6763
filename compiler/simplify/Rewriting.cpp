// Rewriting: the driver of rules, and sizes that rules find.

#include "compiler/simplify/Rewriting.h"

#include "compiler/graph/edit/Sizes.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

bool isFloat(Value value) { return isa<FloatType>(elementOf(value)); }

Operation *rebuild(OpBuilder &builder, Operation *op, ValueRange operands, TypeRange results) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(results);
  state.addAttributes(op->getAttrs());
  return builder.create(state);
}

LogicalResult applyRules(Operation *root, RewritePatternSet &&patterns) {
  GreedyRewriteConfig config;
  config.enableRegionSimplification = GreedySimplifyRegionLevel::Disabled;
  config.useTopDownTraversal = true;
  // Reaching the limit of iterations leaves a graph that is right, only less simple.
  (void)applyPatternsAndFoldGreedily(root, FrozenRewritePatternSet(std::move(patterns)), config);
  return success();
}

DimVector resolve(const Refinement &refinement, ArrayRef<Dim> sizes) {
  DimVector result;
  for (const Dim &size : sizes)
    result.push_back(size.substitute([&](StringRef name) -> std::optional<Dim> {
      auto place = refinement.find(name);
      return place == refinement.end() ? std::nullopt : std::optional<Dim>(place->second);
    }));
  return result;
}

DimVector refine(Refinement &refinement, ArrayRef<Dim> was, ArrayRef<Dim> is) {
  DimVector result;
  for (auto [old, resolved] : llvm::zip(was, resolve(refinement, is))) {
    auto symbol = old.symbolName();
    SmallVector<std::string> used;
    resolved.collectSymbols(used);
    // Only symbols that an op bound are refined ("$..."), never those of the model's inputs.
    bool isFree = symbol && StringRef(*symbol).starts_with("$") &&
                  !llvm::is_contained(used, *symbol) && !llvm::is_contained(used, "?") &&
                  !refinement.count(*symbol);
    if (isFree)
      refinement.try_emplace(*symbol, resolved);
    result.push_back(isFree ? resolved : old);
  }
  return result;
}

void applyRefinement(ModuleOp module, const Refinement &refinement) {
  if (refinement.empty())
    return;
  graph::substituteSymbols(module, [&](StringRef name) -> std::optional<Dim> {
    auto found = refinement.find(name);
    return found == refinement.end() ? std::nullopt : std::optional(found->second);
  });
}

} // namespace heddle::simplify
