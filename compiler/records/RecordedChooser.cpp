// RecordedChooser: records decide only beside the default that they were measured beside, so that a
// better default, or a new card, is not held back by a candidate that was once faster than an older
// one.

#include "compiler/records/RecordedChooser.h"

#include "compiler/records/Decision.h"
#include "compiler/records/GroupKey.h"

#include <cmath>
#include <set>
#include <thread>

using namespace mlir;

namespace heddle::records {

static const warehouse::Card *offeredCard(const Record &record, ArrayRef<warehouse::Offer> offers) {
  for (const warehouse::Offer &offer : offers) {
    if (!offer.isOffered() || offer.card->name != record.card ||
        offer.card->hash != record.cardHash)
      continue;
    bool allows = llvm::all_of(record.knobs, [&](auto &setting) {
      const warehouse::Knob *knob = offer.card->knob(setting.first);
      return knob && knob->allows(setting.second);
    });
    if (allows)
      return offer.card;
  }
  return nullptr;
}

std::optional<std::vector<int64_t>> sizesOf(const Record &record, size_t count) {
  std::vector<int64_t> sizes;
  SmallVector<StringRef> parts;
  StringRef(record.sizes).split(parts, ',');
  for (StringRef part : parts)
    if (part.getAsInteger(10, sizes.emplace_back()))
      return std::nullopt;
  return sizes.size() == count ? std::optional(sizes) : std::nullopt;
}

/// The best knobs of the default's card at each size, and the mean of the logarithms of their
/// speed-ups.
static plan::Choice bestBySizes(ArrayRef<Record> records, ArrayRef<warehouse::Offer> offers,
                                const plan::Choice &base, ArrayRef<std::string> symbols,
                                double &logarithm) {
  std::map<std::vector<int64_t>, std::pair<double, std::optional<warehouse::KnobValues>>> bests;
  std::string baseText = textOf(base);
  for (const Record &record : records) {
    auto sizes = sizesOf(record, symbols.size());
    if (!sizes || record.base != baseText || !record.failure.empty() || !record.isConfirmed)
      continue;
    auto &best = bests.try_emplace(*sizes, 1.0, std::nullopt).first->second;
    bool isFaster =
        record.speedup >= kClearly && record.speedup > best.first && record.isShort == base.isShort;
    if (isFaster && base.card && offeredCard(record, offers) == base.card)
      best = {record.speedup, record.knobs};
  }
  std::vector<Point> points;
  for (auto &[sizes, best] : bests) {
    points.push_back({sizes, best.second});
    logarithm += std::log(best.first) / static_cast<double>(bests.size());
  }
  return decide(base, symbols, points);
}

bool hasTried(ArrayRef<Record> records, const plan::Choice &base, const plan::Choice &other) {
  std::string baseText = textOf(base), text = textOf(other);
  return llvm::any_of(records, [&](const Record &record) {
    return record.base == baseText && textOf(record) == text &&
           (record.isConfirmed || record.speedup < kClearly);
  });
}

plan::Choice bestOf(ArrayRef<Record> records, ArrayRef<warehouse::Offer> offers,
                    const plan::Choice &base, ArrayRef<std::string> symbols) {
  struct Sum {
    plan::Choice choice;
    double logarithms = 0;
    size_t count = 0;
  };
  std::map<std::string, Sum> sums; // by the candidate's text: ties fall the same way always
  std::set<std::string> sizes;
  std::string baseText = textOf(base);
  for (const Record &record : records) {
    if (record.base != baseText || !record.failure.empty() || !record.isConfirmed ||
        !(record.speedup > 0))
      continue;
    sizes.insert(record.sizes);
    const warehouse::Card *card = offeredCard(record, offers);
    bool isOwnForm = record.isShort && record.card.empty() && !base.card;
    if (!card && !isOwnForm)
      continue;
    plan::Choice choice{card, record.knobs};
    choice.isShort = record.isShort;
    Sum &sum = sums[textOf(choice)];
    sum.choice = choice;
    sum.logarithms += std::log(record.speedup);
    ++sum.count;
  }
  plan::Choice best = base;
  double bestSpeedup = 1;
  for (bool isShort : {false, true}) { // bf16 has to be clearly faster than the best of f32
    double least = kClearly * bestSpeedup;
    for (auto &[text, sum] : sums) {
      double speedup = std::exp(sum.logarithms / sum.count);
      if (sum.choice.isShort != isShort || text == baseText || sum.count < sizes.size() ||
          speedup < least)
        continue;
      least = bestSpeedup = speedup;
      best = sum.choice;
    }
  }
  if (symbols.empty() || sizes.size() < 2)
    return best;
  double logarithm = 0;
  plan::Choice bySizes = bestBySizes(records, offers, base, symbols, logarithm);
  bool isFaster = textOf(best) == baseText || std::exp(logarithm) >= kClearly * bestSpeedup;
  return isFaster ? bySizes : best;
}

llvm::Expected<plan::Choice> RecordedChooser::choose(graph::GroupOp group,
                                                     ArrayRef<warehouse::Offer> offers,
                                                     const program::Machine &machine) {
  auto base = otherwise.choose(group, offers, machine);
  if (!base)
    return base;
  GroupKey key = keyOf(group);
  auto known = records.find({key.hash, target, threads});
  if (!known)
    return known.takeError();
  if (!shortly)
    llvm::erase_if(*known, [](const Record &record) { return record.isShort; });
  std::string why;
  if (shortly) {
    auto byRule = shortly->choose(group, offers, machine);
    if (!byRule)
      return byRule;
    if (hasTried(*known, *base, byRule->isShort ? *byRule : shortened(*base)))
      why = "both were measured";
    else if (byRule->isShort)
      return byRule;
    else
      why = byRule->whyPrecision;
  }
  plan::Choice best =
      bestOf(*known, offers, *base, mayVary(group) ? key.symbols : std::vector<std::string>());
  best.whyPrecision = why;
  return best;
}

int64_t threadsOf(int64_t asked) {
  return asked > 0 ? asked : std::max(1u, std::thread::hardware_concurrency());
}

} // namespace heddle::records
