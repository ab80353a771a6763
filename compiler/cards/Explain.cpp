// Explain: offers and refusals, as the warehouse gives them to the chooser.

#include "compiler/cards/Explain.h"

#include "compiler/cards/Trial.h"
#include "compiler/pipeline/Planning.h"
#include "compiler/plan/Plan.h"
#include "compiler/support/Error.h"
#include "compiler/support/Json.h"
#include "compiler/support/Suggest.h"

using namespace mlir;

namespace heddle::cards {

using warehouse::Card;
using warehouse::Warehouse;

static std::string dump(const Json &json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

static Json textsOf(ArrayRef<warehouse::Key> keys) {
  Json texts = Json::array();
  for (const warehouse::Key &key : keys)
    texts.push_back(key.str());
  return texts;
}

static Json describe(const Card &card) {
  Json json = {{"name", card.name},
               {"target", card.target},
               {"priority", card.priority},
               {"card_kind", mechanism::nameOf(card.mechanism->type)},
               {"mechanism", card.mechanism->name}};
  if (!card.keys.empty())
    json["key"] = textsOf(card.keys);
  if (!card.nests.empty())
    json["nest"] = textsOf(card.nests);
  if (card.readsParts)
    json["parts"] = *card.readsParts;
  if (!card.dtypes.empty())
    json["dtypes"] = card.dtypes;
  if (!card.least.empty())
    json["min"] = card.least;
  if (!card.most.empty())
    json["max"] = card.most;
  if (!card.hasPrologue)
    json["prologue"] = false;
  if (!card.hasEpilogue)
    json["epilogue"] = false;
  json["knobs"] = Json::array();
  for (const warehouse::Knob &knob : card.knobs)
    json["knobs"].push_back(
        {{"name", knob.name}, {"values", knob.domain}, {"default", knob.initial}});
  json["built_in"] = card.isBuiltIn;
  json["path"] = card.path;
  json["hash"] = card.hash;
  return json;
}

llvm::Expected<std::string> list(ArrayRef<std::string> folders) {
  auto context = makeContext();
  auto cards = Warehouse::load(*context, folders);
  if (!cards)
    return cards.takeError();
  Json json = {{"cards", Json::array()}};
  for (const Card &card : cards->cards())
    json["cards"].push_back(describe(card));
  return dump(json);
}

static std::string didYouMean(StringRef word, ArrayRef<StringRef> known) {
  std::string near = support::nearest(word, known);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

llvm::Expected<std::string> show(ArrayRef<std::string> folders, StringRef name) {
  auto context = makeContext();
  auto cards = Warehouse::load(*context, folders);
  if (!cards)
    return cards.takeError();
  if (const Card *card = cards->find(name))
    return card->text;
  SmallVector<StringRef> known;
  for (const Card &card : cards->cards())
    known.push_back(card.name);
  return makeError(ErrorCode::Usage, "there is no card '" + name + "'" + didYouMean(name, known) +
                                         "\nnote: cards: " + llvm::join(known, ", ") +
                                         "; name a folder of cards with --schedules");
}

llvm::Expected<std::unique_ptr<Compiled>> planOf(const ModelSource &source,
                                                 CompileOptions options) {
  options.plansOnly = true;
  return compile(source, options);
}

static SmallVector<graph::GroupOp> groupsOf(ModuleOp module) {
  SmallVector<graph::GroupOp> groups;
  module.walk<WalkOrder::PreOrder>([&](graph::GroupOp group) { groups.push_back(group); });
  return groups;
}

llvm::Expected<graph::GroupOp> findGroup(ModuleOp module, StringRef model, StringRef name) {
  constexpr size_t kMostListed = 12;
  SmallVector<StringRef> known;
  for (graph::GroupOp group : groupsOf(module)) {
    if (group.getName() == name)
      return group;
    known.push_back(group.getName());
  }
  std::string near = didYouMean(name, known), more;
  if (known.size() > kMostListed) {
    more = " and " + std::to_string(known.size() - kMostListed) + " more";
    known.resize(kMostListed);
  }
  return makeError(ErrorCode::Usage, model + ": error: the model has no group '" + name + "'" +
                                         near + "\nnote: groups: " + llvm::join(known, ", ") +
                                         more);
}

static Json describe(graph::GroupOp group, const Warehouse &cards, const plan::GroupPlan &made) {
  Json json = {{"name", group.getName().str()}, {"ops", made.ops}, {"loops", made.key}};
  if (auto mechanism = group.getMechanism())
    json["mechanism"] = mechanism->str();
  json["cards"] = Json::array();
  for (const warehouse::Offer &offer : cards.offer(group)) {
    Json line = {{"card", offer.card->name},
                 {"card_kind", mechanism::nameOf(offer.card->mechanism->type)},
                 {"offered", offer.isOffered()}};
    if (!offer.isOffered())
      line["refusal"] = offer.refusal;
    json["cards"].push_back(line);
  }
  json["chosen"] = made.card.empty() ? Json() : Json(made.card);
  json["knobs"] = made.knobs.empty() ? Json::object() : Json(made.knobs);
  return json;
}

llvm::Expected<std::string> explain(const ModelSource &source, const CompileOptions &options,
                                    StringRef wanted) {
  auto compiled = planOf(source, options);
  if (!compiled)
    return compiled.takeError();
  auto cards = loadCards(**compiled);
  if (!cards)
    return cards.takeError();
  auto plan = plan::parsePlan((*compiled)->planJson, source.path);
  if (!plan)
    return plan.takeError();
  ModuleOp module = *(*compiled)->graph;
  SmallVector<graph::GroupOp> groups = groupsOf(module);
  if (!wanted.empty()) {
    auto group = findGroup(module, source.path, wanted);
    if (!group)
      return group.takeError();
    groups = {*group};
  }
  Json json = {{"model", source.path}, {"target", plan->target}, {"groups", Json::array()}};
  for (graph::GroupOp group : groups)
    if (const plan::GroupPlan *made = plan->find(group.getName()))
      json["groups"].push_back(describe(group, *cards, *made));
  return dump(json);
}

} // namespace heddle::cards
