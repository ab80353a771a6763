// Order: list scheduling of the stretches between ops that nothing may pass.

#include "compiler/partition/Order.h"

#include <queue>

using namespace mlir;

namespace heddle::partition {

bool isBarrier(Operation &op) {
  if (!isa<graph::GroupOp>(op))
    return op.getNumRegions() > 0 || graph::bindsSizes(&op) || op.hasTrait<OpTrait::IsTerminator>();
  return op
      .walk([](Operation *inner) {
        return graph::bindsSizes(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The ops of the stretch whose results the op, or what is in it, reads.
static SmallVector<size_t> readsOf(Operation *op, const DenseMap<Operation *, size_t> &places) {
  llvm::SetVector<size_t> reads;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (auto found = places.find(operand.getDefiningOp());
          found != places.end() && found->first != op)
        reads.insert(found->second);
  });
  return reads.takeVector();
}

static void sortStretch(ArrayRef<Operation *> ops, const std::map<std::string, int64_t> &order) {
  DenseMap<Operation *, size_t> places;
  for (auto [i, op] : llvm::enumerate(ops))
    places[op] = i;
  std::vector<SmallVector<size_t>> readers(ops.size());
  std::vector<size_t> awaited(ops.size());
  for (size_t i = 0; i < ops.size(); ++i)
    for (size_t read : readsOf(ops[i], places)) {
      readers[read].push_back(i);
      ++awaited[i];
    }
  // What has no number comes with the next one that has, or with the first of its readers.
  SmallVector<int64_t> keys(ops.size());
  int64_t next = INT64_MAX;
  for (size_t i = ops.size(); i-- > 0;) {
    auto group = dyn_cast<graph::GroupOp>(ops[i]);
    auto found = group ? order.find(group.getName().str()) : order.end();
    if (found != order.end()) {
      keys[i] = next = found->second;
      continue;
    }
    keys[i] = next;
    for (size_t reader : readers[i])
      keys[i] = std::min(keys[i], keys[reader]);
  }
  if (llvm::is_sorted(keys))
    return;
  using Ready = std::pair<int64_t, size_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (size_t i = 0; i < ops.size(); ++i)
    if (!awaited[i])
      ready.push({keys[i], i});
  Operation *after = ops.back()->getNextNode();
  while (!ready.empty()) {
    size_t i = ready.top().second;
    ready.pop();
    ops[i]->moveBefore(after);
    for (size_t reader : readers[i])
      if (--awaited[reader] == 0)
        ready.push({keys[reader], reader});
  }
}

void orderGroups(Block &block, const std::map<std::string, int64_t> &order) {
  SmallVector<Operation *> stretch, all;
  for (Operation &op : block)
    all.push_back(&op);
  for (Operation *op : all) {
    if (!isBarrier(*op)) {
      stretch.push_back(op);
      continue;
    }
    if (!stretch.empty())
      sortStretch(stretch, order);
    stretch.clear();
  }
}

} // namespace heddle::partition
