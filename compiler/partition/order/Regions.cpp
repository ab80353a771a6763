// Regions: walks the groups of a block in order and keeps the region that is still open.

#include "compiler/partition/order/Regions.h"

using namespace mlir;

namespace heddle::partition {

/// Tensors that the group reads, but for constants.
static llvm::DenseSet<Value> readsOf(graph::GroupOp group) {
  llvm::DenseSet<Value> reads;
  group.walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (operand.getParentBlock() == group->getBlock() &&
          !operand.getDefiningOp<graph::ConstantOp>())
        reads.insert(graph::unshaped(operand));
  });
  return reads;
}

namespace {
class Packer {
public:
  Packer(const std::map<std::string, int64_t> *wanted, size_t mostAtOnce)
      : wanted(wanted), mostAtOnce(mostAtOnce) {}

  void run(Block &block) {
    for (Operation &op : block) {
      if (isa<graph::ConstantOp, graph::ReshapeOp>(op))
        continue;
      if (auto group = dyn_cast<graph::GroupOp>(op))
        add(group);
      else
        close();
    }
    close();
  }

private:
  void add(graph::GroupOp group) {
    auto reads = readsOf(group);
    bool isIndependent = llvm::none_of(open, [&](graph::GroupOp member) {
      return llvm::any_of(member.getResults(), [&](Value made) { return reads.contains(made); });
    });
    bool isFull = !wanted && open.size() >= mostAtOnce;
    if (!isIndependent || isFull || !isWantedHere(group))
      close();
    open.push_back(group);
  }

  int64_t wantedRegion(graph::GroupOp group) const {
    auto found = wanted->find(group.getName().str());
    return found == wanted->end() ? -1 : found->second;
  }

  bool isWantedHere(graph::GroupOp group) const {
    return !wanted || (wantedRegion(group) >= 0 && llvm::all_of(open, [&](graph::GroupOp member) {
                         return wantedRegion(member) == wantedRegion(group);
                       }));
  }

  void close() {
    if (open.size() > 1) {
      for (graph::GroupOp group : open)
        group.setRegion(regions);
      ++regions;
    }
    open.clear();
  }

  const std::map<std::string, int64_t> *wanted;
  size_t mostAtOnce;
  SmallVector<graph::GroupOp> open;
  int64_t regions = 0;
};
} // namespace

void packRegions(Block &block, const std::map<std::string, int64_t> *wanted, size_t mostAtOnce) {
  Packer(wanted, mostAtOnce).run(block);
}

} // namespace heddle::partition
