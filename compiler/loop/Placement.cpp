// Placement: which operands of a concat may lie inside of its result.

#include "compiler/loop/Placement.h"

#include "compiler/loop/TransformOps.h"

using namespace mlir;

namespace heddle::loop {

static StringRef formOf(graph::GroupOp group) {
  auto schedule = group->getAttrOfType<DictionaryAttr>(kScheduleAttr);
  auto form = schedule ? schedule.getAs<StringAttr>("form") : StringAttr();
  return form ? form.getValue() : StringRef();
}

/// Whether all of the group's results go through Elements::store.
static bool storesElements(graph::GroupOp group) {
  return llvm::is_contained(
      {"pointwise", "rows", "contraction", "few", "winograd", "window", "place"}, formOf(group));
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
    if (formOf(group) == "place")
      for (auto &placement : placementsOf(group))
        all.insert(placement);
  });
  return all;
}

} // namespace heddle::loop
