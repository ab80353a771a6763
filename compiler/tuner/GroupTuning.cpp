// GroupTuning: see GroupTuning.h.

#include "compiler/tuner/GroupTuning.h"

#include "compiler/graph/LoopNest.h"
#include "compiler/tuner/ExtractedGroup.h"

using namespace mlir;

namespace heddle::tuner {

using plan::Choice;
using records::Record;

static constexpr size_t kFinalists = 3;

int64_t GroupTuning::sizeOf(const std::string &symbol) const {
  auto given = sizes.find(symbol);
  return given == sizes.end() ? kNominalSize : given->second;
}

const Record *GroupTuning::find(const Choice &choice) const {
  Record wanted = recordOf(choice);
  auto found =
      llvm::find_if(records, [&](const Record &each) { return each.isSameCandidate(wanted); });
  return found == records.end() ? nullptr : &*found;
}

void GroupTuning::keep(const Record &record) {
  auto old =
      llvm::find_if(records, [&](const Record &each) { return each.isSameCandidate(record); });
  if (old == records.end())
    records.push_back(record);
  else
    *old = record;
}

std::vector<Choice> GroupTuning::finalists() const {
  std::vector<const Record *> good;
  for (const Record &record : records)
    if (record.failure.empty() && record.speedup >= records::kClearly &&
        (choiceOf(record).card || record.isShort))
      good.push_back(&record);
  llvm::sort(good, [](auto *a, auto *b) {
    return std::pair(-a->speedup, a) < std::pair(-b->speedup, b); // those known earlier lie before
  });
  good.resize(std::min(good.size(), kFinalists));
  std::vector<Choice> choices;
  for (const Record *record : good)
    if (!record->isConfirmed)
      choices.push_back(choiceOf(*record));
  return choices;
}

Choice GroupTuning::choiceOf(const Record &record) const {
  Choice choice;
  choice.isShort = record.isShort;
  for (const warehouse::Offer &offer : offers)
    if (offer.isOffered() && offer.card->name == record.card &&
        offer.card->hash == record.cardHash) {
      choice.card = offer.card;
      choice.knobs = record.knobs;
    }
  return choice;
}

Record GroupTuning::recordOf(const Choice &choice) const {
  Record record = blank;
  record.isShort = choice.isShort;
  if (choice.card) {
    record.card = choice.card->name;
    record.cardHash = choice.card->hash;
    record.knobs = choice.knobs;
  }
  return record;
}

static std::set<const warehouse::Card *> shortCardsOf(const GroupTuning &work,
                                                      const program::Machine &machine) {
  std::set<const warehouse::Card *> cards;
  auto consider = [&](const warehouse::Card *card) {
    if (plan::whyNotShort({card, {}}, work.group, machine).empty())
      cards.insert(card);
  };
  consider(work.base.card);
  for (const warehouse::Offer &offer : work.offers)
    if (offer.isOffered())
      consider(offer.card);
  return cards;
}

llvm::Expected<std::vector<std::unique_ptr<GroupTuning>>> worksOf(ModuleOp module,
                                                                  const warehouse::Warehouse &cards,
                                                                  const program::Machine &machine,
                                                                  bool mayRound) {
  SmallVector<graph::GroupOp> groups;
  module.walk<WalkOrder::PreOrder>([&](graph::GroupOp group) { groups.push_back(group); });
  std::vector<std::unique_ptr<GroupTuning>> works;
  llvm::StringMap<GroupTuning *> byKey;
  for (graph::GroupOp group : groups) {
    records::GroupKey key = records::keyOf(group);
    GroupTuning *&known = byKey[key.hash];
    if (!known) {
      known = works.emplace_back(std::make_unique<GroupTuning>()).get();
      known->group = group;
      known->offers = cards.offer(group);
      plan::DefaultChooser rules;
      auto base = rules.choose(group, known->offers, machine);
      if (!base)
        return base.takeError();
      auto other = plan::ShortChooser(rules).choose(group, known->offers, machine);
      if (!other)
        return other.takeError();
      known->base = *base;
      known->shortBase = other->isShort ? *other : records::shortened(*base);
      if (mayRound)
        known->shortCards = shortCardsOf(*known, machine);
      known->blank.situation.key = key.hash;
      known->blank.nest = graph::loopNestOf(group).str();
      known->blank.base = records::textOf(*base);
      known->key = std::move(key);
    }
    known->names.push_back(group.getName().str());
  }
  return works;
}

} // namespace heddle::tuner
