// Planning: partition, choose, ask the mechanisms, and again without what they refused.

#include "compiler/pipeline/Planning.h"

#include "compiler/partition/Partition.h"
#include "compiler/pipeline/Deciders.h"
#include "compiler/pipeline/Feedback.h"
#include "compiler/pipeline/MemoryLimit.h"
#include "compiler/simplify/Passes.h"
#include "compiler/training/Recipe.h"

using namespace mlir;

namespace heddle {

llvm::Error readGiven(Compiled &compiled, const CompileOptions &options) {
  compiled.fingerprint = plan::fingerprint(compiled.graph->lookupSymbol<func::FuncOp>("main"));
  plan::Plan given;
  if (!options.planText.empty()) {
    auto parsed = plan::parsePlan(options.planText, options.planPath);
    if (!parsed)
      return parsed.takeError();
    given = std::move(*parsed);
  }
  compiled.given = std::make_shared<plan::Plan>(std::move(given));
  return llvm::Error::success();
}

/// The partitioner's options for what a plan says of groups.
static partition::Options groupsOf(const plan::Plan &given, const CompileOptions &options) {
  partition::Options groups;
  groups.isExact = options.isPlanExact;
  if (options.fusion)
    groups.policy = options.fusion;
  groups.fuses = !options.without.count("fusion");
  groups.stitches = !options.without.count("stitch");
  groups.joinsSiblings = !options.without.count("siblings");
  groups.packs = !options.without.count("regions");
  for (auto &[node, fusion] : given.fusion)
    (fusion == "apart" ? groups.apart : groups.joined).insert(node);
  for (auto &[name, steps] : given.split)
    for (const std::string &step : steps)
      groups.refused.insert({name, step});
  if (!given.groups.empty())
    groups.regions.emplace();
  for (const plan::GroupPlan &group : given.groups) {
    if (group.order)
      groups.order[group.name] = *group.order;
    if (group.region >= 0)
      (*groups.regions)[group.name] = group.region;
    if (group.again)
      continue; // its ops are those of another group
    if (!group.parts.empty()) {
      groups.given.push_back({partition::baseName(group.name), group.mechanism, group.parts});
      continue;
    }
    std::string name = partition::baseName(group.name);
    if (groups.wanted.count(name))
      groups.ambiguous.insert(name);
    groups.wanted[name].insert(group.ops.begin(), group.ops.end());
  }
  std::erase_if(groups.wanted, [](auto &group) { return group.second.empty(); });
  return groups;
}

/// Layouts of convolutions and pools, as simplify has left them.
static simplify::Layouts layoutsOf(ModuleOp module) {
  simplify::Layouts layouts;
  if (auto made = module->getAttrOfType<DictionaryAttr>(simplify::kLayouts))
    for (NamedAttribute each : made)
      layouts[each.getName().str()] = cast<StringAttr>(each.getValue()).str();
  return layouts;
}

/// Nodes whose products can be computed with integers, and whether they are.
static std::map<std::string, bool> integersOf(ModuleOp module) {
  std::map<std::string, bool> integers;
  if (auto made = module->getAttrOfType<DictionaryAttr>(simplify::kIntegers))
    for (NamedAttribute each : made)
      integers[each.getName().str()] = cast<BoolAttr>(each.getValue()).getValue();
  return integers;
}

llvm::Error checkNodes(const Compiled &compiled) {
  if (llvm::Error error = plan::checkIntegers(*compiled.given, integersOf(*compiled.graph)))
    return error;
  return plan::checkLayouts(*compiled.given, layoutsOf(*compiled.graph));
}

/// Whether all nodes of the given plan's 'fusion' are in the graph.
static llvm::Error checkFusion(const Compiled &compiled) {
  std::set<std::string> nodes;
  compiled.graph.get().walk([&](Operation *op) { nodes.insert(graph::sourceName(op->getLoc())); });
  return plan::checkFusion(*compiled.given, nodes);
}

/// Adds what the given plan computes again.
static llvm::Error recomputeGiven(func::FuncOp main, const plan::Plan &given,
                                  ArrayRef<plan::Recomputation> again) {
  auto problem = plan::recompute(main, again);
  if (!problem)
    return llvm::Error::success();
  const plan::GroupPlan *line = given.find(problem->first);
  return makeError(ErrorCode::Usage, given.path + ":" + Twine(line ? line->line : 0) + ": group '" +
                                         problem->first + "': error: 'again': " + problem->second);
}

/// The memory of training grows with the depth of a model, so that some is saved where that is
/// nearly free. A given plan is the only source of recomputation.
static MemoryGoal memoryGoal(const CompileOptions &options, const plan::Plan &given) {
  constexpr double kShare = 0.01;
  bool isSpared =
      !options.without.count("recomputation") && given.groups.empty() && !options.training.empty();
  if (isSpared) {
    auto recipe = training::readRecipe(options.training);
    isSpared = recipe ? recipe->trains() : false;
    llvm::consumeError(recipe.takeError());
  }
  return {options.memoryLimitBytes, isSpared ? kShare : 0};
}

/// Says of each group op by op what is in it, and which mechanism it is made for.
static void addParts(plan::Plan &made, const std::map<std::string, partition::Parts> &parts,
                     ModuleOp module) {
  std::map<std::string, const mechanism::Mechanism *> mechanisms;
  module.walk(
      [&](graph::GroupOp group) { mechanisms[group.getName().str()] = mechanism::of(group); });
  for (plan::GroupPlan &line : made.groups) {
    auto found = parts.find(line.name);
    const mechanism::Mechanism *mechanism = mechanisms[line.name];
    if (found == parts.end() || !mechanism || line.again)
      continue;
    line.parts = found->second;
    line.ops.clear(); // in the order of the parts, whatever was copied to the group
    for (const auto &[name, numbers] : line.parts)
      line.ops.push_back(name);
    line.mechanism = mechanism->name.str();
  }
}

/// Whether all groups that a plan has op by op are made so.
static llvm::Error checkParts(const plan::Plan &given,
                              const std::map<std::string, partition::Parts> &made) {
  std::string problems;
  for (const plan::GroupPlan &line : given.groups) {
    auto found = made.find(line.name);
    if (line.parts.empty() || (found != made.end() && found->second == line.parts))
      continue;
    problems += given.path + ":" + std::to_string(line.line) + ": group '" + line.name +
                "': error: its 'parts' cannot be a group of mechanism '" + line.mechanism +
                "': there are no such ops, no mechanism carries them out, or what reads them leads "
                "back into them; take out 'parts' and 'mechanism' to go by names alone\n";
  }
  return problems.empty() ? llvm::Error::success()
                          : makeError(ErrorCode::Usage, StringRef(problems).rtrim());
}

/// Whether groups come out as the given plan has them without being told their ops: then nothing
/// depends on names of nodes, whose ops may be in several groups.
static bool isAsPartitioned(Compiled &compiled, Deciders &deciders, partition::Options groups,
                            ArrayRef<plan::Recomputation> again) {
  groups.isExact |= !groups.given.empty();
  groups.wanted.clear();
  groups.given.clear();
  OwningOpRef<ModuleOp> trial = compiled.graph->clone();
  auto main = trial->lookupSymbol<func::FuncOp>("main");
  auto parts = partition::partition(main, groups);
  if (plan::recompute(main, again))
    return false;
  llvm::Error error = checkParts(*compiled.given, parts);
  error = llvm::joinErrors(std::move(error),
                           deciders.byPlan->check(main, compiled.fingerprint, compiled.machine));
  bool isAlike = !error;
  llvm::consumeError(std::move(error));
  return isAlike;
}

/// Whether the function has no groups yet, as the partitioner takes it.
static llvm::Error requireUngrouped(func::FuncOp main) {
  std::string name;
  main.walk([&](graph::GroupOp group) { name = group.getName().str(); });
  if (name.empty())
    return llvm::Error::success();
  return makeError(ErrorCode::Usage,
                   "GR2: the function has group '" + name +
                       "' already, and no group is in a group; what has groups goes to lower");
}

namespace {
/// One model on its way from a graph to groups with cards and knobs.
class Planner {
public:
  Planner(const CompileOptions &options, Compiled &compiled, Stages &stages)
      : options(options), compiled(compiled), stages(stages), whole(compiled.graph->clone()),
        again(compiled.given->recomputations()) {}

  llvm::Error run() {
    while (true) {
      auto step = [&] { return split(); };
      if (llvm::Error error = stages.run("partition", 0.2, step, [&] { return *compiled.graph; }))
        return error;
      if (llvm::Error error = runChoice(0.22))
        return error;
      if (isSettled)
        break;
      compiled.graph = whole->clone();
    }
    MemoryGoal goal = memoryGoal(options, *compiled.given);
    if (!goal.limit && goal.share == 0)
      return llvm::Error::success();
    return arrangeMemory(compiled, goal, again, [&] { return runChoice(0.23); });
  }

private:
  func::FuncOp main() { return compiled.graph->lookupSymbol<func::FuncOp>("main"); }

  llvm::Error runChoice(double fraction) {
    auto step = [&] { return choose(); };
    return stages.run("plan", fraction, step, [&] { return *compiled.graph; });
  }

  /// Finds out once what decides, and what the given plan says.
  llvm::Error prepare() {
    auto loaded = Deciders::load(options, compiled);
    if (!loaded)
      return loaded.takeError();
    deciders = std::move(*loaded);
    groups = groupsOf(*compiled.given, options);
    groups.cards = options.without.count("cards") ? nullptr : &deciders->cards;
    if (llvm::Error error = checkFusion(compiled))
      return error;
    if (!options.planText.empty() && isAsPartitioned(compiled, *deciders, groups, again)) {
      groups.wanted.clear();
      groups.isExact |= !groups.given.empty();
      groups.given.clear();
    }
    return llvm::Error::success();
  }

  llvm::Error split() {
    if (!deciders)
      if (llvm::Error error = prepare())
        return error;
    parts = partition::partition(main(), groups);
    return recomputeGiven(main(), *compiled.given, again);
  }

  llvm::Error check() {
    if (llvm::Error error = checkParts(*compiled.given, parts))
      return error;
    return deciders->byPlan->check(main(), compiled.fingerprint, compiled.machine);
  }

  /// The plan, but for its groups.
  plan::Plan begin() {
    plan::Plan made;
    made.model = compiled.fingerprint;
    made.layouts = layoutsOf(*compiled.graph);
    std::set<std::string> integers;
    for (auto &[name, isMade] : integersOf(*compiled.graph))
      if (isMade)
        integers.insert(name);
    if (!integers.empty() || compiled.given->integers)
      made.integers = integers;
    made.fusion = compiled.given->fusion;
    made.thresholds = compiled.given->thresholds;
    made.target = compiled.target->backend.name().str();
    return made;
  }

  /// Cards and knobs of all groups; settled unless the graph has to be split again.
  llvm::Error choose() {
    if (llvm::Error error = check())
      return error;
    plan::Plan made = begin();
    if (llvm::Error error =
            plan::choose(main(), deciders->cards, *deciders->byPlan, compiled.machine, made))
      return error;
    auto isSplit = findRefused(compiled, !options.without.count("feedback"), again, groups);
    if (!isSplit)
      return isSplit.takeError();
    isSettled = !*isSplit;
    for (auto &[name, kind] : groups.refused)
      made.split[name].push_back(kind);
    if (isSettled) {
      if (llvm::Error error = settleGroups(compiled, made))
        return error;
      if (llvm::Error error = checkVersions(compiled, made))
        return error;
    }
    compiled.whyPrecision.clear();
    for (const plan::GroupPlan &line : made.groups)
      if (!line.whyPrecision.empty())
        compiled.whyPrecision[line.name] = line.whyPrecision;
    for (plan::GroupPlan &line : made.groups)
      for (const plan::Recomputation &each : again)
        if (each.name == line.name)
          line.again = each;
    if (options.isPlanExact)
      addParts(made, parts, *compiled.graph);
    compiled.planJson = made.str();
    compiled.costJson = deciders->costJson(options);
    return llvm::Error::success();
  }

  const CompileOptions &options;
  Compiled &compiled;
  Stages &stages;
  OwningOpRef<ModuleOp> whole; // without groups
  std::vector<plan::Recomputation> again;
  std::unique_ptr<Deciders> deciders;
  partition::Options groups;
  std::map<std::string, partition::Parts> parts; // of the groups, if they are asked for
  bool isSettled = false;
};
} // namespace

llvm::Error planGroups(const CompileOptions &options, Compiled &compiled, Stages &stages) {
  if (llvm::Error error = requireUngrouped(compiled.graph->lookupSymbol<func::FuncOp>("main")))
    return error;
  return Planner(options, compiled, stages).run();
}

} // namespace heddle
