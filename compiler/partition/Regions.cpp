// Regions: walks the groups of a block in order and keeps the region that is still open.

#include "compiler/partition/Regions.h"

using namespace mlir;

namespace heddle::partition {

/// Results of fewer elements count as small: a launch costs about 5 us, in which a core computes
/// this many cheap elements.
static constexpr int64_t kSmallElements = 1 << 16;
static constexpr size_t kMostGroups = 16;

/// The value whose memory this one is.
static Value memoryOf(Value value) {
  while (auto reshape = value.getDefiningOp<graph::ReshapeOp>())
    value = reshape.getX();
  return value;
}

/// What the group reads, but for constants.
static llvm::DenseSet<Value> readsOf(graph::GroupOp group) {
  llvm::DenseSet<Value> reads;
  group.walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (operand.getParentBlock() == group->getBlock() &&
          !operand.getDefiningOp<graph::ConstantOp>())
        reads.insert(memoryOf(operand));
  });
  return reads;
}

static bool isSmall(graph::GroupOp group) {
  auto kind = group->getAttrOfType<StringAttr>("kind");
  return kind && (kind == "pointwise" || kind == "rows") &&
         llvm::all_of(group.getResults(), [](Value result) {
           auto count = graph::elementCount(graph::dimsOf(result)).constant();
           return count && *count < kSmallElements;
         });
}

namespace {
class Packer {
public:
  explicit Packer(const std::map<std::string, int64_t> *wanted) : wanted(wanted) {}

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
    if (!isIndependent || open.size() >= kMostGroups || !gains(group, reads))
      close();
    open.push_back(group);
    openReads.insert(reads.begin(), reads.end());
  }

  int64_t wantedRegion(graph::GroupOp group) const {
    auto found = wanted->find(group.getName().str());
    return found == wanted->end() ? -1 : found->second;
  }

  bool gains(graph::GroupOp group, const llvm::DenseSet<Value> &reads) {
    if (wanted) {
      int64_t region = wantedRegion(group);
      return region >= 0 && llvm::all_of(open, [&](graph::GroupOp member) {
               return wantedRegion(member) == region;
             });
    }
    if (llvm::any_of(reads, [&](Value read) { return openReads.contains(read); }))
      return true;
    return isSmall(group) && llvm::all_of(open, isSmall);
  }

  void close() {
    if (open.size() > 1) {
      for (graph::GroupOp group : open)
        group->setAttr(graph::kRegion, Builder(group.getContext()).getI64IntegerAttr(regions));
      ++regions;
    }
    open.clear();
    openReads.clear();
  }

  const std::map<std::string, int64_t> *wanted;
  SmallVector<graph::GroupOp> open;
  llvm::DenseSet<Value> openReads;
  int64_t regions = 0;
};
} // namespace

void packRegions(Block &block, const std::map<std::string, int64_t> *wanted) {
  Packer(wanted).run(block);
}

} // namespace heddle::partition
