// Thresholds: kept in the module, so that whatever is cut out or printed takes them along.

#include "compiler/graph/cost/Thresholds.h"

using namespace mlir;

namespace heddle::cost {

ArrayRef<const Threshold *> thresholds() {
  static const Threshold *const all[] = {
      &kParallelWork,    &kProductTasks,  &kProductTiles,      &kProductPanels, &kProductHalves,
      &kProductCopy,     &kIdleTaps,      &kAttentionTasks,    &kAttentionRows, &kAttentionStrips,
      &kAttentionBounds, &kWinogradTiles, &kWinogradLateTiles, &kWinogradRows,  &kLongRow,
      &kLongRowPieces,   &kLongRowPiece,  &kShortRowsTask,     &kRowBlock,      &kFetchFilters,
      &kFetchPanels,     &kFetchWinograd, &kFetchColumns,      &kTableOps,      &kStoredElements,
      &kStoredBlock,     &kArgRow};
  return all;
}

int64_t thresholdAt(Operation *at, const Threshold &threshold) {
  auto module = isa<ModuleOp>(at) ? cast<ModuleOp>(at) : at->getParentOfType<ModuleOp>();
  auto set = module ? module->getAttrOfType<DictionaryAttr>(kThresholdsAttr) : DictionaryAttr();
  auto value = set ? set.getAs<IntegerAttr>(threshold.name) : IntegerAttr();
  return value ? value.getInt() : threshold.value;
}

void setThresholds(ModuleOp module, const std::map<std::string, int64_t> &values) {
  NamedAttrList set;
  for (auto &[name, value] : values)
    set.set(name, IntegerAttr::get(IntegerType::get(module.getContext(), 64), value));
  module->setAttr(kThresholdsAttr, set.getDictionary(module.getContext()));
}

} // namespace heddle::cost
