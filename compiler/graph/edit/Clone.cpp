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

SmallVector<Operation *> cloneOps(OpBuilder &builder, ArrayRef<Operation *> ops,
                                  IRMapping &mapping) {
  SmallVector<Operation *> copies;
  llvm::StringMap<Dim> renamed;
  Operation *parent = builder.getInsertionBlock()->getParentOp();
  for (Operation *op : ops) {
    op->walk([&](Operation *inner) {
      if (bindsSymbols(inner))
        for (const std::string &name : boundBy(inner))
          renamed.try_emplace(name, freshSymbol(parent, "copy"));
    });
    copies.push_back(builder.clone(*op, mapping));
  }
  if (renamed.empty())
    return copies;
  for (Operation *copy : copies)
    substituteSymbols(copy, [&](StringRef name) -> std::optional<Dim> {
      auto found = renamed.find(name);
      return found == renamed.end() ? std::nullopt : std::optional(found->second);
    });
  return copies;
}

} // namespace heddle::graph
