// Group: what an op is, by the table of mechanisms and by what the program around kernels does.

#include "compiler/partition/Group.h"

using namespace mlir;

namespace heddle::partition {

static bool isDepthwise(graph::ConvOp op) {
  auto outputs = graph::dimsOf(op.getW())[0].constant();
  return op.getGroups() > 1 && outputs == op.getGroups() && op.getChannelsLast() &&
         graph::dimsOf(op.getW())[1].isConstant(1);
}

static bool foldsTrailing(Operation *op) {
  ArrayRef<int64_t> axes = graph::reducedAxes(op);
  int64_t rank = graph::rankOf(op->getOperand(0));
  for (int64_t i = rank - (int64_t)axes.size(); i < rank; ++i)
    if (!llvm::is_contained(axes, i))
      return false;
  return !axes.empty();
}

bool isHost(Operation *op) {
  if (auto reshape = dyn_cast<graph::ReshapeOp>(op))
    return !reshape.keepsIndices();
  if (isa<graph::SizesOp>(op)) // checks of sizes alone need no memory
    return llvm::all_of(op->getUsers(),
                        [](Operation *user) { return isa<graph::BindSizesOp>(user); });
  return isa<graph::ConstantOp, graph::GroupOp>(op) || op->hasTrait<OpTrait::IsTerminator>() ||
         graph::isOutsideKernels(op);
}

const Mechanism *mechanismOf(Operation *op) {
  if (auto conv = dyn_cast<graph::ConvOp>(op))
    return isDepthwise(conv) ? &mechanism::kWindow : &mechanism::kContraction;
  if (isa<graph::MatmulOp>(op))
    return &mechanism::kContraction;
  if (isa<graph::PoolOp>(op))
    return &mechanism::kWindow;
  if (!graph::reducedAxes(op).empty())
    return foldsTrailing(op) ? &mechanism::kRows : &mechanism::kPointwise;
  if (graph::isScatter(op))
    return &mechanism::kSerial;
  return &mechanism::kPointwise;
}

bool isAlone(Operation *op) { return op->hasTrait<graph::Standalone>(); }

bool isWidening(Operation *op) {
  auto cast = dyn_cast<graph::CastOp>(op);
  if (!cast)
    return false;
  auto from = dyn_cast<FloatType>(graph::elementOf(cast.getX()));
  auto to = dyn_cast<FloatType>(graph::elementOf(cast.getResult()));
  return from && to && from.getWidth() < to.getWidth();
}

SetVector<Value> inputsOf(ArrayRef<Operation *> members) {
  SetVector<Value> inputs;
  for (Operation *member : members)
    for (Value operand : member->getOperands())
      if (Operation *source = operand.getDefiningOp();
          !isa_and_nonnull<graph::ConstantOp>(source) && !llvm::is_contained(members, source))
        inputs.insert(operand);
  return inputs;
}

graph::DimVector walkedBy(const Group &group) {
  for (Operation *member : group.members)
    if (!graph::reducedAxes(member).empty())
      return graph::dimsOf(member->getOperand(0));
  return graph::dimsOf(group.root()->getResult(0));
}

} // namespace heddle::partition
