// Rewriting: builders of the ops that move elements, and the driver of rules.

#include "compiler/simplify/Rewriting.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

bool isFloat(Value value) { return isa<FloatType>(elementOf(value)); }

Value reshapeTo(OpBuilder &builder, Location location, Value x, ArrayRef<Dim> dims) {
  auto type = tensorOf(builder.getContext(), dims, elementOf(x));
  return type == x.getType() ? x : builder.create<ReshapeOp>(location, type, x).getResult();
}

Value broadcastTo(OpBuilder &builder, Location location, Value x, ArrayRef<Dim> dims) {
  auto type = tensorOf(builder.getContext(), dims, elementOf(x));
  return type == x.getType() ? x : builder.create<BroadcastOp>(location, type, x).getResult();
}

Value splat(OpBuilder &builder, Location location, Type element, double number,
            ArrayRef<Dim> sizes) {
  return broadcastTo(builder, location, scalar(builder, location, element, number), sizes);
}

Value transposeBy(OpBuilder &builder, Location location, Value x, ArrayRef<int64_t> permutation) {
  if (isIdentity(permutation))
    return x;
  DimVector from = dimsOf(x);
  if (isReshape(from, permutation))
    return reshapeTo(builder, location, x, permuted(from, permutation));
  return builder.create<TransposeOp>(location, x, builder.getDenseI64ArrayAttr(permutation));
}

Value withoutOnes(OpBuilder &builder, Value x) {
  DimVector sizes = dimsOf(x);
  llvm::erase_if(sizes, [](const Dim &size) { return size.isConstant(1); });
  return reshapeTo(builder, x.getLoc(), x, sizes);
}

Value spread(OpBuilder &builder, Value vector, int64_t axis, ArrayRef<Dim> sizes) {
  DimVector aligned;
  if (rankOf(vector) == 1) {
    aligned.assign(sizes.size() - axis, Dim(1));
    aligned[0] = dimsOf(vector)[0];
  }
  vector = reshapeTo(builder, vector.getLoc(), vector, aligned);
  return broadcastTo(builder, vector.getLoc(), vector, sizes);
}

DimVector permuted(ArrayRef<Dim> sizes, ArrayRef<int64_t> permutation) {
  DimVector result;
  for (int64_t axis : permutation)
    result.push_back(sizes[axis]);
  return result;
}

SmallVector<int64_t> inverse(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> result(permutation.size());
  for (auto [to, from] : llvm::enumerate(permutation))
    result[from] = to;
  return result;
}

bool isIdentity(ArrayRef<int64_t> permutation) {
  return llvm::all_of(llvm::enumerate(permutation), [](auto entry) {
    return static_cast<int64_t>(entry.index()) == entry.value();
  });
}

bool isReshape(ArrayRef<Dim> sizes, ArrayRef<int64_t> permutation) {
  int64_t last = -1;
  for (int64_t axis : permutation) {
    if (sizes[axis].isConstant(1))
      continue;
    if (axis < last)
      return false;
    last = axis;
  }
  return true;
}

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
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](RankedTensorType type) -> std::pair<Type, WalkResult> {
    if (!isa_and_nonnull<DimsAttr>(type.getEncoding()))
      return {type, WalkResult::skip()};
    return {tensorOf(type.getContext(), resolve(refinement, dimsOf(type)), type.getElementType()),
            WalkResult::skip()};
  });
  replacer.addReplacement([&](DimsAttr attr) -> std::pair<Attribute, WalkResult> {
    return {dimsAttr(attr.getContext(), resolve(refinement, dimsOf(attr))), WalkResult::skip()};
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

} // namespace heddle::simplify
