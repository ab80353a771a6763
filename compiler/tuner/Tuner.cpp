// Tuner: the walk over the groups, most expensive first, and the trials of each.
//
// Groups share the time by their costs. Candidates get a short look first, and those that look
// fastest are measured at length; only these count. Recorded candidates are not measured again, so
// a tuning that was interrupted goes on where it ended.

#include "compiler/tuner/Tuner.h"

#include "compiler/graph/Typical.h"
#include "compiler/learn/Model.h"
#include "compiler/records/Decision.h"
#include "compiler/support/Error.h"
#include "compiler/tuner/Tuning.h"
#include "compiler/tuner/plans/PlanTuner.h"

#include "llvm/Support/Path.h"
#include "llvm/TargetParser/Host.h"

#include <set>

using namespace mlir;

namespace heddle::tuner {

using plan::Choice;
using records::Record;
using support::Outcome;

static constexpr double kLeastSlice = 3;   // seconds that a group gets at a time
static constexpr double kFinalSeconds = 8; // share of a slice in seconds, for long measurements of
                                           // finalists
static constexpr int64_t kCollectedAtOnce = 8;

std::string machineName() {
  return (llvm::sys::getHostCPUName() + ", " + Twine(records::threadsOf(0)) + " threads").str();
}

bool Tuner::shouldStop() {
  if (ended != "done")
    return true;
  if (left() <= 0)
    ended = "time";
  else if (options.progress && options.progress(doing, done()))
    ended = "interrupted";
  return ended != "done";
}

uint64_t Tuner::seedOf(const GroupTuning &work) const {
  uint64_t seed = 0;
  StringRef(work.key.hash).take_back(16).getAsInteger(16, seed);
  return seed ^ options.seed;
}

llvm::Expected<std::unique_ptr<ExtractedGroup>> Tuner::extractedGroupOf(GroupTuning &work) {
  return ExtractedGroup::make(work.group, work.sizes, seedOf(work));
}

static Json timingJson(const trial::Timing &timing) {
  return {{"seconds", timing.seconds},
          {"base_seconds", timing.baseSeconds},
          {"speedup", timing.speedup}};
}

llvm::Error Tuner::keep(GroupTuning &work, const Choice &choice, const Outcome &outcome,
                        bool isConfirmed) {
  if (outcome.isStopped)
    return llvm::Error::success();
  Record record = work.recordOf(choice);
  record.failure = outcome.failure;
  record.limitSeconds = outcome.isTimeout ? options.trialSeconds : 0;
  record.isConfirmed = isConfirmed && outcome.failure.empty();
  if (outcome.failure.empty()) {
    Json timing = parseJson(outcome.result);
    record.seconds = timing.at("seconds");
    record.speedup = timing.at("speedup");
  }
  work.keep(record);
  return records.add(record);
}

/// Whether what is known of a candidate still holds: what did not end may end with more time.
bool Tuner::isSettled(const Record *record) const {
  return record && (record->limitSeconds == 0 || record->limitSeconds >= options.trialSeconds);
}

llvm::Error Tuner::measureBase(GroupTuning &work, ExtractedGroup &subject, trial::Program *ready) {
  Outcome outcome = support::guarded(
      [&]() -> llvm::Expected<std::string> {
        std::unique_ptr<trial::Program> made;
        if (!ready) {
          auto program = subject.compile(work.base, compile);
          if (!program)
            return program.takeError();
          made = std::move(*program);
        }
        auto timing = trial::compareSpeed(nullptr, ready ? *ready : *made, subject.inputs(),
                                          threads, trial::kLook);
        return timing ? llvm::Expected<std::string>(timingJson(*timing).dump())
                      : timing.takeError();
      },
      options.trialSeconds, [&] { return shouldStop(); });
  return keep(work, work.base, outcome, /*isConfirmed=*/true);
}

/// Keeps what the group is, who has it, which cards it is offered and what it runs on, so that
/// records are enough to learn from.
llvm::Error Tuner::keepExtracted(GroupTuning &work) {
  if (llvm::Error error = records.describe(work.key.hash, work.key.text))
    return error;
  if (!options.model.empty())
    if (llvm::Error error =
            records.addOrigin(work.key.hash, options.model, int64_t(work.names.size())))
      return error;
  for (const warehouse::Offer &offer : work.offers)
    if (offer.isOffered())
      if (llvm::Error error = records.addCard(*offer.card))
        return error;
  return records.addMachine(work.blank, planned.machine);
}

/// Reads what records know of the group, and measures its default choice, by the program that is
/// `ready`, if any.
llvm::Error Tuner::prepare(GroupTuning &work, trial::Program *ready) {
  doing = "measuring '" + work.names.front() + "' as it is";
  Record &blank = work.blank;
  blank.situation.target = planned.target->identity;
  blank.situation.threads = threads;
  blank.machine = machineName();
  for (const std::string &symbol : work.key.symbols)
    blank.sizes += (blank.sizes.empty() ? "" : ",") + std::to_string(work.sizeOf(symbol));
  if (llvm::Error error = keepExtracted(work))
    return error;
  auto known = records.find(blank.situation);
  if (!known)
    return known.takeError();
  for (const Record &record : *known)
    if (record.base == blank.base && record.sizes == blank.sizes && (mayRound() || !record.isShort))
      work.keep(record);
  if (!isSettled(work.find(work.base))) {
    auto subject = extractedGroupOf(work);
    if (!subject) {
      work.problem = llvm::toString(subject.takeError());
      return llvm::Error::success();
    }
    if (llvm::Error error = measureBase(work, **subject, ready))
      return error;
  }
  const Record *base = work.find(work.base);
  if (!base || !base->failure.empty()) {
    work.problem = base ? base->failure : "there was no time to measure it";
    return llvm::Error::success();
  }
  work.baseSeconds = base->seconds;
  std::vector<const warehouse::Card *> offered;
  for (const warehouse::Offer &offer : work.offers)
    if (offer.isOffered())
      offered.push_back(offer.card);
  work.search.emplace(offered, work.base, threads, seedOf(work), work.shortCards);
  work.search->beginWith(work.shortBase);
  for (const Record &record : work.records)
    if (isSettled(&record))
      work.search->tell(work.choiceOf(record), record.speedup);
  return llvm::Error::success();
}

/// The speedup, which is kept; 0 when the candidate failed, or when the tuning was ended meanwhile.
llvm::Expected<double> Tuner::measure(GroupTuning &work, ExtractedGroup &subject,
                                      trial::Program &base, const Choice &choice,
                                      const trial::Effort &effort) {
  const RoundedResults *rounded =
      choice.isShort ? &subject.rounded(compile, options.trialSeconds) : nullptr;
  Outcome outcome = support::guarded(
      [&]() -> llvm::Expected<std::string> {
        if (rounded && !rounded->problem.empty())
          return makeError(ErrorCode::Refused, rounded->problem);
        auto program = subject.compile(choice, compile);
        if (!program)
          return program.takeError();
        if (!(*program)->isCarriedOut)
          return makeError(ErrorCode::Refused, "its mechanism '" +
                                                   choice.mechanismFor(work.group)->name +
                                                   "' cannot be carried out for this group");
        auto difference = rounded ? trial::differenceOf(rounded->results, **program,
                                                        subject.inputs(), subject.resultElements(),
                                                        "those of factors of bf16", rounded->slack)
                                  : trial::differenceOf(base, **program, subject.inputs(),
                                                        subject.resultElements());
        if (!difference)
          return difference.takeError();
        if (!difference->empty())
          return makeError(ErrorCode::NumbersDiffer, *difference);
        auto timing = trial::compareSpeed(&base, **program, subject.inputs(), threads, effort);
        return timing ? llvm::Expected<std::string>(timingJson(*timing).dump())
                      : timing.takeError();
      },
      options.trialSeconds, [&] { return shouldStop(); });
  if (llvm::Error error = keep(work, choice, outcome, effort.isFinal))
    return std::move(error);
  if (!outcome.failure.empty())
    return 0.0;
  Json timing = parseJson(outcome.result);
  if (llvm::Error error = keepBase(work, timing.at("base_seconds")))
    return std::move(error);
  return timing.at("speedup").get<double>();
}

/// A look at a candidate; a closer one where it seems better than all before, lest the search
/// follows what was luck.
llvm::Error Tuner::explore(GroupTuning &work, ExtractedGroup &subject, trial::Program &base,
                           const Choice &choice) {
  auto speedup = measure(work, subject, base, choice, trial::kLook);
  if (speedup && *speedup > work.search->bestSpeedup())
    speedup = measure(work, subject, base, choice, trial::kCloserLook);
  if (!speedup)
    return speedup.takeError();
  if (ended != "done")
    return llvm::Error::success();
  ++trials;
  ++work.measured;
  work.search->tell(choice, *speedup);
  return llvm::Error::success();
}

/// Keeps the least time seen: other load of the machine only ever adds.
llvm::Error Tuner::keepBase(GroupTuning &work, double seconds) {
  if (seconds >= work.baseSeconds)
    return llvm::Error::success();
  work.baseSeconds = seconds;
  Record record = *work.find(work.base);
  record.seconds = seconds;
  work.keep(record);
  return records.add(record);
}

/// The group cut out, and its default choice, which candidates are held against. That has run in a
/// process of its own, so it is safe here; children inherit it as it is.
llvm::Expected<Tuner::Beside> Tuner::besideBase(GroupTuning &work) {
  auto subject = extractedGroupOf(work);
  if (!subject)
    return subject.takeError();
  auto base = (*subject)->compile(work.base, compile);
  if (!base)
    return base.takeError();
  return Beside{std::move(*subject), std::move(*base)};
}

llvm::Error Tuner::tune(GroupTuning &work, double seconds) {
  double end = elapsed() + seconds, exploring = end - std::min(kFinalSeconds, 0.4 * seconds);
  size_t number =
      llvm::find_if(works, [&](auto &each) { return each.get() == &work; }) - works.begin() + 1;
  auto say = [&] {
    doing = llvm::formatv("'{0}', {1} of {2} groups, candidate {3}", work.names.front(), number,
                          works.size(), work.search->triedCount());
  };
  auto first = work.search->next();
  if (!first && work.finalists().empty()) {
    work.isDone = true;
    return llvm::Error::success();
  }
  auto beside = besideBase(work);
  if (!beside)
    return beside.takeError();
  auto &[subject, base] = *beside;
  for (auto choice = first; choice; choice = work.search->next()) {
    say();
    if (isOver()) // trials or time ran out: candidates found so far are confirmed all the same
      break;
    if (llvm::Error error = explore(work, *subject, *base, *choice))
      return error;
    if (elapsed() >= exploring)
      break;
  }
  for (const Choice &choice : work.finalists()) {
    if (shouldStop())
      return llvm::Error::success();
    if (auto speedup = measure(work, *subject, *base, choice, trial::kDecide); !speedup)
      return speedup.takeError();
  }
  return llvm::Error::success();
}

/// Has a look at drawn candidates of a group until so many are known.
llvm::Error Tuner::collect(GroupTuning &work, int64_t count) {
  if (work.search->triedCount() >= count)
    return llvm::Error::success();
  auto beside = besideBase(work);
  if (!beside)
    return beside.takeError();
  auto &[subject, base] = *beside;
  while (work.search->triedCount() < count && !isOver()) {
    auto choice = work.search->draw();
    work.isDone = !choice;
    if (!choice)
      break;
    doing = llvm::formatv("'{0}', candidate {1} of {2}", work.names.front(),
                          work.search->triedCount() + 1, options.collected);
    auto speedup = measure(work, *subject, *base, *choice, trial::kLook);
    if (!speedup)
      return speedup.takeError();
    if (ended != "done")
      break;
    ++trials;
    ++work.measured;
    work.search->tell(*choice, *speedup);
  }
  return llvm::Error::success();
}

/// A few candidates of each group at a time, so that all have some when the time is over. A group
/// is prepared before its first ones: with many groups, that alone may take all of the time.
llvm::Error Tuner::collect() {
  for (int64_t count = 0; count < options.collected && !isOver();) {
    bool isFirst = count == 0;
    count = std::min(count + kCollectedAtOnce, options.collected);
    for (auto &work : works) {
      if (isFirst && isOver())
        work->problem = "it was not reached in time";
      else if (isFirst)
        if (llvm::Error error = prepare(*work))
          return error;
      if (!work->search || work->isDone || isOver())
        continue;
      if (llvm::Error error = collect(*work, count))
        return error;
    }
  }
  return llvm::Error::success();
}

/// Shares the time by the groups' costs.
llvm::Error Tuner::search() {
  double whole = 0;
  for (auto &work : works)
    whole += work->weight();
  for (auto &work : works)
    work->isDone = !work->search || work->weight() < kLeastShare * whole;
  for (auto &work : works)
    if (model && !work->isDone && !work->isJoint)
      if (llvm::Error error = follow(*work, whole))
        return error;
  while (!isOver()) {
    double open = 0;
    for (auto &work : works)
      open += work->isDone ? 0 : work->weight();
    if (open == 0)
      break;
    for (auto &work : works) {
      if (work->isDone || isOver())
        continue;
      double slice = std::max(kLeastSlice, left() * work->weight() / open);
      open -= work->weight();
      if (llvm::Error error = tuneFor(*work, slice))
        return error;
    }
  }
  return llvm::Error::success();
}

/// Sets the sizes at which a group is measured; the cost of several is that of the largest.
void Tuner::setSizes(GroupTuning &work) const {
  work.sizes = options.sizes;
  std::vector<Instance> instances = instancesOf(options.over, work.key.symbols);
  work.isJoint = instances.size() > 1 && work.base.card;
  for (auto &[symbol, size] : instances.back().sizes)
    work.sizes[symbol] = size;
}

/// Candidates for a group, for so long.
llvm::Error Tuner::tuneFor(GroupTuning &work, double seconds) {
  return work.isJoint ? tuneJointly(work, seconds) : tune(work, seconds);
}

llvm::Error Tuner::run(OwningOpRef<ModuleOp> imported) {
  planned.context->disableMultithreading();
  if (int64_t others = support::countThreads() - 1)
    return makeError(ErrorCode::Usage, "error: this process has " + Twine(others) +
                                           " other threads, but tuning forks, which they would not "
                                           "survive\nnote: use the command 'heddle tune'");
  auto loaded = loadCards(planned);
  if (!loaded)
    return loaded.takeError();
  cards.emplace(std::move(*loaded));
  auto found = worksOf(*planned.graph, *cards, planned.machine, mayRound());
  if (!found)
    return found.takeError();
  works = std::move(*found);
  std::set<std::string> known;
  for (auto &work : works)
    known.insert(work->key.symbols.begin(), work->key.symbols.end());
  if (llvm::Error error = checkOver(options.over, known))
    return error;
  for (auto &work : works)
    setSizes(*work);
  if (options.collected) {
    if (llvm::Error error = collect())
      return error;
  } else if (!imported) {
    for (auto &work : works)
      if (llvm::Error error = prepare(*work))
        return error;
  }
  llvm::sort(works, [](auto &a, auto &b) {
    return std::pair(-a->weight(), a->key.hash) < std::pair(-b->weight(), b->key.hash);
  });
  if (imported) {
    PlanTuner search(*this, std::move(imported));
    if (llvm::Error error = search.run())
      return error;
    plans = search.report();
  } else if (!options.collected) {
    if (llvm::Error error = search())
      return error;
  }
  if (ended == "done" && options.trials > 0 && trials >= options.trials)
    ended = "trials";
  return llvm::Error::success();
}

Json Tuner::report() const {
  double whole = 0;
  for (auto &work : works)
    whole += work->weight();
  Json json = {{"target", planned.target->identity},
               {"threads", threads},
               {"records", compile.recordsPath},
               {"ended", ended},
               {"trials", trials},
               {"seconds", elapsed()},
               {"cost_model", nullptr},
               {"groups", Json::array()}};
  if (!compile.costModelPath.empty())
    json["cost_model"] = {
        {"path", compile.costModelPath},
        {"problem", compile.costModelProblem.empty()
                        ? Json()
                        : Json(compile.costModelProblem + "; the search goes on without it" +
                               learn::kWayOut.str())}};
  for (auto &work : works)
    json["groups"].push_back(describe(*work, whole));
  if (!plans.is_null())
    json["plans"] = plans;
  return json;
}

llvm::Expected<std::string> tune(const ModelSource &source, const CompileOptions &compile,
                                 const TuneOptions &options) {
  auto records = records::Records::open(compile.recordsPath, records::Records::Access::Write);
  if (!records)
    return records.takeError();
  CompileOptions byRule = compile;
  byRule.recordsPath.clear();
  byRule.costModel = nullptr;
  byRule.costModelPath.clear();
  byRule.plansOnly = true;
  byRule.progress = nullptr;
  auto planned = heddle::compile(source, byRule);
  if (!planned)
    return planned.takeError();
  if (llvm::Error error = target::checkRunsHere(*(*planned)->target, source.path))
    return std::move(error);
  TuneOptions measured = options;
  measured.model = llvm::sys::path::filename(source.path).str();
  if (auto typical = (*(*planned)->graph)->getAttrOfType<DictionaryAttr>(graph::kTypicalAttr))
    for (NamedAttribute size : typical)
      measured.sizes.try_emplace(size.getName().str(), cast<IntegerAttr>(size.getValue()).getInt());
  CompileOptions groups = compile;
  groups.progress = nullptr;
  groups.costModel = nullptr; // a lone group is given its choice
  Tuner tuner(**planned, groups, measured, **records, compile.costModel.get());
  OwningOpRef<ModuleOp> imported;
  if (options.plans.areTuned) {
    auto graph = importGiven(*(*planned)->context, source, byRule);
    if (!graph)
      return graph.takeError();
    imported = std::move(*graph);
  }
  if (llvm::Error error = tuner.run(std::move(imported)))
    return std::move(error);
  return tuner.report().dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace heddle::tuner
