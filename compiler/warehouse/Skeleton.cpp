// Skeleton: the loops of single ops as keys see them, and which ops of a group decide its schedule.

#include "compiler/mechanism/Mechanism.h"
#include "compiler/warehouse/Key.h"

using namespace mlir;

namespace heddle::warehouse {

using graph::Loop;
using graph::LoopNest;

/// One loop a dimension of the operand, in its order.
template <typename Op> static LoopNest reductionInOrder(Op op, StringRef name) {
  LoopNest nest;
  std::vector<Loop> *inside = &nest.loops;
  graph::DimVector dims = graph::dimsOf(op.getX());
  for (auto [i, dim] : llvm::enumerate(dims)) {
    bool isReduced = llvm::is_contained(op.getAxes(), static_cast<int64_t>(i));
    Loop loop{dim, isReduced ? Loop::Kind::Reduction : Loop::Kind::Parallel, {}, {}};
    if (i + 1 == dims.size())
      loop.ops = {name.str()};
    inside->push_back(std::move(loop));
    inside = &inside->front().children;
  }
  if (dims.empty())
    nest.ops = {name.str()};
  return nest;
}

static LoopNest convSkeleton(graph::ConvOp op) {
  LoopNest nest = graph::loopNestOf(op);
  if (op.getGroups() == 1 || !graph::dimsOf(op.getW())[1].isConstant(1))
    return nest;
  // The loop over the one channel of a group is no loop: windows are where it stood.
  std::vector<Loop> *loops = &nest.loops;
  while (!loops->empty() && loops->front().kind == Loop::Kind::Parallel)
    loops = &loops->front().children;
  if (!loops->empty() && !loops->front().children.empty()) {
    std::vector<Loop> windows = std::move(loops->front().children);
    *loops = std::move(windows);
  }
  return nest;
}

LoopNest skeletonOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, LoopNest>(op)
      .Case<graph::ReduceSumOp>([](auto fold) { return reductionInOrder(fold, "sum"); })
      .Case<graph::ReduceProdOp>([](auto fold) { return reductionInOrder(fold, "prod"); })
      .Case<graph::ReduceMaxOp>([](auto fold) { return reductionInOrder(fold, "max"); })
      .Case<graph::ReduceMinOp>([](auto fold) { return reductionInOrder(fold, "min"); })
      .Case<graph::ConvOp>([](auto conv) { return convSkeleton(conv); })
      .Default([](Operation *other) { return graph::loopNestOf(other); });
}

static bool decides(ArrayRef<Loop> loops) {
  return llvm::any_of(loops, [](const Loop &loop) {
    return loop.kind != Loop::Kind::Parallel || decides(loop.children);
  });
}

bool decides(Operation *op) { return decides(graph::loopNestOf(op).loops); }

SmallVector<Operation *> decidingOps(ArrayRef<Operation *> ops) {
  SmallVector<Operation *> all, deciding;
  for (Operation *op : ops) {
    if (isa<graph::ConstantOp>(op))
      continue;
    all.push_back(op);
    if (decides(op))
      deciding.push_back(op);
  }
  return deciding.empty() ? all : deciding;
}

SmallVector<Operation *> decidingOps(graph::GroupOp group) {
  return decidingOps(mechanism::opsOf(group.getBody().front()));
}

} // namespace heddle::warehouse
