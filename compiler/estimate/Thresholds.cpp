// Thresholds: kept in the module, so that whatever is cut out or printed takes them along.

#include "compiler/estimate/Thresholds.h"

#include "compiler/graph/Typical.h"

using namespace mlir;

namespace heddle::estimate {

ArrayRef<const Threshold *> thresholds() {
  static const Threshold *const all[] = {
      &kParallelWork,    &kDeviceElements,  &kProductTasks,  &kProductTiles,
      &kProductPanels,   &kProductHalves,   &kProductCopy,   &kIdleTaps,
      &kShortSaving,     &kAttentionTasks,  &kAttentionRows, &kAttentionStrips,
      &kAttentionDirect, &kAttentionBounds, &kWinogradTiles, &kWinogradLateTiles,
      &kWinogradRows,    &kLongRow,         &kLongRowPieces, &kLongRowPiece,
      &kShortRowsTask,   &kRowBlock,        &kFetchFilters,  &kFetchPanels,
      &kFetchWinograd,   &kFetchColumns,    &kTableOps,      &kStoredElements,
      &kStoredBlock,     &kArgRow};
  return all;
}

int64_t thresholdAt(Operation *at, const Threshold &threshold) {
  auto module = dyn_cast_if_present<ModuleOp>(at);
  if (at && !module)
    module = at->getParentOfType<ModuleOp>();
  auto set =
      module ? module->getAttrOfType<DictionaryAttr>(graph::kThresholdsAttr) : DictionaryAttr();
  auto value = set ? set.getAs<IntegerAttr>(threshold.name) : IntegerAttr();
  return value ? value.getInt() : threshold.value;
}

void setThresholds(ModuleOp module, const program::Machine &machine,
                   const std::map<std::string, int64_t> &values) {
  NamedAttrList set;
  for (const auto *each : {&machine.thresholds, &values})
    for (auto &[name, value] : *each)
      set.set(name, IntegerAttr::get(IntegerType::get(module.getContext(), 64), value));
  module->setAttr(graph::kThresholdsAttr, set.getDictionary(module.getContext()));
}

} // namespace heddle::estimate
