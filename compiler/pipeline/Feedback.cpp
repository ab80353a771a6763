// Feedback: see Feedback.h.

#include "compiler/pipeline/Feedback.h"

#include "compiler/lower/Schedule.h"

using namespace mlir;

namespace heddle {

llvm::Expected<bool> findRefused(Compiled &compiled, bool isAdvised,
                                 ArrayRef<plan::Recomputation> again, partition::Options &groups) {
  const plan::Plan &given = *compiled.given;
  using Kind = lower::Refusal::Kind;
  bool isNew = false;
  std::string broken;
  compiled.graph->walk([&](graph::GroupOp group) {
    auto [refused, why, stitching] = lower::refusal(group, compiled.machine);
    if (refused == Kind::Broken)
      broken += ("internal error: group '" + group.getName() + "': " + why + "\n").str();
    if (stitching && isAdvised && !given.find(group.getName()))
      why = groups.policy->whyApart(*stitching, compiled.machine);
    auto ops = group.getBody().front().without_terminator();
    bool isAgain = llvm::any_of(again, [&](auto &each) { return each.name == group.getName(); });
    if (isAgain ||
        llvm::count_if(ops, [](Operation &op) { return !isa<graph::ConstantOp>(op); }) < 2)
      return; // there is nothing to split
    const plan::GroupPlan *wish = given.find(group.getName());
    if (why.empty() || (wish && !wish->card.empty()))
      return; // settleGroups refuses what a plan asks for by name
    auto steps = partition::stepsOf(group);
    auto isNewlyRefused = [&](StringRef step) {
      return groups.refused.insert({partition::baseName(group.getName()), step.str()}).second;
    };
    if (llvm::none_of(steps, isNewlyRefused))
      return;
    isNew = true;
    compiled.feedback.push_back({group.getName().str(), steps.back().str(), why});
  });
  if (!broken.empty())
    return makeError(ErrorCode::Internal, StringRef(broken).rtrim());
  return isNew;
}

llvm::Error settleGroups(Compiled &compiled, plan::Plan &made) {
  const plan::Plan &given = *compiled.given;
  auto model = compiled.graph->lookupSymbol<func::FuncOp>("main");
  for (lower::Settled &each : lower::settle(model, compiled.machine)) {
    const plan::GroupPlan *wish = given.find(each.group);
    if (wish && !wish->card.empty())
      return makeError(ErrorCode::Usage, given.path + ":" + Twine(wish->line) + ": group '" +
                                             each.group + "': error: card '" + each.card +
                                             "' cannot be carried out for it: " + each.why +
                                             "; remove its 'card', or name another one");
    for (plan::GroupPlan &line : made.groups)
      if (line.name == each.group) {
        line.card = line.cardHash = "";
        line.isShort = false;
        line.knobs.clear();
        line.versions.clear();
      }
    compiled.simplified.push_back({each.group, each.mechanism});
  }
  return llvm::Error::success();
}

llvm::Error checkVersions(Compiled &compiled, const plan::Plan &made) {
  const plan::Plan &given = *compiled.given;
  std::string problems;
  compiled.graph->walk([&](graph::GroupOp group) {
    const plan::GroupPlan *line = made.find(group.getName());
    if (!line || line->versions.empty() || lower::sharesData(group, compiled.machine))
      return;
    const plan::GroupPlan *wish = given.find(group.getName());
    problems += (given.path + ":" + Twine(wish ? wish->line : 0) + ": group '" + group.getName() +
                 "': error: its versions pack its weights in several ways, each of which would be "
                 "stored; give all of them the knobs of what is packed, such as 'n'\n")
                    .str();
  });
  return problems.empty() ? llvm::Error::success()
                          : makeError(ErrorCode::Usage, StringRef(problems).rtrim());
}

} // namespace heddle
