// Rounded: see Rounded.h.

#include "compiler/trial/Rounded.h"

#include <cmath>

using namespace mlir;

namespace heddle::trial {

/// Whether all kernels compute the same bits: of what is read, moved, and of ops that are rounded
/// once and alike. A product that is added to something may be rounded with the sum.
static bool isSameEverywhere(Value value, Block *body) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != body || isa<graph::ConstantOp>(op))
    return true;
  bool isSum = isa<graph::AddOp, graph::SubOp>(op);
  bool isPlain = graph::isMovement(op) ||
                 (graph::isElementwise(op) && !graph::isCostly(op) && !isa<graph::DivOp>(op));
  return isPlain && llvm::all_of(op->getOperands(), [&](Value operand) {
           bool mayFuse = isSum && isa_and_nonnull<graph::MulOp>(operand.getDefiningOp());
           return !mayFuse && isSameEverywhere(operand, body);
         });
}

static Value rounded(OpBuilder &builder, Value factor) {
  auto type = cast<RankedTensorType>(factor.getType());
  Value narrow =
      builder.create<graph::CastOp>(factor.getLoc(), type.clone(builder.getBF16Type()), factor);
  return builder.create<graph::CastOp>(factor.getLoc(), type, narrow);
}

RoundedGroup roundedFactors(ModuleOp original) {
  RoundedGroup made{original.clone()};
  graph::GroupOp group = groupOf(*made.module);
  auto main = group->getParentOfType<func::FuncOp>();
  Block *body = &group.getBody().front();
  OpBuilder builder(group);
  IRMapping mapping;
  SmallVector<Value> results, bounds;
  for (Operation &op : body->without_terminator()) {
    if (!graph::isContraction(&op)) {
      builder.clone(op, mapping);
      continue;
    }
    IRMapping factors = mapping, sizes = mapping;
    size_t differing = 0;
    for (Value factor : op.getOperands().take_front(2)) {
      if (!graph::elementOf(factor).isF32())
        continue;
      differing += !isSameEverywhere(factor, body);
      Value round = rounded(builder, mapping.lookupOrDefault(factor));
      factors.map(factor, round);
      sizes.map(factor, builder.create<graph::AbsOp>(op.getLoc(), round.getType(), round));
    }
    Operation *product = builder.clone(op, factors);
    mapping.map(op.getResult(0), product->getResult(0));
    if (differing)
      bounds.append(differing, builder.clone(op, sizes)->getResult(0));
  }
  for (Value result : body->getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(result));
  group->replaceAllUsesWith(results);
  group->erase();
  Operation *end = main.getBody().front().getTerminator();
  end->insertOperands(end->getNumOperands(), bounds);
  main.setType(builder.getFunctionType(main.getArgumentTypes(), end->getOperandTypes()));
  made.bounds = bounds.size();
  return made;
}

double slackOf(ArrayRef<reference::Tensor> bounds) {
  double slack = 0;
  for (const reference::Tensor &bound : bounds) {
    double most = 0;
    for (int64_t i = 0, count = bound.count(); i < count; ++i)
      most = std::max(most, reference::numberAt(bound, i));
    slack += std::ldexp(most, -7);
  }
  return slack;
}

} // namespace heddle::trial
