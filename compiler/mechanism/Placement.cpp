// Placement: which operands of a concat may lie inside of its result.

#include "compiler/mechanism/Placement.h"

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

static bool storesElements(graph::GroupOp group) {
  const Mechanism *mechanism = chosenFor(group);
  return mechanism && mechanism->storesElements;
}

/// Whether the inputs of the model have all sizes that this one follows from.
static bool isEntryKnown(func::FuncOp model, const graph::Dim &size) {
  SmallVector<std::string> wanted, known;
  size.collectSymbols(wanted);
  for (BlockArgument input : model.getArguments())
    for (const graph::Dim &dim : graph::dimsOf(input))
      if (auto name = dim.symbolName())
        known.push_back(*name);
  return llvm::all_of(wanted,
                      [&](const std::string &name) { return llvm::is_contained(known, name); });
}

Placements placementsOf(graph::GroupOp group) {
  Placements placements;
  Operation *root = group.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
  auto concat = dyn_cast_or_null<graph::ConcatOp>(root);
  bool isResult = concat && concat->getParentOp() == group && group.getNumResults() == 1;
  auto model = group->getParentOfType<func::FuncOp>();
  if (!isResult || !model ||
      !isEntryKnown(model, graph::elementCount(graph::dimsOf(concat.getResult()))))
    return placements;
  int64_t axis = concat.getAxis();
  graph::Dim offset(0);
  for (Value operand : concat.getXs()) {
    auto maker = operand.getDefiningOp<graph::GroupOp>();
    if (maker && maker->getBlock() == group->getBlock() && operand.hasOneUse() &&
        storesElements(maker))
      placements[operand] = {group.getResult(0), axis, offset};
    offset = offset + graph::dimsOf(operand)[axis];
  }
  return placements;
}

Placements placementsOf(func::FuncOp model) {
  Placements all;
  model.walk([&](graph::GroupOp group) {
    if (chosenFor(group) == &kPlace)
      for (auto &placement : placementsOf(group))
        all.insert(placement);
  });
  return all;
}

/// Fits a group that ends with a concat with an operand or more that can be placed.
static Fit fitsPlace(const Mechanism &, Ops ops, std::string &why) {
  auto group = dyn_cast<graph::GroupOp>(ops.back()->getParentOp());
  if (!group || !isa<graph::ConcatOp>(ops.back()))
    return refuse(why, named(ops.back()) + " ends it, not a concat");
  if (placementsOf(group).empty())
    return refuse(why, "none of its operands is the result of a kernel, stored element by element, "
                       "that only this concat reads");
  return Fit::Full;
}

static constexpr StringLiteral kKnobs[] = {"chunk"};
const Mechanism kPlace = {.name = "place",
                          .check = fitsPlace,
                          .knobs = kKnobs,
                          .storesElements = true,
                          .readsParameters = true,
                          .readsProducers = true,
                          .takesThreads = true};

} // namespace heddle::mechanism
