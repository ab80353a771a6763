// RecordedChooser: records decide only beside the default that they were measured beside, so that a
// better default, or a new card, is not held back by what was once faster than an older one.

#include "compiler/records/RecordedChooser.h"

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

plan::Choice bestOf(ArrayRef<Record> records, ArrayRef<warehouse::Offer> offers,
                    const plan::Choice &base) {
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
    if (!card)
      continue;
    plan::Choice choice{card, record.knobs};
    Sum &sum = sums[textOf(choice)];
    sum.choice = choice;
    sum.logarithms += std::log(record.speedup);
    ++sum.count;
  }
  plan::Choice best = base;
  double bestSpeedup = kClearly;
  for (auto &[text, sum] : sums) {
    double speedup = std::exp(sum.logarithms / sum.count);
    if (text == baseText || sum.count < sizes.size() || speedup < bestSpeedup)
      continue;
    bestSpeedup = speedup;
    best = sum.choice;
  }
  return best;
}

llvm::Expected<plan::Choice> RecordedChooser::choose(graph::GroupOp group,
                                                     ArrayRef<warehouse::Offer> offers,
                                                     const program::Machine &machine) {
  auto base = otherwise.choose(group, offers, machine);
  if (!base)
    return base;
  auto known = records.find({keyOf(group).hash, target, threads});
  if (!known)
    return known.takeError();
  return bestOf(*known, offers, *base);
}

int64_t threadsOf(int64_t asked) {
  return asked > 0 ? asked : std::max(1u, std::thread::hardware_concurrency());
}

} // namespace heddle::records
