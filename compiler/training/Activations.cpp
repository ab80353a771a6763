// Activations: see Activations.h. Ops that are cheap on one tensor, or show it in another shape,
// are computed again, so that a tensor is stored once however it is used.

#include "compiler/training/Activations.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::training {
namespace {

class Narrower {
public:
  Narrower(const DenseSet<Operation *> &forward, FloatType narrow)
      : forward(forward), narrow(narrow) {}

  /// Notes what of a forward op follows from inputs.
  void visit(Operation &op) {
    for (Value operand : op.getOperands())
      if (isa<BlockArgument>(operand) || followsInputs.contains(operand))
        followsInputs.insert(op.result_begin(), op.result_end());
  }

  /// Lets an op of the derivative read narrow values.
  void rewrite(Operation &op) {
    for (OpOperand &use : op.getOpOperands())
      if (Value value = use.get(); isActivation(value))
        use.set(widened(value, rootOf(value), op));
  }

private:
  /// The one operand that the op's result is computed of, if that is cheap: the others are
  /// constants.
  std::optional<unsigned> onlyOperand(Operation *op) const {
    if (!op || !forward.contains(op))
      return std::nullopt;
    if (isa<ReshapeOp>(op))
      return 0;
    if (!isElementwise(op) || isCostly(op) || op->getNumResults() != 1)
      return std::nullopt;
    std::optional<unsigned> found;
    for (OpOperand &use : op->getOpOperands()) {
      Value operand = use.get();
      if (auto broadcast = operand.getDefiningOp<BroadcastOp>())
        operand = broadcast.getX();
      if (operand.getDefiningOp<ConstantOp>())
        continue;
      if (found || operand != use.get() || dimsOf(operand) != dimsOf(op->getResult(0)))
        return std::nullopt;
      found = use.getOperandNumber();
    }
    return found;
  }

  /// The tensor that is stored for this one.
  Value rootOf(Value value) const {
    while (auto operand = onlyOperand(value.getDefiningOp())) {
      Value source = value.getDefiningOp()->getOperand(*operand);
      if (!isActivation(source))
        break;
      value = source;
    }
    return value;
  }

  bool isActivation(Value value) const {
    return followsInputs.contains(value) && forward.contains(value.getDefiningOp()) &&
           elementOf(value).isF32() && rankOf(value) > 0 &&
           llvm::none_of(value.getUsers(), [](Operation *user) { return isa<BroadcastOp>(user); });
  }

  Value widened(Value value, Value root, Operation &reader) {
    Value &stored = storedOf[root];
    OpBuilder builder(&reader);
    if (!stored) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfterValue(root);
      Type type = tensorOf(builder.getContext(), dimsOf(root), narrow);
      stored = builder.create<CastOp>(root.getLoc(), type, root);
      stored.getDefiningOp()->setAttr(kIsStored, builder.getUnitAttr());
    }
    IRMapping mapping;
    mapping.map(root, builder.create<CastOp>(root.getLoc(), root.getType(), stored).getResult());
    SmallVector<Operation *> between;
    for (Value made = value; made != root;) {
      Operation *op = made.getDefiningOp();
      between.push_back(op);
      made = op->getOperand(*onlyOperand(op));
    }
    for (Operation *op : llvm::reverse(between))
      builder.clone(*op, mapping);
    return mapping.lookup(value);
  }

  const DenseSet<Operation *> &forward;
  FloatType narrow;
  DenseSet<Value> followsInputs;
  DenseMap<Value, Value> storedOf;
};
} // namespace

void narrowActivations(Block &block, const DenseSet<Operation *> &forward,
                       const DenseSet<Operation *> &exact, FloatType narrow) {
  Narrower narrower(forward, narrow);
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (forward.contains(&op))
      narrower.visit(op);
    else if (!exact.contains(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      narrower.rewrite(op);
  }
}

} // namespace heddle::training
