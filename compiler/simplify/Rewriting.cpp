// Rewriting: the driver of rules, and sizes that rules find.

#include "compiler/simplify/Rewriting.h"

#include "compiler/graph/edit/Build.h"
#include "compiler/graph/edit/Sizes.h"
#include "compiler/graph/edit/Words.h"

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
                  !llvm::is_contained(used, *symbol) && !refinement.count(*symbol);
    if (isFree)
      refinement.try_emplace(*symbol, resolved);
    result.push_back(isFree ? resolved : old);
  }
  return result;
}

/// Replaces an op by a run that fails where it stands, with `why`, and by zeros for what reads it.
static void failInstead(Operation *op, StringRef why) {
  OpBuilder builder(op);
  auto type = RankedTensorType::get({1}, builder.getI64Type());
  Value never = builder.create<ConstantOp>(op->getLoc(), type,
                                           DenseElementsAttr::get(type, ArrayRef<int64_t>{-1}));
  Dim symbol = freshSymbol(op->getParentOp(), "check");
  builder.create<BindSizesOp>(op->getLoc(), never, Value(), dimsAttr(op->getContext(), symbol),
                              why);
  for (Value result : op->getResults())
    result.replaceAllUsesWith(Build(builder, op).full(dimsOf(result), elementOf(result), 0));
  op->erase();
}

/// Sizes of the model's own may contradict each other once they are known. Only the run says
/// whether it comes to such an op.
static void replaceContradictions(ModuleOp module) {
  SmallVector<std::pair<Operation *, std::string>> found;
  std::string why;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    why = plainly(diagnostic.str());
    return success();
  });
  module.walk([&](Operation *op) {
    bool isPlain = op->getNumRegions() == 0 && isa<GraphDialect>(op->getDialect()) &&
                   !op->hasTrait<OpTrait::IsTerminator>() && !bindsSizes(op) &&
                   llvm::all_of(op->getResultTypes(), [](Type type) {
                     return storageOf(getElementTypeOrSelf(type)).isIntOrFloat();
                   });
    if (isPlain && failed(verify(op, /*verifyRecursively=*/false)))
      found.push_back({op, why});
  });
  for (auto &[op, text] : found)
    failInstead(op, text);
}

void applyRefinement(ModuleOp module, const Refinement &refinement) {
  if (refinement.empty())
    return;
  graph::substituteSymbols(module, [&](StringRef name) -> std::optional<Dim> {
    auto found = refinement.find(name);
    return found == refinement.end() ? std::nullopt : std::optional(found->second);
  });
  replaceContradictions(module);
}

} // namespace heddle::simplify
