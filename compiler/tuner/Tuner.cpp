// Tuner: the walk over the groups, most expensive first, and the trials of each.
//
// The time is shared by what the groups cost. Candidates get a short look first, and those that
// look fastest are measured at length; only these count. What has a record is not measured again,
// so a tuning that was interrupted goes on where it ended.

#include "compiler/tuner/Tuner.h"

#include "compiler/cards/Numbers.h"
#include "compiler/graph/Typical.h"
#include "compiler/pipeline/Planning.h"
#include "compiler/records/Decision.h"
#include "compiler/support/Error.h"
#include "compiler/support/Guard.h"
#include "compiler/tuner/AtSizes.h"
#include "compiler/tuner/Comparison.h"
#include "compiler/tuner/Report.h"
#include "compiler/tuner/joint/Sizes.h"

#include "llvm/TargetParser/Host.h"

#include <chrono>
#include <set>

using namespace mlir;

namespace heddle::tuner {

using plan::Choice;
using records::Record;
using support::Outcome;
using Clock = std::chrono::steady_clock;

static constexpr double kLeastSlice = 3;     // seconds that a group gets at a time
static constexpr double kFinalSeconds = 8;   // of a slice, to measure finalists at length
static constexpr int64_t kJointTrials = 32;  // of a group, for all sizes together
static constexpr size_t kMostVersions = 4;   // of micro-kernels that a decision chooses from
static constexpr double kLeastShare = 0.002; // of the model's time: less is not worth a trial

namespace {
class Tuner {
public:
  Tuner(Compiled &planned, const CompileOptions &compile, const TuneOptions &options,
        records::Records &records)
      : planned(planned), compile(compile), options(options), records(records),
        threads(records::threadsOf(compile.threads)) {}

  llvm::Error run();
  Json report() const;

private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }
  double left() const { return options.seconds - elapsed(); }
  bool shouldStop();
  bool isOver() { return shouldStop() || (options.trials > 0 && trials >= options.trials); }

  llvm::Error prepare(Work &work);
  llvm::Error checkOver() const;
  llvm::Error measureBase(Work &work, Subject &subject);
  llvm::Error tune(Work &work, double seconds);
  llvm::Error tuneJointly(Work &work, double seconds);
  llvm::Expected<double> measure(Work &work, Subject &subject, cards::Program &base,
                                 const Choice &choice, const Effort &effort);
  llvm::Expected<double> speedupAt(Work &work, AtSize &size, const Choice &choice,
                                   const Effort &effort);
  llvm::Expected<std::vector<Choice>> fasterCards(Work &work, AtSizes &sizes, size_t count);
  llvm::Error confirm(Work &work, AtSizes &sizes, const Choice &choice);
  llvm::Error explore(Work &work, Subject &subject, cards::Program &base, const Choice &choice);
  llvm::Expected<std::unique_ptr<Subject>> subjectOf(Work &work);
  llvm::Error keepBase(Work &work, double seconds);
  llvm::Error keep(Work &work, const Choice &choice, const Outcome &outcome, bool isConfirmed);
  uint64_t seedOf(const Work &work) const;

  Compiled &planned;
  const CompileOptions &compile;
  const TuneOptions &options;
  records::Records &records;
  int64_t threads;
  std::optional<warehouse::Warehouse> cards;
  std::vector<std::unique_ptr<Work>> works;
  Clock::time_point begin = Clock::now();
  std::string doing = "planning", ended = "done";
  int64_t trials = 0;
};
} // namespace

bool Tuner::shouldStop() {
  if (ended != "done")
    return true;
  if (left() <= 0)
    ended = "time";
  else if (options.progress && options.progress(doing, elapsed() / options.seconds))
    ended = "interrupted";
  return ended != "done";
}

uint64_t Tuner::seedOf(const Work &work) const {
  uint64_t seed = 0;
  StringRef(work.key.hash).take_back(16).getAsInteger(16, seed);
  return seed ^ options.seed;
}

llvm::Expected<std::unique_ptr<Subject>> Tuner::subjectOf(Work &work) {
  return Subject::make(work.group, work.sizes, seedOf(work));
}

static Json timingJson(const Timing &timing) {
  return {{"seconds", timing.seconds},
          {"base_seconds", timing.baseSeconds},
          {"speedup", timing.speedup}};
}

llvm::Error Tuner::keep(Work &work, const Choice &choice, const Outcome &outcome,
                        bool isConfirmed) {
  if (outcome.isStopped)
    return llvm::Error::success();
  Record record = work.recordOf(choice);
  record.failure = outcome.failure;
  record.limitSeconds = outcome.isTimeout ? options.trialSeconds : 0;
  record.isConfirmed = isConfirmed && outcome.failure.empty();
  if (outcome.failure.empty()) {
    Json timing = Json::parse(outcome.result);
    record.seconds = timing.at("seconds");
    record.speedup = timing.at("speedup");
  }
  work.keep(record);
  return records.add(record);
}

/// Whether what is known of a candidate still holds: what did not end may end with more time.
static bool isSettled(const Record *record, const TuneOptions &options) {
  return record && (record->limitSeconds == 0 || record->limitSeconds >= options.trialSeconds);
}

llvm::Error Tuner::measureBase(Work &work, Subject &subject) {
  Outcome outcome = support::guarded(
      [&]() -> llvm::Expected<std::string> {
        auto program = subject.compile(work.base, compile);
        if (!program)
          return program.takeError();
        auto timing = compareSpeed(nullptr, **program, subject.inputs(), threads, kLook);
        return timing ? llvm::Expected<std::string>(timingJson(*timing).dump())
                      : timing.takeError();
      },
      options.trialSeconds, [&] { return shouldStop(); });
  return keep(work, work.base, outcome, /*isConfirmed=*/true);
}

/// What is known of the group from records, and what its default choice costs.
llvm::Error Tuner::prepare(Work &work) {
  doing = "measuring '" + work.names.front() + "' as it is";
  Record &blank = work.blank;
  blank.situation.target = planned.target->identity;
  blank.situation.threads = threads;
  blank.machine =
      (llvm::sys::getHostCPUName() + ", " + Twine(records::threadsOf(0)) + " threads").str();
  for (const std::string &symbol : work.key.symbols) {
    auto given = work.sizes.find(symbol);
    blank.sizes += (blank.sizes.empty() ? "" : ",") +
                   std::to_string(given == work.sizes.end() ? kNominalSize : given->second);
  }
  auto known = records.find(blank.situation);
  if (!known)
    return known.takeError();
  for (const Record &record : *known)
    if (record.base == blank.base && record.sizes == blank.sizes)
      work.keep(record);
  if (!isSettled(work.find(work.base), options)) {
    auto subject = subjectOf(work);
    if (!subject) {
      work.problem = llvm::toString(subject.takeError());
      return llvm::Error::success();
    }
    if (llvm::Error error = measureBase(work, **subject))
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
  work.search.emplace(offered, work.base, seedOf(work));
  for (const Record &record : work.records)
    if (isSettled(&record, options))
      work.search->tell(work.choiceOf(record), record.speedup);
  return llvm::Error::success();
}

/// The first result that is another than the default's; "" when all are equal.
static llvm::Expected<std::string> differenceOf(Subject &subject, cards::Program &base,
                                                cards::Program &program) {
  auto expected = base.run(subject.inputs(), subject.resultElements());
  if (!expected)
    return expected.takeError();
  auto found = program.run(subject.inputs(), subject.resultElements());
  if (!found)
    return found.takeError();
  for (size_t i = 0; i < found->size(); ++i)
    if (std::string what = cards::difference((*expected)[i], (*found)[i]); !what.empty())
      return "its numbers are not the default's: result " + std::to_string(i) + ": " + what;
  return "";
}

/// The speedup, which is kept; 0 when the candidate failed, or when the tuning was ended meanwhile.
llvm::Expected<double> Tuner::measure(Work &work, Subject &subject, cards::Program &base,
                                      const Choice &choice, const Effort &effort) {
  Outcome outcome = support::guarded(
      [&]() -> llvm::Expected<std::string> {
        auto program = subject.compile(choice, compile);
        if (!program)
          return program.takeError();
        if (!(*program)->isCarriedOut)
          return makeError(ErrorCode::Refused, "its mechanism '" + choice.card->mechanism->name +
                                                   "' cannot be carried out for this group");
        auto difference = differenceOf(subject, base, **program);
        if (!difference)
          return difference.takeError();
        if (!difference->empty())
          return makeError(ErrorCode::NumbersDiffer, *difference);
        auto timing = compareSpeed(&base, **program, subject.inputs(), threads, effort);
        return timing ? llvm::Expected<std::string>(timingJson(*timing).dump())
                      : timing.takeError();
      },
      options.trialSeconds, [&] { return shouldStop(); });
  if (llvm::Error error = keep(work, choice, outcome, effort.isFinal))
    return std::move(error);
  if (!outcome.failure.empty())
    return 0.0;
  Json timing = Json::parse(outcome.result);
  if (llvm::Error error = keepBase(work, timing.at("base_seconds")))
    return std::move(error);
  return timing.at("speedup").get<double>();
}

/// A look at a candidate; a closer one where it seems better than all before, lest the search
/// follows what was luck.
llvm::Error Tuner::explore(Work &work, Subject &subject, cards::Program &base,
                           const Choice &choice) {
  auto speedup = measure(work, subject, base, choice, kLook);
  if (speedup && *speedup > work.search->bestSpeedup())
    speedup = measure(work, subject, base, choice, kCloserLook);
  if (!speedup)
    return speedup.takeError();
  if (ended != "done")
    return llvm::Error::success();
  ++trials;
  ++work.measured;
  work.search->tell(choice, *speedup);
  return llvm::Error::success();
}

/// The least of what was seen: what else the machine did only ever adds.
llvm::Error Tuner::keepBase(Work &work, double seconds) {
  if (seconds >= work.baseSeconds)
    return llvm::Error::success();
  work.baseSeconds = seconds;
  Record record = *work.find(work.base);
  record.seconds = seconds;
  work.keep(record);
  return records.add(record);
}

llvm::Error Tuner::tune(Work &work, double seconds) {
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
  auto subject = subjectOf(work);
  if (!subject)
    return subject.takeError();
  // It has run in a process of its own, so it is safe here; children inherit it as it is.
  auto base = (*subject)->compile(work.base, compile);
  if (!base)
    return base.takeError();
  for (auto choice = first; choice; choice = work.search->next()) {
    say();
    if (isOver()) // of trials or of time: what trials found is confirmed all the same
      break;
    if (llvm::Error error = explore(work, **subject, **base, *choice))
      return error;
    if (elapsed() >= exploring)
      break;
  }
  for (const Choice &choice : work.finalists()) {
    if (shouldStop())
      return llvm::Error::success();
    if (auto speedup = measure(work, **subject, **base, choice, kDecide); !speedup)
      return speedup.takeError();
  }
  return llvm::Error::success();
}

/// The speedup at a size, measured unless it is known; 0 where the candidate failed.
llvm::Expected<double> Tuner::speedupAt(Work &work, AtSize &size, const Choice &choice,
                                        const Effort &effort) {
  const Record *known = size.work.find(choice);
  if (isSettled(known, options) &&
      (!effort.isFinal || known->isConfirmed || !known->failure.empty()))
    return known->failure.empty() ? known->speedup : 0;
  ++trials;
  ++work.measured;
  return measure(size.work, *size.subject, *size.base, choice, effort);
}

/// The cards beside the default's that look faster as they are written, at the least, the middle
/// and the greatest of the sizes together.
llvm::Expected<std::vector<Choice>> Tuner::fasterCards(Work &work, AtSizes &sizes, size_t count) {
  std::vector<Choice> faster;
  for (const warehouse::Offer &offer : work.offers) {
    if (!offer.isOffered() || offer.card == work.base.card)
      continue;
    Choice choice{offer.card, {}};
    for (const warehouse::Knob &knob : offer.card->knobs)
      choice.knobs[knob.name] = knob.initial;
    double product = 1, looks = 0;
    for (size_t i : std::set<size_t>{0, count / 2, count - 1}) {
      if (isOver())
        return faster;
      doing = llvm::formatv("'{0}' over {1} sizes, card '{2}'", work.names.front(), count,
                            offer.card->name);
      auto size = sizes.at(i);
      if (!size)
        return size.takeError();
      if (!*size)
        continue;
      auto speedup = speedupAt(work, **size, choice, kLook);
      if (!speedup)
        return speedup.takeError();
      product *= *speedup;
      ++looks;
    }
    if (looks > 0 && std::pow(product, 1 / looks) >= records::kClearly)
      faster.push_back(std::move(choice));
  }
  return faster;
}

/// At every size of which there is a record: only so does a card count for all of them.
llvm::Error Tuner::confirm(Work &work, AtSizes &sizes, const Choice &choice) {
  for (AtSize *size : sizes.all()) {
    if (shouldStop())
      break;
    auto speedup = speedupAt(work, *size, choice, kDecideSize);
    if (!speedup)
      return speedup.takeError();
    if (*speedup == 0)
      break;
  }
  return llvm::Error::success();
}

/// What the sizes would have: the default's knobs wherever nothing is clearly faster.
static std::vector<warehouse::KnobValues> wantedOf(const Joint &joint, const Work &work,
                                                   llvm::ArrayRef<warehouse::KnobValues> defaults) {
  auto wanted = joint.decide(records::mayVary(work.group) ? kMostVersions : 1);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] == work.base.knobs ||
        joint.speedOf(i, wanted[i]) < records::kClearly * joint.speedOf(i, defaults[i]))
      wanted[i] = defaults[i];
  return wanted;
}

/// Looks at micro-kernels, each at the size that it is best for, then measures at length those
/// that the sizes would have, and other cards that look faster, beside the default. Nothing else
/// counts.
llvm::Error Tuner::tuneJointly(Work &work, double seconds) {
  double exploring = elapsed() + 0.5 * seconds;
  std::vector<Instance> instances = instancesOf(options.over, work.key.symbols);
  std::vector<Shape> shapes;
  std::vector<warehouse::KnobValues> defaults;
  for (Instance &instance : instances) {
    instance.sizes.insert(options.sizes.begin(), options.sizes.end());
    shapes.push_back(shapeAt(work.group, instance, options.sizes, kNominalSize));
    defaults.push_back(knobsAt(work.base, instance.sizes, kNominalSize));
  }
  AtSizes sizes([&](size_t i) -> llvm::Expected<std::unique_ptr<AtSize>> {
    auto made = std::make_unique<AtSize>(AtSize{work, nullptr, nullptr});
    made->work.records.clear();
    made->work.blank.sizes.clear();
    made->work.sizes = instances[i].sizes;
    if (llvm::Error error = prepare(made->work))
      return std::move(error);
    if (!made->work.problem.empty())
      return std::unique_ptr<AtSize>();
    auto subject = subjectOf(made->work);
    if (!subject)
      return subject.takeError();
    made->subject = std::move(*subject);
    auto base = made->subject->compile(work.base, compile);
    if (!base)
      return base.takeError();
    made->base = std::move(*base);
    return made;
  });
  /// The seconds of a micro-kernel at a size; 0 where it failed.
  auto secondsOf = [&](AtSize &size, const Choice &choice, bool isDefault,
                       const Effort &effort) -> llvm::Expected<double> {
    if (isDefault)
      return size.work.baseSeconds;
    const Record *known = size.work.find(choice);
    if (!isSettled(known, options) || (effort.isFinal && !known->isConfirmed)) {
      auto speedup = measure(size.work, *size.subject, *size.base, choice, effort);
      if (!speedup)
        return speedup.takeError();
      ++trials;
      ++work.measured;
      known = size.work.find(choice);
    }
    return known && known->failure.empty() ? known->seconds : 0;
  };

  auto others = fasterCards(work, sizes, instances.size());
  if (!others)
    return others.takeError();
  Joint joint(*work.base.card, defaults, shapes, planned.machine, seedOf(work));
  for (int64_t count = 0; count < kJointTrials && !isOver() && elapsed() < exploring; ++count) {
    auto trial = joint.next();
    if (!trial)
      break;
    // The default's own row is that of its knobs, so these are measured where it has them.
    bool isOwn = trial->knobs == work.base.knobs;
    for (size_t i = 0; isOwn && i < shapes.size(); ++i)
      if (defaults[i] == trial->knobs)
        trial->shape = i;
    doing = llvm::formatv("'{0}' over {1} sizes, micro-kernel {2}", work.names.front(),
                          instances.size(), count + 1);
    auto size = sizes.at(trial->shape);
    if (!size)
      return size.takeError();
    bool isDefault = defaults[trial->shape] == trial->knobs;
    if (!*size || (isOwn && !isDefault)) {
      joint.tell(*trial, 0);
      continue;
    }
    auto took = secondsOf(**size, {work.base.card, trial->knobs}, isDefault, kLook);
    if (!took)
      return took.takeError();
    joint.tell(*trial, *took);
  }
  std::vector<warehouse::KnobValues> wanted = wantedOf(joint, work, defaults);
  // A card is confirmed at all sizes of which there is a record, so these come to be first.
  for (size_t i : toConfirm(wanted))
    if (auto size = sizes.at(i); !size)
      return size.takeError();
  for (const Choice &other : *others)
    if (llvm::Error error = confirm(work, sizes, other))
      return error;
  for (size_t i : toConfirm(wanted)) {
    if (shouldStop())
      break;
    auto size = sizes.at(i);
    if (!size)
      return size.takeError();
    if (*size)
      if (auto took =
              secondsOf(**size, {work.base.card, wanted[i]}, wanted[i] == defaults[i], kDecideSize);
          !took)
        return took.takeError();
  }
  for (AtSize *size : sizes.all())
    llvm::append_range(work.records, size->work.records);
  work.isDone = true;
  return llvm::Error::success();
}

llvm::Error Tuner::checkOver() const {
  std::set<std::string> known;
  for (auto &work : works)
    known.insert(work->key.symbols.begin(), work->key.symbols.end());
  for (auto &[symbol, sizes] : options.over)
    if (!known.count(symbol))
      return makeError(ErrorCode::Usage, "error: no group has a size '" + symbol +
                                             "' to tune over; there are: " +
                                             (known.empty() ? "none" : llvm::join(known, ", ")));
  return llvm::Error::success();
}

llvm::Error Tuner::run() {
  planned.context->disableMultithreading();
  if (int64_t others = support::countThreads() - 1)
    return makeError(ErrorCode::Usage, "error: this process has " + Twine(others) +
                                           " other threads, but tuning forks, which they would not "
                                           "survive\nnote: use the command 'heddle tune'");
  auto loaded = loadCards(planned);
  if (!loaded)
    return loaded.takeError();
  cards.emplace(std::move(*loaded));
  auto found = worksOf(*planned.graph, *cards, planned.machine);
  if (!found)
    return found.takeError();
  works = std::move(*found);
  if (llvm::Error error = checkOver())
    return error;
  for (auto &work : works) {
    work->sizes = options.sizes;
    std::vector<Instance> instances = instancesOf(options.over, work->key.symbols);
    work->isJoint = instances.size() > 1 && work->base.card;
    for (auto &[symbol, size] : instances.back().sizes) // the largest: for its share of the time
      work->sizes[symbol] = size;
  }
  for (auto &work : works)
    if (llvm::Error error = prepare(*work))
      return error;
  llvm::sort(works, [](auto &a, auto &b) {
    return std::pair(-a->weight(), a->key.hash) < std::pair(-b->weight(), b->key.hash);
  });
  double whole = 0;
  for (auto &work : works)
    whole += work->weight();
  for (auto &work : works)
    work->isDone = !work->search || work->weight() < kLeastShare * whole;
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
      if (llvm::Error error = work->isJoint ? tuneJointly(*work, slice) : tune(*work, slice))
        return error;
    }
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
               {"groups", Json::array()}};
  for (auto &work : works)
    json["groups"].push_back(describe(*work, whole));
  return json;
}

llvm::Expected<std::string> tune(const ModelSource &source, const CompileOptions &compile,
                                 const TuneOptions &options) {
  auto records = records::Records::open(compile.recordsPath, records::Records::Access::Write);
  if (!records)
    return records.takeError();
  CompileOptions byRule = compile;
  byRule.recordsPath.clear();
  byRule.plansOnly = true;
  byRule.progress = nullptr;
  auto planned = heddle::compile(source, byRule);
  if (!planned)
    return planned.takeError();
  if (llvm::Error error = target::checkRunsHere(*(*planned)->target, source.path))
    return std::move(error);
  TuneOptions measured = options;
  if (auto typical = (*(*planned)->graph)->getAttrOfType<DictionaryAttr>(graph::kTypicalAttr))
    for (NamedAttribute size : typical)
      measured.sizes.try_emplace(size.getName().str(), cast<IntegerAttr>(size.getValue()).getInt());
  CompileOptions groups = compile;
  groups.progress = nullptr;
  Tuner tuner(**planned, groups, measured, **records);
  if (llvm::Error error = tuner.run())
    return std::move(error);
  return tuner.report().dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace heddle::tuner
