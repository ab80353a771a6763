// Bands: masks that several choices share, or that lie in memory, are made anew beside each.

#include "compiler/partition/Bands.h"

#include "compiler/graph/Constants.h"
#include "compiler/graph/edit/Band.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace heddle::partition {

/// Whether nothing else reads what the mask is made of, and it is not read from memory.
static bool isOwn(Value mask) {
  if (graph::rankOf(mask) == 0 || graph::splatOf(mask))
    return true;
  Operation *op = mask.getDefiningOp();
  if (isa<graph::IotaOp>(op))
    return op->hasOneUse();
  bool isNumbers = graph::isElementwise(op) || isa<graph::BroadcastOp>(op);
  return isNumbers && op->hasOneUse() && llvm::all_of(op->getOperands(), isOwn);
}

static void eraseUnused(Operation *op) {
  SmallVector<Operation *> open{op};
  while (!open.empty()) {
    Operation *next = open.pop_back_val();
    if (!isOpTriviallyDead(next))
      continue;
    for (Value operand : next->getOperands())
      if (Operation *source = operand.getDefiningOp(); source && !llvm::is_contained(open, source))
        open.push_back(source);
    llvm::erase(open, next);
    next->erase();
  }
}

/// A choice between two numbers by a band, as masks are that are added; nullopt for others.
static std::optional<graph::Band> numbersBy(graph::SelectOp choice) {
  bool areNumbers = choice && graph::splatOf(choice.getX()) && graph::splatOf(choice.getY());
  return areNumbers ? graph::bandOf(choice.getCondition()) : std::nullopt;
}

/// Makes such a choice, spread to the shape of its reader, anew there.
static Value ownNumbers(Value mask, OpBuilder &builder) {
  IRMapping made;
  if (auto broadcast = mask.getDefiningOp<graph::BroadcastOp>()) {
    Value own = ownNumbers(broadcast.getX(), builder);
    if (own)
      made.map(broadcast.getX(), own);
    return own ? builder.clone(*broadcast, made)->getResult(0) : Value();
  }
  auto choice = mask.getDefiningOp<graph::SelectOp>();
  return numbersBy(choice) ? builder.clone(*choice)->getResult(0) : Value();
}

/// Whether others read the mask, too.
static bool isShared(Value mask, const graph::RowEnds &ends) {
  while (mask.getDefiningOp() != ends.compares && mask.hasOneUse())
    mask = mask.getDefiningOp()->getOperand(0);
  return !mask.hasOneUse();
}

/// Makes the mask anew, but for the places of its rows.
static Value ownEnds(Value value, const graph::RowEnds &ends, OpBuilder &builder) {
  Operation *op = value.getDefiningOp(),
            *places = ends.compares->getOperand(ends.places).getDefiningOp();
  IRMapping made;
  if (op != places)
    for (Value operand : op->getOperands())
      made.map(operand, ownEnds(operand, ends, builder));
  return builder.clone(*op, made)->getResult(0);
}

void ownBands(func::FuncOp function) {
  function.walk([](Operation *op) {
    if (!isa<graph::AddOp>(op))
      return;
    OpBuilder builder(op);
    for (OpOperand &use : op->getOpOperands())
      if (Operation *source = use.get().getDefiningOp())
        if (Value own = ownNumbers(use.get(), builder)) {
          use.set(own);
          eraseUnused(source);
        }
  });
  function.walk([](graph::SelectOp select) {
    Value mask = select.getCondition();
    if (auto ends = graph::rowEndsOf(mask); ends && isShared(mask, *ends)) {
      OpBuilder builder(select);
      select.getConditionMutable().assign(ownEnds(mask, *ends, builder));
      return;
    }
    Operation *source = mask.getDefiningOp();
    auto band = graph::bandOf(mask);
    if (!band || isOwn(mask))
      return;
    OpBuilder builder(select);
    graph::Build build(builder, select);
    select.getConditionMutable().assign(graph::maskOf(build, graph::dimsOf(mask), *band));
    eraseUnused(source);
  });
}

} // namespace heddle::partition
