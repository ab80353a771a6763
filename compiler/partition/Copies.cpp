// Copies: what costs nothing to compute again, or need not be computed at all, for each of its
// users.

#include "compiler/mechanism/Product.h"
#include "compiler/partition/Steps.h"

using namespace mlir;

namespace heddle::partition {

/// Whether the op can take its operands into its kernel, element by element.
static bool readsInPlace(Operation *op) {
  return graph::isElementwise(op) || isa<graph::TransposeOp>(op) || !graph::reducedAxes(op).empty();
}

void copyFreeOps(Groups &groups) {
  Block &block = groups.block;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    bool widens = groups.options.fuses && groups.policy.widensAtReaders() && isWidening(&op);
    if (!(graph::isFree(&op) || widens) || isHost(&op))
      continue; // else it costs nothing to do again
    SmallVector<OpOperand *> uses;
    bool isTaken = false; // the op itself, by somebody who needs a widened one in memory
    for (OpOperand &use : op.getUses())
      if (widens && !readsInPlace(use.getOwner()))
        isTaken = true;
      else
        uses.push_back(&use);
    for (OpOperand *use : ArrayRef(uses).drop_front(isTaken || uses.empty() ? 0 : 1)) {
      if (use->getOwner()->getBlock() != &block || isHost(use->getOwner()))
        continue;
      Operation *copy = OpBuilder(&op).clone(op);
      use->set(copy->getResult(0));
    }
  }
}

void copyTransposes(Groups &groups) {
  if (!groups.options.fuses || !groups.policy.readsThroughTransposes())
    return;
  Block &block = groups.block;
  auto reads = [&](OpOperand &use) {
    auto product = dyn_cast<graph::MatmulOp>(use.getOwner());
    return product && product->getBlock() == &block && !groups.has(product) &&
           (use.getOperandNumber() == 1 ||
            mechanism::readsThrough(product, cast<graph::TransposeOp>(use.get().getDefiningOp())));
  };
  for (auto op : llvm::make_early_inc_range(block.getOps<graph::TransposeOp>())) {
    if (op->use_empty() || groups.has(op) || !llvm::all_of(op->getUses(), reads))
      continue;
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getUses())
      uses.push_back(&use);
    for (OpOperand *use : ArrayRef<OpOperand *>(uses).drop_front())
      use->set(OpBuilder(op).clone(*op)->getResult(0));
  }
}

} // namespace heddle::partition
