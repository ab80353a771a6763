// Mechanism: the table, and what the checks of its rows share.

#include "compiler/mechanism/Mechanism.h"

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

StringRef nameOf(CardType type) {
  switch (type) {
  case CardType::Schedule:
    return "schedule";
  case CardType::Call:
    return "call";
  case CardType::Kernel:
    return "kernel";
  }
  llvm_unreachable("all types have names");
}

Verdict Mechanism::fits(Ops ops) const {
  Verdict verdict;
  for (Operation *op : ops)
    if (auto product = dyn_cast<graph::MatmulOp>(op);
        product && product.getBlock() && !takesBlocks) {
      verdict.fit = refuse(verdict.why, named(op) + " rounds its rows in blocks");
      return verdict;
    }
  verdict.fit = check(*this, ops, verdict.why);
  return verdict;
}

ArrayRef<const Mechanism *> all() {
  static constexpr const Mechanism *kAll[] = {
#define HEDDLE_MECHANISM(name) &k##name,
#include "compiler/mechanism/mechanisms.def"
#undef HEDDLE_MECHANISM
  };
  return kAll;
}

const Mechanism *find(StringRef name) {
  for (const Mechanism *mechanism : all())
    if (mechanism->name == name)
      return mechanism;
  return nullptr;
}

const Mechanism *of(graph::GroupOp group) { return find(group.getMechanism().value_or("")); }

SmallVector<StringLiteral> Mechanism::allKnobs() const {
  SmallVector<StringLiteral> names(knobs);
  for (StringLiteral name : threadKnobs)
    if (!llvm::is_contained(names, name))
      names.push_back(name);
  return names;
}

const Mechanism *chosenFor(graph::GroupOp group) { return find(group.chosenMechanism()); }

SmallVector<Operation *> opsOf(Block &group) {
  return llvm::to_vector(llvm::make_pointer_range(group.without_terminator()));
}

Fit refuse(std::string &why, const Twine &text) {
  why = text.str();
  return Fit::No;
}

std::string named(Operation *op) {
  std::string source = graph::sourceName(op->getLoc());
  return (op->getName().stripDialect() + (source.empty() ? "" : " '" + source + "'")).str();
}

SmallVector<Value> resultsOf(Ops ops) {
  llvm::SmallPtrSet<Operation *, 32> inside(ops.begin(), ops.end());
  SmallVector<Value> results;
  for (Operation *op : ops)
    for (Value made : op->getResults())
      if (llvm::any_of(made.getUsers(), [&](Operation *user) { return !inside.contains(user); }))
        results.push_back(made);
  if (results.empty())
    llvm::append_range(results, ops.back()->getResults());
  return results;
}

bool isWeight(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return value.getDefiningOp<graph::ConstantOp>() ||
         (function && function.getArgAttr(argument.getArgNumber(), "heddle.constant"));
}

} // namespace heddle::mechanism
