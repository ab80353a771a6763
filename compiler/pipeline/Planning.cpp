// Planning: partition, choose, ask the mechanisms, and again without what they refused.

#include "compiler/pipeline/Planning.h"

#include "compiler/lower/Schedule.h"
#include "compiler/partition/Partition.h"
#include "compiler/plan/Chooser.h"
#include "compiler/records/RecordedChooser.h"

using namespace mlir;

namespace heddle {

/// What a plan says of groups, for the partitioner.
static partition::Options groupsOf(const plan::Plan &given, const CompileOptions &options) {
  partition::Options groups;
  groups.fuses = !options.without.count("fusion");
  groups.stitches = !options.without.count("stitch");
  groups.packs = !options.without.count("regions");
  if (!options.planText.empty())
    groups.regions.emplace();
  for (const plan::GroupPlan &group : given.groups) {
    if (group.region >= 0)
      (*groups.regions)[group.name] = group.region;
    groups.wanted[partition::baseName(group.name)].insert(group.ops.begin(), group.ops.end());
  }
  std::erase_if(groups.wanted, [](auto &group) { return group.second.empty(); });
  return groups;
}

/// Adds the groups that no mechanism can carry out as the partitioner made them, or that it should
/// not have made, to those that it shall not make again. A plan's own groups stay as they are where
/// that is possible at all, however slow.
static bool findRefused(Compiled &compiled, const plan::Plan &given, bool isAdvised,
                        partition::Options &groups) {
  bool isNew = false;
  compiled.graph->walk([&](graph::GroupOp group) {
    auto ops = group.getBody().front().without_terminator();
    if (llvm::count_if(ops, [](Operation &op) { return !isa<graph::ConstantOp>(op); }) < 2)
      return; // there is nothing to split
    auto [why, isAdvice] =
        lower::refusal(&group.getBody().front(), lower::scheduleOf(group), compiled.machine);
    auto kind = group->getAttrOfType<StringAttr>("kind");
    if (why.empty() || !kind || (isAdvice && (!isAdvised || given.find(group.getName()))) ||
        !groups.refused.insert({partition::baseName(group.getName()), kind.str()}).second)
      return;
    isNew = true;
    compiled.feedback.push_back({group.getName().str(), kind.str(), why});
  });
  return isNew;
}

llvm::Error planGroups(const CompileOptions &options, Compiled &compiled,
                       llvm::function_ref<void(StringRef stage, double fraction)> begin) {
  begin("partition", 0.2);
  DialectRegistry registry;
  warehouse::registerDialects(registry);
  compiled.context->appendDialectRegistry(registry);
  auto cards = warehouse::Warehouse::load(*compiled.context, options.scheduleFolders);
  if (!cards)
    return cards.takeError();
  if (options.isStrict)
    cards->requireStrict();
  plan::Plan given;
  if (!options.planText.empty()) {
    auto parsed = plan::parsePlan(options.planText, options.planPath);
    if (!parsed)
      return parsed.takeError();
    given = std::move(*parsed);
  }
  partition::Options groups = groupsOf(given, options);
  groups.cards = options.without.count("cards") ? nullptr : &*cards;
  OwningOpRef<ModuleOp> whole = compiled.graph->clone();
  std::string fingerprint = plan::fingerprint(whole->lookupSymbol<func::FuncOp>("main"));
  plan::DefaultChooser byRule;
  std::unique_ptr<records::Records> records;
  std::optional<records::RecordedChooser> byRecords;
  if (!options.recordsPath.empty()) {
    auto opened = records::Records::open(options.recordsPath, records::Records::Access::Read);
    if (!opened)
      return opened.takeError();
    records = std::move(*opened);
    byRecords.emplace(*records, compiled.target.identity(), records::threadsOf(options.threads),
                      byRule);
  }
  plan::PlanChooser chooser(given, byRecords ? static_cast<plan::Chooser &>(*byRecords) : byRule);
  for (bool isSettled = false; !isSettled;) {
    auto model = compiled.graph->lookupSymbol<func::FuncOp>("main");
    begin("partition", 0.2);
    partition::partition(model, groups);
    begin("plan", 0.22);
    if (llvm::Error error = chooser.check(model, fingerprint))
      return error;
    plan::Plan made;
    made.model = fingerprint;
    made.target = groups.target;
    if (llvm::Error error = plan::choose(model, *cards, chooser, compiled.machine, made))
      return error;
    compiled.planJson = made.str();
    isSettled = !findRefused(compiled, given, !options.without.count("feedback"), groups);
    if (!isSettled)
      compiled.graph = whole->clone();
  }
  return llvm::Error::success();
}

} // namespace heddle
