// Jointly: one search for all sizes of a group (joint/Joint.h), then what it found at the sizes
// themselves.

#include "compiler/records/Decision.h"
#include "compiler/tuner/Tuning.h"

#include <set>

using namespace mlir;

namespace heddle::tuner {

using plan::Choice;
using records::Record;

static constexpr int64_t kJointTrials = 32; // trials of a group, for all sizes together
static constexpr size_t kCandidates = 3;    // candidates at one of these sizes
static constexpr size_t kMostVersions = 8;  // micro-kernels that a decision chooses from

/// The speedup at a size, measured unless it is known; 0 if the candidate failed.
llvm::Expected<double> Tuner::speedupAt(GroupTuning &work, AtSize &size, const Choice &choice,
                                        const trial::Effort &effort) {
  const Record *known = size.work.find(choice);
  if (isSettled(known) && (!effort.isFinal || known->isConfirmed || !known->failure.empty()))
    return known->failure.empty() ? known->speedup : 0;
  ++trials;
  ++work.measured;
  return measure(size.work, *size.subject, *size.base, choice, effort);
}

/// The cards beside the default's, and bf16, that look faster with their default knobs: by the
/// median speedup at the least, the middle and the greatest of the sizes, lest one unquiet look
/// decides.
llvm::Expected<std::vector<Tuner::Faster>> Tuner::fasterCards(GroupTuning &work, AtSizes &sizes,
                                                              size_t count) {
  std::vector<Faster> faster;
  std::vector<Choice> choices;
  if (work.shortCards.count(work.shortBase.card))
    choices.push_back(work.shortBase);
  for (const warehouse::Offer &offer : work.offers) {
    if (!offer.isOffered() || offer.card == work.base.card)
      continue;
    Choice choice{offer.card, {}};
    for (const warehouse::Knob &knob : offer.card->knobs)
      choice.knobs[knob.name] = knob.initial;
    choices.push_back(choice);
    if (work.shortCards.count(offer.card))
      choices.push_back(records::shortened(choice));
  }
  for (Choice &choice : choices) {
    std::vector<double> looks;
    for (size_t i : std::set<size_t>{0, count / 2, count - 1}) {
      if (isOver())
        return faster;
      doing = llvm::formatv("'{0}' over {1} sizes, card '{2}'", work.names.front(), count,
                            choice.card->name);
      auto size = sizes.at(i);
      if (!size)
        return size.takeError();
      if (!*size)
        continue;
      auto speedup = speedupAt(work, **size, choice, trial::kLook);
      if (!speedup)
        return speedup.takeError();
      looks.push_back(*speedup);
    }
    llvm::sort(looks);
    double speedup = looks.empty() ? 0 : looks[looks.size() / 2];
    if (speedup >= records::kClearly)
      faster.push_back({std::move(choice), speedup});
  }
  return faster;
}

/// Confirms cards at every size with a record: a card needs a record at each of them.
llvm::Error Tuner::confirmCards(GroupTuning &work, AtSizes &sizes, llvm::ArrayRef<Faster> others,
                                const trial::Effort &effort) {
  for (const Faster &other : others)
    for (AtSize *size : sizes.all()) {
      if (shouldStop())
        break;
      auto speedup = speedupAt(work, *size, other.choice, effort);
      if (!speedup)
        return speedup.takeError();
      if (*speedup == 0)
        break;
    }
  return llvm::Error::success();
}

/// Confirms what looks fastest at each size, else what is predicted to be.
llvm::Error Tuner::confirmKnobs(GroupTuning &work, AtSizes &sizes,
                                llvm::ArrayRef<warehouse::KnobValues> wanted,
                                llvm::ArrayRef<JointPoint> points, const trial::Effort &effort) {
  for (size_t i : toConfirm(wanted)) {
    auto size = sizes.at(i);
    if (!size)
      return size.takeError();
    if (!*size || shouldStop())
      continue;
    std::vector<Choice> choices = (*size)->work.finalists();
    llvm::erase_if(choices,
                   [&](auto &choice) { return choice.card != work.base.card || choice.isShort; });
    Choice choice = choices.empty() ? Choice{work.base.card, wanted[i]} : choices.front();
    if (choice.knobs == points[i].byDefault)
      continue;
    if (auto speedup = speedupAt(work, **size, choice, effort); !speedup)
      return speedup.takeError();
  }
  return llvm::Error::success();
}

/// Looks at each of the sizes that are confirmed at what may be the best there: a micro-kernel is
/// not quite as fast at one size as at another. All have a first look before any has a second one.
llvm::Error Tuner::refine(GroupTuning &work, AtSizes &sizes, const Joint &joint,
                          llvm::ArrayRef<warehouse::KnobValues> wanted, double end) {
  if (!records::mayVary(work.group))
    return llvm::Error::success();
  std::vector<size_t> order = joint.heaviestFirst(toConfirm(wanted));
  for (size_t number = 0; number < kCandidates; ++number)
    for (size_t i : order) {
      auto candidates = joint.candidatesAt(i, wanted[i], kCandidates);
      if (number >= candidates.size() || isOver() || elapsed() > end)
        continue;
      doing = llvm::formatv("'{0}' at size {1} of {2}", work.names.front(), i + 1, wanted.size());
      auto size = sizes.at(i);
      if (!size)
        return size.takeError();
      if (!*size)
        continue;
      auto speedup = speedupAt(work, **size, {work.base.card, candidates[number]}, trial::kLook);
      if (!speedup)
        return speedup.takeError();
    }
  return llvm::Error::success();
}

/// Looks at micro-kernels, each at the size that it is best for, then measures at length those
/// that the sizes would have, and other cards that look faster, beside the default. Nothing else
/// counts.
llvm::Error Tuner::tuneJointly(GroupTuning &work, double seconds) {
  double end = elapsed() + seconds, exploring = end - 0.65 * seconds;
  std::vector<Instance> instances = instancesOf(options.over, work.key.symbols);
  for (Instance &instance : instances)
    instance.sizes.insert(options.sizes.begin(), options.sizes.end());
  auto points = pointsOf(work.group, work.base, instances, planned.machine, kNominalSize);
  if (!points)
    return points.takeError();
  Joint joint(*work.base.card, *points, planned.machine, seedOf(work));
  std::shared_ptr<trial::Program> program; // the default's, once it has run in another process
  AtSizes sizes([&](size_t i) -> llvm::Expected<std::unique_ptr<AtSize>> {
    auto made = std::make_unique<AtSize>(AtSize{work, nullptr, nullptr});
    made->work.records.clear();
    made->work.blank.sizes.clear();
    made->work.sizes = instances[i].sizes;
    if (llvm::Error error = prepare(made->work, program.get()))
      return std::move(error);
    if (!made->work.problem.empty())
      return std::unique_ptr<AtSize>();
    auto subject = extractedGroupOf(made->work);
    if (!subject)
      return subject.takeError();
    made->subject = std::move(*subject);
    if (!program) {
      auto base = made->subject->compile(work.base, compile);
      if (!base)
        return base.takeError();
      program = std::move(*base);
    }
    made->base = program;
    return made;
  });
  /// The seconds of a micro-kernel at a size; 0 if it failed.
  auto secondsOf = [&](AtSize &size, const Choice &choice,
                       bool isDefault) -> llvm::Expected<double> {
    if (isDefault)
      return size.work.baseSeconds;
    auto speedup = speedupAt(work, size, choice, trial::kLook);
    if (!speedup)
      return speedup.takeError();
    return *speedup > 0 ? size.work.baseSeconds / *speedup : 0;
  };

  auto others = fasterCards(work, sizes, instances.size());
  if (!others)
    return others.takeError();
  for (int64_t count = 0; count < kJointTrials && !isOver() && elapsed() < exploring; ++count) {
    auto trial = joint.next();
    if (!trial)
      break;
    // The default's own row is that of its knobs, so these are measured where it has them.
    bool isOwn = trial->knobs == work.base.knobs;
    for (size_t i = 0; isOwn && i < points->size(); ++i)
      if ((*points)[i].byDefault == trial->knobs)
        trial->shape = i;
    doing = llvm::formatv("'{0}' over {1} sizes, micro-kernel {2}", work.names.front(),
                          instances.size(), count + 1);
    auto size = sizes.at(trial->shape);
    if (!size)
      return size.takeError();
    bool isDefault = (*points)[trial->shape].byDefault == trial->knobs;
    if (!*size || (isOwn && !isDefault)) {
      joint.tell(*trial, 0);
      continue;
    }
    auto took = secondsOf(**size, {work.base.card, trial->knobs}, isDefault);
    if (!took)
      return took.takeError();
    joint.tell(*trial, *took);
  }
  std::vector<warehouse::KnobValues> wanted = joint.wanted(
      records::mayVary(work.group) ? kMostVersions : 1, work.base.knobs, records::kClearly);
  // Cards are confirmed at all sizes with a record, so these are made first.
  for (size_t i : toConfirm(wanted))
    if (auto size = sizes.at(i); !size)
      return size.takeError();
  // Others that look slower than the wanted ones will be are not worth the time.
  double gain = joint.gainOf(wanted);
  llvm::erase_if(*others, [&](auto &each) { return records::kClearly * each.speedup < gain; });
  if (llvm::Error error = refine(work, sizes, joint, wanted, end - 0.35 * seconds))
    return error;
  size_t count = toConfirm(wanted).size() + others->size() * sizes.all().size();
  trial::Effort effort = trial::decideSizeWithin(end - elapsed(), count);
  // The more promising of the two comes first, in case time runs out.
  bool areOthersFirst = llvm::any_of(*others, [&](auto &each) { return each.speedup > gain; });
  for (bool isOfOthers : {areOthersFirst, !areOthersFirst})
    if (llvm::Error error = isOfOthers ? confirmCards(work, sizes, *others, effort)
                                       : confirmKnobs(work, sizes, wanted, *points, effort))
      return error;
  for (AtSize *size : sizes.all())
    llvm::append_range(work.records, size->work.records);
  work.isDone = true;
  return llvm::Error::success();
}

} // namespace heddle::tuner
