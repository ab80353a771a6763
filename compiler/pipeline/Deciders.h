// Deciders: who says what becomes of a group: the cards, and the choosers in the order in which
// they are asked.
#ifndef HEDDLE_PIPELINE_DECIDERS_H
#define HEDDLE_PIPELINE_DECIDERS_H

#include "compiler/learn/LearnedChooser.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/plan/Chooser.h"
#include "compiler/plan/DeviceRule.h"
#include "compiler/records/RecordedChooser.h"

namespace heddle {

struct Deciders {
  warehouse::Warehouse cards;
  plan::DefaultChooser byRule;
  std::unique_ptr<records::Records> records;
  std::optional<records::RecordedChooser> byRecords;
  std::optional<learn::LearnedChooser> byCost;
  std::optional<plan::ShortChooser> shortly;
  std::optional<plan::DeviceChooser> onDevices;
  std::optional<plan::PlanChooser> byPlan;

  explicit Deciders(warehouse::Warehouse cards) : cards(std::move(cards)) {}

  static llvm::Expected<std::unique_ptr<Deciders>> load(const CompileOptions &options,
                                                        const Compiled &compiled);
  /// Verdict of the cost model on each group, or why it is not asked, as JSON; "" if there is none.
  std::string costJson(const CompileOptions &options) const;

private:
  /// Whether records have measured the group at length: its default choice alone says nothing, and
  /// neither does bf16 unless factors may be rounded.
  llvm::Expected<bool> isMeasured(graph::GroupOp group, const std::string &target, int64_t threads,
                                  bool isShort);
};

} // namespace heddle

#endif // HEDDLE_PIPELINE_DECIDERS_H
