// Planning: partition, choose, ask the mechanisms, and again without what they refused.

#include "compiler/pipeline/Planning.h"

#include "compiler/cost/LearnedChooser.h"
#include "compiler/lower/Schedule.h"
#include "compiler/partition/Partition.h"
#include "compiler/pipeline/MemoryLimit.h"
#include "compiler/plan/Chooser.h"
#include "compiler/records/GroupKey.h"
#include "compiler/records/RecordedChooser.h"
#include "compiler/simplify/Passes.h"
#include "compiler/support/Json.h"
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

/// What a plan says of groups, for the partitioner.
static partition::Options groupsOf(const plan::Plan &given, const CompileOptions &options) {
  partition::Options groups;
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
    std::string name = partition::baseName(group.name);
    if (groups.wanted.count(name))
      groups.ambiguous.insert(name);
    groups.wanted[name].insert(group.ops.begin(), group.ops.end());
  }
  std::erase_if(groups.wanted, [](auto &group) { return group.second.empty(); });
  return groups;
}

/// How simplify has left convolutions and pools.
static simplify::Layouts layoutsOf(ModuleOp module) {
  simplify::Layouts layouts;
  if (auto made = module->getAttrOfType<DictionaryAttr>(simplify::kLayouts))
    for (NamedAttribute each : made)
      layouts[each.getName().str()] = cast<StringAttr>(each.getValue()).str();
  return layouts;
}

llvm::Error checkLayouts(const Compiled &compiled) {
  return plan::checkLayouts(*compiled.given, layoutsOf(*compiled.graph));
}

/// Whether all nodes of the given plan's 'fusion' are in the graph.
static llvm::Error checkFusion(const Compiled &compiled) {
  std::set<std::string> nodes;
  compiled.graph.get().walk([&](Operation *op) { nodes.insert(graph::sourceName(op->getLoc())); });
  return plan::checkFusion(*compiled.given, nodes);
}

/// Adds the groups that no mechanism can carry out as the partitioner made them, or that it should
/// not have made, to those that it shall not make again. A plan's own groups stay as they are where
/// that is possible at all, however slow; so does what computes results of others `again`.
static llvm::Expected<bool> findRefused(Compiled &compiled, const plan::Plan &given, bool isAdvised,
                                        ArrayRef<plan::Recomputation> again,
                                        partition::Options &groups) {
  using Kind = lower::Refusal::Kind;
  bool isNew = false;
  std::string broken;
  compiled.graph->walk([&](graph::GroupOp group) {
    auto [refused, why] = lower::refusal(group, compiled.machine);
    if (refused == Kind::Broken)
      broken += ("internal error: group '" + group.getName() + "': " + why + "\n").str();
    auto ops = group.getBody().front().without_terminator();
    bool isAgain = llvm::any_of(again, [&](auto &each) { return each.name == group.getName(); });
    if (isAgain ||
        llvm::count_if(ops, [](Operation &op) { return !isa<graph::ConstantOp>(op); }) < 2)
      return; // there is nothing to split
    bool isIgnored = refused == Kind::Advice && (!isAdvised || given.find(group.getName()));
    if (refused == Kind::None || isIgnored)
      return;
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

/// Groups that are not split any further and that their mechanisms do not serve all the same are
/// computed element by element, and the plan says so. A card that a given plan names is no such
/// choice of ours.
static llvm::Error settleGroups(Compiled &compiled, const plan::Plan &given, plan::Plan &made) {
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
        line.knobs.clear();
        line.versions.clear();
      }
    compiled.simplified.push_back({each.group, each.mechanism});
  }
  return llvm::Error::success();
}

/// What versions share is stored once: a plan that would have several of it is refused.
static llvm::Error checkVersions(Compiled &compiled, const plan::Plan &given,
                                 const plan::Plan &made) {
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

std::string whyMissing(const warehouse::Card &card, const target::Target &target) {
  if (!llvm::is_contained(target.backend.cards(), card.target))
    return "its target is '" + card.target + "', whose cards '--target " + target.name +
           "' does not take";
  if (!card.source.empty())
    return target.whyNoSources();
  StringRef library = card.mechanism->library;
  return library.empty() ? "" : target.whyNoLibrary(library);
}

llvm::Expected<warehouse::Warehouse> loadCards(const Compiled &compiled) {
  auto cards = warehouse::Warehouse::load(*compiled.context, compiled.scheduleFolders);
  if (!cards)
    return cards.takeError();
  if (compiled.isStrict)
    cards->requireStrict();
  for (const warehouse::Card &card : cards->cards())
    if (std::string why = whyMissing(card, *compiled.target); !why.empty())
      cards->withdraw(card.name, why);
  return cards;
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

namespace {
/// What decides besides the model: the cards, and the choosers in the order in which they are
/// asked.
struct Deciders {
  warehouse::Warehouse cards;
  plan::DefaultChooser byRule;
  std::unique_ptr<records::Records> records;
  std::optional<records::RecordedChooser> byRecords;
  std::optional<cost::LearnedChooser> byCost;
  std::optional<plan::PlanChooser> byPlan;

  Deciders(warehouse::Warehouse cards) : cards(std::move(cards)) {}

  static llvm::Expected<std::unique_ptr<Deciders>> load(const CompileOptions &options,
                                                        const Compiled &compiled) {
    DialectRegistry registry;
    warehouse::registerDialects(registry);
    compiled.context->appendDialectRegistry(registry);
    auto cards = loadCards(compiled);
    if (!cards)
      return cards.takeError();
    auto made = std::make_unique<Deciders>(std::move(*cards));
    if (!options.recordsPath.empty()) {
      auto opened = records::Records::open(options.recordsPath, records::Records::Access::Read);
      if (!opened)
        return opened.takeError();
      made->records = std::move(*opened);
      made->byRecords.emplace(*made->records, compiled.target->identity,
                              records::threadsOf(options.threads), made->byRule);
    }
    plan::Chooser *last = &made->byRule;
    if (made->byRecords)
      last = &*made->byRecords;
    if (options.costModel) {
      auto isMeasured = [&deciders = *made, target = compiled.target->identity,
                         threads = records::threadsOf(options.threads)](graph::GroupOp group) {
        return deciders.isMeasured(group, target, threads);
      };
      last = &made->byCost.emplace(*options.costModel, *last, isMeasured);
    }
    made->byPlan.emplace(*compiled.given, *last);
    return made;
  }

private:
  /// Whether records have measured the group at length: its default choice alone says nothing.
  llvm::Expected<bool> isMeasured(graph::GroupOp group, const std::string &target,
                                  int64_t threads) {
    if (!records)
      return false;
    auto found = records->find({records::keyOf(group).hash, target, threads});
    if (!found)
      return found.takeError();
    return llvm::any_of(*found, [](const records::Record &record) {
      return record.isConfirmed && record.speedup != 1;
    });
  }
};
} // namespace

static Json describe(const plan::Choice &choice) {
  Json knobs = Json::object();
  for (auto &[name, value] : choice.knobs)
    knobs[name] = value;
  return {{"card", choice.card ? Json(choice.card->name) : nullptr}, {"knobs", knobs}};
}

/// What the cost model said of each group, or why it is not asked.
static std::string costJson(const CompileOptions &options, const Deciders &deciders) {
  if (options.costModelPath.empty())
    return "";
  Json json = {{"path", options.costModelPath}, {"problem", nullptr}, {"groups", Json::object()}};
  if (!options.costModelProblem.empty())
    json["problem"] = options.costModelProblem + "; the rules choose instead" + cost::kWayOut.str();
  if (deciders.byCost)
    for (auto &[group, decision] : deciders.byCost->decisions()) {
      auto &said = json["groups"][group];
      said = describe(decision.choice);
      said["instead_of"] = describe(decision.otherwise);
      said["kept"] = nullptr;
      if (!decision.kept.empty())
        said["kept"] = decision.kept;
      said["speedup"] = decision.speedup;
      said["moved"] = Json::array();
      for (auto &[feature, factor] : decision.moved)
        said["moved"].push_back({{"feature", feature}, {"factor", factor}});
    }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The memory of training grows with the depth of a model, so that some is saved where that is
/// nearly free. What a given plan does not compute again, nobody does.
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

/// Whether groups come out as the given plan has them without being told their ops: then nothing
/// depends on names of nodes, whose ops may be in several groups.
static bool isAsPartitioned(Compiled &compiled, Deciders &deciders, partition::Options groups,
                            ArrayRef<plan::Recomputation> again) {
  groups.wanted.clear();
  OwningOpRef<ModuleOp> trial = compiled.graph->clone();
  auto main = trial->lookupSymbol<func::FuncOp>("main");
  partition::partition(main, groups);
  if (plan::recompute(main, again))
    return false;
  llvm::Error error = deciders.byPlan->check(main, compiled.fingerprint, compiled.machine);
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

llvm::Error planGroups(const CompileOptions &options, Compiled &compiled, Stages &stages) {
  auto main = [&] { return compiled.graph->lookupSymbol<func::FuncOp>("main"); };
  auto module = [&] { return *compiled.graph; };
  if (llvm::Error error = requireUngrouped(main()))
    return error;
  OwningOpRef<ModuleOp> whole = compiled.graph->clone();
  std::unique_ptr<Deciders> deciders;
  partition::Options groups;
  std::vector<plan::Recomputation> again = compiled.given->recomputations();

  auto split = [&]() -> llvm::Error {
    if (!deciders) {
      auto loaded = Deciders::load(options, compiled);
      if (!loaded)
        return loaded.takeError();
      deciders = std::move(*loaded);
      groups = groupsOf(*compiled.given, options);
      groups.cards = options.without.count("cards") ? nullptr : &deciders->cards;
      if (llvm::Error error = checkFusion(compiled))
        return error;
      if (!options.planText.empty() && isAsPartitioned(compiled, *deciders, groups, again))
        groups.wanted.clear();
    }
    partition::partition(main(), groups);
    return recomputeGiven(main(), *compiled.given, again);
  };
  bool isSettled = false;
  auto choose = [&]() -> llvm::Error {
    if (llvm::Error error = deciders->byPlan->check(main(), compiled.fingerprint, compiled.machine))
      return error;
    plan::Plan made;
    made.model = compiled.fingerprint;
    made.layouts = layoutsOf(*compiled.graph);
    made.fusion = compiled.given->fusion;
    made.thresholds = compiled.given->thresholds;
    made.target = compiled.target->backend.name().str();
    if (llvm::Error error =
            plan::choose(main(), deciders->cards, *deciders->byPlan, compiled.machine, made))
      return error;
    auto isSplit =
        findRefused(compiled, *compiled.given, !options.without.count("feedback"), again, groups);
    if (!isSplit)
      return isSplit.takeError();
    isSettled = !*isSplit;
    for (auto &[name, kind] : groups.refused)
      made.split[name].push_back(kind);
    if (isSettled)
      if (llvm::Error error = settleGroups(compiled, *compiled.given, made))
        return error;
    if (isSettled)
      if (llvm::Error error = checkVersions(compiled, *compiled.given, made))
        return error;
    for (plan::GroupPlan &line : made.groups)
      for (const plan::Recomputation &each : again)
        if (each.name == line.name)
          line.again = each;
    compiled.planJson = made.str();
    compiled.costJson = costJson(options, *deciders);
    return llvm::Error::success();
  };
  while (true) {
    if (llvm::Error error = stages.run("partition", 0.2, split, module))
      return error;
    if (llvm::Error error = stages.run("plan", 0.22, choose, module))
      return error;
    if (isSettled)
      break;
    compiled.graph = whole->clone();
  }
  MemoryGoal goal = memoryGoal(options, *compiled.given);
  if (!goal.limit && goal.share == 0)
    return llvm::Error::success();
  return arrangeMemory(compiled, goal, again,
                       [&] { return stages.run("plan", 0.23, choose, module); });
}

} // namespace heddle
