// Lanes: what pays on processors with vector registers and caches, where a tensor that is stored
// and read again costs bandwidth, and an element that is computed again costs instructions.

#include "compiler/partition/policy/Lanes.h"

#include "compiler/graph/Graph.h"
#include "compiler/warehouse/Warehouse.h"

using namespace mlir;

namespace heddle::partition {

/// Ops that are computed again for each reader, and readers that do so.
static constexpr size_t kMostCopied = 4;
/// More parts of a product's result would leave too few registers for rows.
static constexpr int64_t kMostParts = 4;
/// Groups of one launch.
static constexpr size_t kMostAtOnce = 16;

/// A view of what only moved: it saves the move's copy where it is read through.
static bool readsMove(Operation *reshape) {
  Operation *source = reshape->getOperand(0).getDefiningOp();
  return source && graph::isMovement(source) && !isa<graph::ReshapeOp>(source);
}

/// Whether the value has fewer elements than the result: its bytes count for nothing, and what
/// makes it cannot take in what makes the result.
static bool isSmall(Value value, Value result) {
  graph::DimVector dims = graph::dimsOf(value), all = graph::dimsOf(result);
  return dims.size() == all.size() && llvm::any_of(llvm::zip(dims, all), [](auto sizes) {
           auto [dim, full] = sizes;
           return dim.isConstant(1) && !full.isConstant(1);
         });
}

/// Whether reading what the group reads moves no more bytes than reading its result.
static bool isCheap(const Group &group, const Surroundings &around) {
  if (!group.onlyElementwise || group.members.size() > kMostCopied)
    return false;
  Value result = group.root()->getResult(0);
  int64_t bytes = 0; // of an element of all that it reads
  for (Operation *member : group.members) {
    if (isExpensive(member))
      return false;
    for (Value operand : member->getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (llvm::is_contained(group.members, source) || isa_and_nonnull<graph::ConstantOp>(source))
        continue;
      if (isSmall(operand, result))
        continue;
      // A source that only this group reads may take it in as its epilogue.
      if (source && around.isGrouped(source) && operand.hasOneUse())
        return false;
      if (graph::dimsOf(operand) == graph::dimsOf(result))
        bytes += graph::bytesOf(graph::elementOf(operand));
      else if (!isa<graph::BroadcastOp>(member))
        return false;
    }
  }
  return bytes <= graph::bytesOf(graph::elementOf(result));
}

namespace {
class Lanes : public FusionPolicy {
public:
  bool claims(ArrayRef<Operation *>, const Mechanism &) const override { return true; }

  /// Prologues that can be the epilogue of another skeleton op, those that are costly to compute
  /// again for each reader, and views at the rim, which are free outside.
  bool givesBack(Operation *op, ArrayRef<Operation *> claim,
                 llvm::function_ref<bool(Operation *)> isOpen) const override {
    bool isPrologue = llvm::none_of(op->getOperands(), [&](Value operand) {
      return llvm::is_contained(claim, operand.getDefiningOp());
    });
    if (isa<graph::ReshapeOp>(op))
      return isHost(op) && (isPrologue ? !readsMove(op) : op == claim.back());
    if (!isPrologue || !graph::isElementwise(op))
      return false;
    return graph::isCostly(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
             Operation *source = operand.getDefiningOp();
             return source && isOpen(source) && warehouse::decides(source);
           });
  }

  bool widensAtReaders() const override { return true; }
  bool readsThroughTransposes() const override { return true; }
  bool pays(Operation *op, const Group &group, const Surroundings &around) const override {
    return paysOnLanes(op, group, around);
  }
  bool recomputes(const Group &group, const Surroundings &around) const override {
    return isCheap(group, around);
  }
  size_t mostReaders() const override { return kMostCopied; }
  bool joinsParts(const Group &, int64_t parts) const override { return parts <= kMostParts; }
  /// Always: whether it pays depends on the kernel's tiles (whyApart).
  bool stitches(const Group &, const Group &) const override { return true; }
  std::string whyApart(const estimate::Stitching &kernel,
                       const program::Machine &machine) const override {
    return whyApartOnLanes(kernel, machine);
  }
  bool joins(const SiblingPair &pair) const override { return joinsOnLanes(pair); }
  size_t mostAtOnce() const override { return kMostAtOnce; }
};
} // namespace

const FusionPolicy &lanes() {
  static const Lanes policy;
  return policy;
}

} // namespace heddle::partition
