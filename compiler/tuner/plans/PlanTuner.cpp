// PlanTuner: see PlanTuner.h.

#include "compiler/tuner/plans/PlanTuner.h"

#include "compiler/estimate/Seconds.h"
#include "compiler/mechanism/Mechanism.h"
#include "compiler/support/Error.h"
#include "compiler/trial/Numbers.h"
#include "compiler/tuner/ExtractedGroup.h"

#include <cmath>

using namespace mlir;

namespace heddle::tuner {

static constexpr int64_t kStepsAtOnce = 5;      // steps over plans, then as long over knobs: S of
                                                // the paper
static constexpr double kClearlyLess = 0.97;    // share of the time of the groups that a plan
                                                // replaces
static constexpr double kFasterWhole = 1.01;    // speed-up of a whole model, measured by turns,
                                                // twice
static constexpr double kNewer = 1.0 / 3;       // weight of the last trial in what they take
static constexpr double kKnobSlice = 3;         // seconds that a group gets at a time
static constexpr double kSequentialShare = 0.5; // share of the whole for plans, before any knobs

PlanTuner::PlanTuner(Tuner &tuner, OwningOpRef<ModuleOp> imported)
    : tuner(tuner), imported(std::move(imported)) {
  for (auto &work : tuner.works) {
    work->baseSeconds = estimated(*work);
    byKey[work->key.hash] = work.get();
  }
}

/// Rough seconds of a run of the group: a start, and arithmetic or memory. The estimate only guides
/// the search; plans are compared by measurements.
double PlanTuner::estimated(const GroupTuning &work) const {
  auto valueOf = [&](const graph::Dim &dim) {
    auto value =
        dim.evaluate([&](StringRef symbol) { return std::optional(work.sizeOf(symbol.str())); });
    return static_cast<double>(value.value_or(0));
  };
  graph::GroupOp group = work.group;
  Block &body = group.getBody().front();
  return estimate::secondsOf(
      estimate::workOf(mechanism::opsOf(body), body.getTerminator()->getOperands(), valueOf),
      tuner.planned.machine);
}

/// Groups without schedules of their own: candidates are held against the default choice.
llvm::Expected<std::unique_ptr<Compiled>> PlanTuner::plan(const Decisions &decisions) {
  CompileOptions options = tuner.compile;
  options.recordsPath.clear();
  options.costModel = nullptr;
  options.shortFloats = program::ShortFloats::None; // precision is a knob
  options.plansOnly = true;
  plan::Plan wanted = planOf(sites, decisions);
  options.planText = wanted.str();
  options.planPath = wanted.path;
  return compileGraph(tuner.planned.context, imported->clone(), options);
}

/// Null if the decisions cannot be carried out.
llvm::Expected<std::unique_ptr<PlanTuner::Costed>> PlanTuner::costOf(const Decisions &decisions) {
  auto planned = plan(decisions);
  if (!planned) {
    ++refused;
    llvm::consumeError(planned.takeError());
    return nullptr;
  }
  auto costed = std::make_unique<Costed>();
  costed->planned = std::move(*planned);
  if (llvm::Error error = findGroups(*costed))
    return std::move(error);
  return costed;
}

llvm::Error PlanTuner::findGroups(Costed &costed) {
  auto found =
      worksOf(*costed.planned->graph, *tuner.cards, tuner.planned.machine, tuner.mayRound());
  if (!found)
    return found.takeError();
  bool isKept = false;
  for (std::unique_ptr<GroupTuning> &work : *found) {
    GroupTuning *&known = byKey[work->key.hash];
    std::vector<std::string> names = work->names;
    if (!known) {
      tuner.setSizes(*work);
      work->baseSeconds = estimated(*work);
      known = tuner.works.emplace_back(std::move(work)).get();
      isKept = true;
    }
    costed.groups[known] = std::move(names);
  }
  if (isKept) // their groups live in it
    kept.push_back(costed.planned);
  return llvm::Error::success();
}

/// Measures the group with its default choice, once.
llvm::Error PlanTuner::measure(GroupTuning &work) {
  if (!measured.insert(&work).second)
    return llvm::Error::success();
  double begin = tuner.elapsed();
  llvm::Error error = tuner.prepare(work);
  ofGroup += kNewer * (tuner.elapsed() - begin - ofGroup);
  return error;
}

/// Seconds of the whole plan: groups not measured, which it shares with the best plan, count as
/// estimated.
double PlanTuner::secondsOf(const Costed &costed) const {
  double seconds = 0;
  for (auto &[work, names] : costed.groups)
    seconds += work->baseSeconds * static_cast<double>(names.size());
  return seconds;
}

/// Measures groups that the two plans do not share once more: of many candidates the luckiest would
/// win.
llvm::Error PlanTuner::measureAgain(const Costed &costed) {
  for (const Costed *from : {static_cast<const Costed *>(best.get()), &costed})
    for (auto &[work, names] : from->groups) {
      bool isShared = best->groups.count(work) && costed.groups.count(work);
      if (isShared || !work->problem.empty() || tuner.shouldStop())
        continue;
      double before = work->baseSeconds;
      auto subject = tuner.extractedGroupOf(*work);
      if (!subject)
        return subject.takeError();
      if (llvm::Error error = tuner.measureBase(*work, **subject, nullptr))
        return error;
      if (const records::Record *record = work->find(work->base); record->failure.empty())
        work->baseSeconds = std::min(before, record->seconds);
    }
  return llvm::Error::success();
}

/// Compares two plans by the groups in which they differ, which have been measured.
llvm::Expected<bool> PlanTuner::isClearlyFaster(Costed &costed) {
  if (secondsOf(costed) >= secondsOf(*best))
    return false;
  if (llvm::Error error = measureAgain(costed))
    return std::move(error);
  double before = 0, after = 0; // seconds of groups that are not in both
  auto count = [](const Costed &of, GroupTuning *work) {
    auto found = of.groups.find(work);
    return found == of.groups.end() ? 0.0 : static_cast<double>(found->second.size());
  };
  for (Costed *of : {best.get(), &costed})
    for (auto &[work, names] : of->groups) {
      double more = count(*of, work) - count(of == &costed ? *best : costed, work);
      (of == &costed ? after : before) += std::max(0.0, more) * work->baseSeconds;
    }
  return after < kClearlyLess * before;
}

/// Numbers for the whole model, of the sizes at which groups are measured.
void PlanTuner::drawInputs() {
  OwningOpRef<ModuleOp> copy(imported->clone()); // ranges are attributes, which no plan shall see
  auto main = copy->lookupSymbol<func::FuncOp>("main");
  trial::Sizes sizes = tuner.options.sizes;
  for (auto &[symbol, some] : tuner.options.over) // the largest
    sizes[symbol] = some.back().size;
  for (Type type : main.getArgumentTypes())
    for (const graph::Dim &dim : graph::dimsOf(cast<RankedTensorType>(type)))
      if (auto symbol = dim.symbolName())
        sizes.try_emplace(*symbol, kNominalSize);
  for (auto &[symbol, size] : sizes)
    blank.sizes += (blank.sizes.empty() ? "" : ",") + symbol + "=" + std::to_string(size);
  addRanges(main, sizes);
  trial::Random random(tuner.options.seed);
  auto drawn = trial::randomInputs(main, sizes, random);
  if (!drawn)
    whyNotWhole = "a size is negative, or a tensor is too large to try";
  else
    inputs = std::move(*drawn);
}

llvm::Expected<std::unique_ptr<trial::Program>> PlanTuner::programOf(const Costed &costed) {
  OwningOpRef<ModuleOp> module(costed.module().clone());
  return trial::Program::borrow(*tuner.planned.context, std::move(module), tuner.compile);
}

/// Whether the whole model runs here. The best plan's program is compiled when it is first needed,
/// and runs in each trial's process beside another one; the default plan's runs beside itself once.
bool PlanTuner::runsWhole() {
  if (!whyNotWhole.empty() || bestProgram)
    return whyNotWhole.empty();
  auto program = programOf(*best);
  if (!program) {
    whyNotWhole = llvm::toString(program.takeError());
    return false;
  }
  bestProgram = std::move(*program);
  if (best == first && !timeWhole(*best, trial::kLook) && !tuner.shouldStop()) {
    whyNotWhole = lastFailure;
    bestProgram.reset();
  }
  return whyNotWhole.empty();
}

/// The whole model as this plan has it, beside the best one, by turns; nothing if it fails.
std::optional<trial::Timing> PlanTuner::timeWhole(const Costed &costed,
                                                  const trial::Effort &effort) {
  double begin = tuner.elapsed();
  support::Outcome outcome = support::guarded(
      [&]() -> llvm::Expected<std::string> {
        auto program = programOf(costed);
        if (!program)
          return program.takeError();
        auto timing =
            trial::compareSpeed(bestProgram.get(), **program, inputs,
                                static_cast<int>(tuner.threads), effort, trial::Extent::Model);
        return timing ? llvm::Expected<std::string>(Json({timing->seconds, timing->speedup}).dump())
                      : timing.takeError();
      },
      tuner.left(), [&] { return tuner.shouldStop(); });
  if (outcome.isStopped || outcome.isTimeout)
    return std::nullopt;
  ofWhole += kNewer * (tuner.elapsed() - begin - ofWhole);
  lastFailure = outcome.failure;
  if (!outcome.failure.empty())
    return std::nullopt;
  Json found = parseJson(outcome.result);
  return trial::Timing{found[0], 0, found[1]};
}

/// Loads the records of plans for this model.
llvm::Error PlanTuner::recall() {
  blank.target = tuner.planned.target->identity;
  blank.threads = tuner.threads;
  blank.machine = machineName();
  blank.base = records::hashOf(first->planned->planJson);
  auto found = tuner.records.plansLike(blank);
  if (!found)
    return found.takeError();
  for (records::PlanRecord &record : *found)
    known[record.decisions] = std::move(record);
  return llvm::Error::success();
}

/// Only what the whole model took: the records of groups know the rest.
llvm::Error PlanTuner::keep(const Costed &costed, const std::string &decisions,
                            const Judgement &judgement) {
  if (tuner.shouldStop())
    return llvm::Error::success();
  records::PlanRecord record = blank;
  record.decisions = decisions;
  std::map<std::string, size_t> counts;
  for (auto &[work, names] : costed.groups)
    counts[work->key.hash] = names.size();
  record.groups = Json(counts).dump();
  if (judgement.measured > 0) {
    record.seconds = judgement.measured;
    record.speedup = defaultSeconds / judgement.seconds;
    record.isConfirmed = judgement.isFaster;
  } else {
    record.failure = lastFailure;
  }
  known[decisions] = record;
  return tuner.records.add(record);
}

/// The recorded judgement of a plan.
std::optional<PlanTuner::Judgement> PlanTuner::remembered(const std::string &decisions) const {
  auto found = known.find(decisions);
  if (found == known.end())
    return std::nullopt;
  const records::PlanRecord &record = found->second;
  if (!record.failure.empty() || record.speedup <= 0)
    return Judgement();
  double seconds = defaultSeconds / record.speedup;
  return Judgement{seconds, record.isConfirmed && seconds < bestSeconds, record.seconds};
}

bool PlanTuner::isWholeCheaper(const Costed &costed) {
  auto countNew = [&](const Costed &of, const Costed &than) {
    return llvm::count_if(of.groups, [&](const auto &group) {
      return !than.groups.count(group.first) && !measured.count(group.first);
    });
  };
  auto count = static_cast<double>(countNew(costed, *best) + countNew(*best, costed));
  return ofWhole < ofGroup * count && runsWhole();
}

PlanTuner::Judgement PlanTuner::judgeWhole(const Costed &costed) {
  std::optional<trial::Timing> timing = timeWhole(costed, trial::kLook);
  bool isFaster = false;
  if (timing && timing->speedup > kFasterWhole) {
    timing = timeWhole(costed, trial::kCloserLook);
    isFaster = timing && timing->speedup > kFasterWhole;
    ++(isFaster ? confirmed : refuted);
  }
  if (timing)
    return {bestSeconds / timing->speedup, isFaster, timing->seconds};
  refused += !tuner.shouldStop();
  return {};
}

llvm::Expected<PlanTuner::Judgement> PlanTuner::judgeByGroups(Costed &costed) {
  for (Costed *from : {best.get(), &costed})
    for (auto &[work, names] : from->groups) {
      if (best->groups.count(work) && costed.groups.count(work))
        continue;
      if (llvm::Error error = measure(*work))
        return std::move(error);
      if (from != best.get() && !work->problem.empty()) {
        ++refused;
        return Judgement();
      }
    }
  auto isFaster = isClearlyFaster(costed);
  if (!isFaster)
    return isFaster.takeError();
  double speedup = secondsOf(*best) / secondsOf(costed);
  if (!*isFaster) // its groups apart may promise too much
    return Judgement{bestSeconds / std::min(speedup, 1.0)};
  if (!runsWhole())
    return Judgement{bestSeconds / speedup, true};
  std::optional<trial::Timing> whole = timeWhole(costed, trial::kCloserLook);
  if (!whole)
    return Judgement();
  ++(whole->speedup > 1 ? confirmed : refuted);
  return Judgement{bestSeconds / whole->speedup, whole->speedup > 1, whole->seconds};
}

/// The best plan from now on.
llvm::Error PlanTuner::take(std::shared_ptr<Costed> costed, const Decisions &decisions,
                            double seconds) {
  best = std::move(costed);
  bestProgram.reset();
  bestSeconds = seconds;
  decided = decisions;
  auto made = plan::parsePlan(best->planned->planJson, "the plan of a search");
  if (!made)
    return made.takeError();
  blank.model = made->model;
  auto ofGroup = [&](graph::GroupOp group) {
    return byKey.at(records::keyOf(group).hash)->baseSeconds;
  };
  for (Site &site : sitesOf(best->module(), made->layouts, ofGroup))
    if (tuner.options.plans.decides(nameOf(site.section)) && !llvm::is_contained(sites, site))
      sites.push_back(std::move(site));
  return llvm::Error::success();
}

llvm::Error PlanTuner::step(Strategy &strategy) {
  strategy.setScene(sites, tuner.done());
  auto decisions = strategy.next();
  if (!decisions) {
    isExhausted = true;
    return llvm::Error::success();
  }
  tuner.doing = llvm::formatv("plan {0} of {1} sites", ++steps, sites.size());
  std::string text = planOf(sites, *decisions).str();
  std::optional<Judgement> recalled = remembered(text);
  Judgement judgement = recalled.value_or(Judgement());
  std::unique_ptr<Costed> costed;
  if (!recalled || judgement.isFaster) {
    auto made = costOf(*decisions);
    if (!made)
      return made.takeError();
    costed = std::move(*made);
  }
  if (costed && !recalled) {
    bool isWhole = isWholeCheaper(*costed);
    auto judged = isWhole ? judgeWhole(*costed) : judgeByGroups(*costed);
    if (!judged)
      return judged.takeError();
    ++tuner.trials;
    judgement = *judged;
    if (isWhole || judgement.measured > 0)
      if (llvm::Error error = keep(*costed, text, judgement))
        return error;
  }
  strategy.setScene(sites, tuner.done());
  strategy.tell(*decisions, judgement.seconds);
  if (costed && judgement.isFaster)
    return take(std::move(costed), *decisions, judgement.seconds);
  return llvm::Error::success();
}

/// The group of the best plan that has had least for what it costs gets a slice.
llvm::Error PlanTuner::tuneKnobs() {
  GroupTuning *next = nullptr;
  auto urgency = [&](GroupTuning *work) {
    auto known = spent.find(work);
    return work->baseSeconds * static_cast<double>(best->groups.at(work).size()) /
           (kKnobSlice + (known == spent.end() ? 0 : known->second));
  };
  for (auto &[work, names] : best->groups)
    if (!work->isDone && (!next || urgency(work) > urgency(next)))
      next = work;
  if (!next) {
    isTuned = true;
    return llvm::Error::success();
  }
  double before = tuner.elapsed();
  if (llvm::Error error = measure(*next))
    return error;
  double share = next->baseSeconds * static_cast<double>(best->groups.at(next).size());
  if (!next->search || share < kLeastShare * secondsOf(*best)) {
    next->isDone = true;
    return llvm::Error::success();
  }
  if (tuner.model && !next->isJoint && !spent.count(next))
    if (llvm::Error error = tuner.follow(*next, secondsOf(*best)))
      return error;
  llvm::Error error = tuner.tuneFor(*next, kKnobSlice);
  spent[next] += tuner.elapsed() - before;
  return error;
}

llvm::Error PlanTuner::run() {
  const PlanOptions &options = tuner.options.plans;
  std::unique_ptr<Strategy> strategy = strategyOf(options.strategy, tuner.options.seed);
  drawInputs();
  auto made = costOf({});
  if (!made)
    return made.takeError();
  if (!*made)
    return makeError(ErrorCode::Internal, "internal error: the default plan is refused");
  first = std::move(*made);
  defaultSeconds = secondsOf(*first);
  strategy->tell({}, defaultSeconds);
  if (llvm::Error error = take(first, {}, defaultSeconds))
    return error;
  if (llvm::Error error = recall())
    return error;
  bool isKnobs = options.decides("knobs");
  isExhausted = sites.empty();
  isTuned = !isKnobs;
  while (!tuner.isOver() && !(isExhausted && isTuned)) {
    double begin = tuner.elapsed();
    bool isSequential = options.isSequential && isKnobs;
    auto isGraphOver = [&] {
      return isExhausted || tuner.isOver() || (isSequential && tuner.done() > kSequentialShare);
    };
    for (int64_t i = 0; !isGraphOver() && (isSequential || isTuned || i < kStepsAtOnce); ++i)
      if (llvm::Error error = step(*strategy))
        return error;
    double end = tuner.elapsed() + (tuner.elapsed() - begin);
    do {
      if (isTuned || tuner.isOver())
        break;
      if (llvm::Error error = tuneKnobs())
        return error;
    } while (isSequential || isExhausted || tuner.elapsed() < end);
  }
  keepBest();
  return llvm::Error::success();
}

/// The tuner's works are those of the best plan, by their share.
void PlanTuner::keepBest() {
  std::erase_if(tuner.works, [&](auto &work) { return !best->groups.count(work.get()); });
  for (auto &[work, names] : best->groups) {
    work->names = names;
    if (!measured.count(work))
      work->problem = "the search did not come to it";
  }
}

Json PlanTuner::report() const {
  Json json = {{"strategy", tuner.options.plans.strategy},
               {"schedule", tuner.options.plans.isSequential ? "sequential" : "joint"},
               {"sites", sites.size()},
               {"tried", steps},
               {"refused", refused},
               {"confirmed", confirmed},
               {"refuted", refuted},
               {"not_run_whole", whyNotWhole.empty() ? Json() : Json(whyNotWhole)},
               {"ratio", defaultSeconds / bestSeconds},
               {"decisions", Json::array()},
               {"plan", decided.empty() ? Json() : Json(planOf(sites, decided).str())}};
  for (size_t number : decided)
    json["decisions"].push_back({{"section", nameOf(sites[number].section)},
                                 {"names", sites[number].names},
                                 {"value", sites[number].value}});
  return json;
}

} // namespace heddle::tuner
