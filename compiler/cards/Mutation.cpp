// Mutation: an op becomes its counterpart if it has one; else its result is negated or doubled.

#include "compiler/cards/Mutation.h"

using namespace mlir;

namespace heddle::cards {

using namespace trial;

/// Ops of one signature; each becomes the other.
static constexpr std::pair<StringLiteral, StringLiteral> kCounterparts[] = {
    {"add", "sub"},
    {"mul", "add"},
    {"div", "mul"},
    {"max", "min"},
    {"and", "or"},
    {"less", "greater_equal"},
    {"greater", "less_equal"},
    {"equal", "not_equal"},
    {"reduce_max", "reduce_min"},
    {"reduce_sum", "reduce_max"},
    {"reduce_prod", "reduce_sum"},
    {"argmax", "argmin"},
    {"sin", "cos"},
    {"floor", "ceil"}};

static SmallVector<Operation *> candidates(ModuleOp module) {
  SmallVector<Operation *> ops;
  for (Operation &op : groupOf(module).getBody().front().without_terminator())
    if (!isa<graph::ConstantOp, graph::BroadcastOp, graph::ReshapeOp>(op) && op.getNumResults())
      ops.push_back(&op);
  return ops;
}

int64_t countMutations(ModuleOp module) { return candidates(module).size(); }

static StringRef counterpartOf(Operation *op) {
  StringRef name = op->getName().stripDialect();
  for (auto [one, other] : kCounterparts) {
    if (name == one)
      return other;
    if (name == other)
      return one;
  }
  return "";
}

/// -x; not x for booleans; x + x for numbers without a sign.
static Value changed(OpBuilder &builder, Value x) {
  Type element = graph::elementOf(x);
  bool isSigned = isa<FloatType>(element) || element.isSignlessInteger();
  OperationState state(x.getLoc(), element.isInteger(1) ? "graph.not"
                                   : isSigned           ? "graph.neg"
                                                        : "graph.add");
  state.addOperands(x);
  if (!isSigned)
    state.addOperands(x);
  state.addTypes(x.getType());
  return builder.create(state)->getResult(0);
}

std::string mutate(ModuleOp module, int64_t number) {
  Operation *op = candidates(module)[number];
  std::string name = ("'" + op->getName().getStringRef() + "'").str();
  OpBuilder builder(op);
  if (StringRef other = counterpartOf(op); !other.empty()) {
    OperationState state(op->getLoc(), ("graph." + other).str());
    state.addOperands(op->getOperands());
    state.addTypes(op->getResultTypes());
    state.addAttributes(op->getAttrs());
    Operation *wrong = builder.create(state);
    op->replaceAllUsesWith(wrong);
    op->erase();
    return name + " becomes 'graph." + other.str() + "'";
  }
  if (auto topk = dyn_cast<graph::TopkOp>(op)) {
    topk.setLargest(!topk.getLargest());
    return name + " takes the other end";
  }
  if (isa<graph::ScatterElementsOp, graph::ScatterNdOp>(op)) {
    bool isPlain = op->getAttrOfType<StringAttr>("reduction").getValue() == "none";
    op->setAttr("reduction", builder.getStringAttr(isPlain ? "add" : "none"));
    return name + " reduces by '" + (isPlain ? "add'" : "none'");
  }
  builder.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    Value wrong = changed(builder, result);
    result.replaceAllUsesExcept(wrong, wrong.getDefiningOp());
  }
  return "the result of " + name + " is changed";
}

} // namespace heddle::cards
