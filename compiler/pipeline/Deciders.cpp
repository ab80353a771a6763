// Deciders: see Deciders.h.

#include "compiler/pipeline/Deciders.h"

#include "compiler/pipeline/Planning.h"
#include "compiler/records/GroupKey.h"
#include "compiler/support/Json.h"

using namespace mlir;

namespace heddle {

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
  for (const program::Machine &device : compiled.machine.others)
    cards->admit(device.device);
  for (const warehouse::Card &card : cards->cards())
    if (card.isOfThreads())
      continue; // for a device
    else if (std::string why = whyMissing(card, *compiled.target); !why.empty())
      cards->withdraw(card.name, why);
  return cards;
}

llvm::Expected<std::unique_ptr<Deciders>> Deciders::load(const CompileOptions &options,
                                                         const Compiled &compiled) {
  DialectRegistry registry;
  warehouse::registerDialects(registry);
  compiled.context->appendDialectRegistry(registry);
  auto cards = loadCards(compiled);
  if (!cards)
    return cards.takeError();
  auto made = std::make_unique<Deciders>(std::move(*cards));
  bool isShort = options.shortFloats != program::ShortFloats::None;
  plan::Chooser *last = &made->byRule;
  if (isShort)
    last = &made->shortly.emplace(*last);
  if (!options.recordsPath.empty()) {
    auto opened = records::Records::open(options.recordsPath, records::Records::Access::Read);
    if (!opened)
      return opened.takeError();
    made->records = std::move(*opened);
    made->byRecords.emplace(*made->records, compiled.target->identity,
                            records::threadsOf(options.threads), made->byRule,
                            isShort ? last : nullptr);
    last = &*made->byRecords;
  }
  if (options.costModel) {
    auto isMeasured = [&deciders = *made, target = compiled.target->identity,
                       threads = records::threadsOf(options.threads),
                       isShort](graph::GroupOp group) {
      return deciders.isMeasured(group, target, threads, isShort);
    };
    last = &made->byCost.emplace(*options.costModel, *last, isMeasured, isShort);
  }
  if (llvm::any_of(compiled.machine.others, [](auto &device) { return device.isPreferred; }))
    last = &made->onDevices.emplace(*last, isShort);
  made->byPlan.emplace(*compiled.given, *last);
  return made;
}

llvm::Expected<bool> Deciders::isMeasured(graph::GroupOp group, const std::string &target,
                                          int64_t threads, bool isShort) {
  if (!records)
    return false;
  auto found = records->find({records::keyOf(group).hash, target, threads});
  if (!found)
    return found.takeError();
  return llvm::any_of(*found, [&](const records::Record &record) {
    return record.isConfirmed && record.speedup != 1 && (isShort || !record.isShort);
  });
}

static Json describe(const plan::Choice &choice) {
  Json knobs = Json::object();
  for (auto &[name, value] : choice.knobs)
    knobs[name] = value;
  Json json = {{"card", choice.card ? Json(choice.card->name) : nullptr}, {"knobs", knobs}};
  if (choice.isShort)
    json["precision"] = graph::GroupOp::kShort;
  return json;
}

std::string Deciders::costJson(const CompileOptions &options) const {
  if (options.costModelPath.empty())
    return "";
  Json json = {{"path", options.costModelPath}, {"problem", nullptr}, {"groups", Json::object()}};
  if (!options.costModelProblem.empty())
    json["problem"] =
        options.costModelProblem + "; the rules choose instead" + learn::kWayOut.str();
  if (byCost)
    for (auto &[group, decision] : byCost->decisions()) {
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

} // namespace heddle
