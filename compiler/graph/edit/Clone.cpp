// Clone: a size known only at run time has one op that binds its name, so a copy binds another
// one.

#include "compiler/graph/edit/Clone.h"

#include "compiler/graph/edit/Sizes.h"

#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace heddle::graph {

SmallVector<Value> usedBy(Operation *op) {
  SmallVector<Value> used(op->getOperands());
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  used.append(captured.begin(), captured.end());
  return used;
}

static void collect(ArrayRef<Dim> dims, SmallVectorImpl<std::string> &names) {
  for (const Dim &dim : dims)
    dim.collectSymbols(names);
}

/// Names that the op gives to sizes: those of its results that none of its operands has.
static SmallVector<std::string> boundBy(Operation *op) {
  SmallVector<std::string> known, named, bound;
  for (Value used : usedBy(op))
    collect(dimsOf(used), known);
  for (Value result : op->getResults())
    collect(dimsOf(result), named);
  if (auto sizes = dyn_cast<BindSizesOp>(op))
    collect(dimsOf(sizes.getSymbols()), named);
  llvm::copy_if(named, std::back_inserter(bound), [&](const std::string &name) {
    return StringRef(name).starts_with("$") && !llvm::is_contained(known, name);
  });
  return bound;
}

using Names = llvm::StringMap<Dim>;

static void rename(Operation *op, const Names &names) {
  substituteSymbols(op, [&](StringRef name) -> std::optional<Dim> {
    auto found = names.find(name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  });
}

/// Names for copies of all sizes that are bound by the op and below it.
static void addNames(Operation *op, Operation *parent, Names &names) {
  op->walk([&](Operation *inner) {
    if (bindsSizes(inner))
      for (const std::string &name : boundBy(inner))
        names.try_emplace(name, freshSymbol(parent, "copy"));
  });
}

SmallVector<Operation *> cloneOps(OpBuilder &builder, ArrayRef<Operation *> ops,
                                  IRMapping &mapping) {
  SmallVector<Operation *> copies;
  Names names;
  for (Operation *op : ops) {
    addNames(op, builder.getInsertionBlock()->getParentOp(), names);
    copies.push_back(builder.clone(*op, mapping));
  }
  if (!names.empty())
    for (Operation *copy : copies)
      rename(copy, names);
  return copies;
}

Operation *cloneToReplace(OpBuilder &builder, Operation *op, IRMapping &mapping) {
  Names names;
  addNames(op, builder.getInsertionBlock()->getParentOp(), names);
  Operation *copy = builder.clone(*op, mapping);
  rename(op, names);
  return copy;
}

} // namespace heddle::graph
