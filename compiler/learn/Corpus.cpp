// Corpus: see Corpus.h. A group is parsed once from the text that the records keep of it.

#include "compiler/learn/Corpus.h"

#include "compiler/learn/Features.h"
#include "compiler/learn/GroupText.h"
#include "compiler/learn/Vocabulary.h"
#include "compiler/records/GroupKey.h"
#include "compiler/records/RecordedChooser.h"
#include "compiler/support/Error.h"
#include "compiler/support/Json.h"
#include "compiler/warehouse/Warehouse.h"

#include <set>

using namespace mlir;
using heddle::records::Record;
using heddle::records::Records;
using heddle::warehouse::KnobValues;

namespace heddle::learn {

namespace {
/// Key of the measurements of one group at the same sizes beside the same default.
using Place = std::tuple<std::string, std::string, std::string>; // key, sizes, base

class Corpus {
public:
  Corpus(StringRef path, Records &records, const Measured &measured)
      : path(path), records(records), measured(measured) {}
  llvm::Error read();

  Json json;

private:
  llvm::Error refuse(const Twine &why, const Twine &wayOut) const {
    return makeError(ErrorCode::Usage, "cannot use tuning records '" + path + "': error: " + why +
                                           "\nnote: " + wayOut);
  }
  llvm::Error select(ArrayRef<Record> all);
  llvm::Error describeMachine();
  llvm::Error readMechanisms();
  llvm::Expected<OwningOpRef<ModuleOp>> parse(const std::string &key);
  llvm::Error addGroup(const Place &place, ArrayRef<Record> trials);
  Json candidatesOf(graph::GroupOp group, std::vector<Record> trials);

  std::string path, machineText;
  Records &records;
  Measured measured;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::map<Place, std::vector<Record>> places;
  std::map<Records::CardName, std::string> mechanisms;
  std::multimap<std::string, std::string> origins;
  std::map<std::string, int64_t> leftOut;
};
} // namespace

static Json namesOf(Words words) { return std::vector<std::string>(words.begin(), words.end()); }

llvm::Error Corpus::read() {
  DialectRegistry registry;
  warehouse::registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<graph::GraphDialect, func::FuncDialect>();
  auto all = records.all();
  if (!all)
    return all.takeError();
  if (llvm::Error error = select(*all))
    return error;
  auto found = records.origins();
  if (!found)
    return found.takeError();
  origins = std::move(*found);
  if (llvm::Error error = describeMachine())
    return error;
  if (llvm::Error error = readMechanisms())
    return error;
  json = {{"version", kFeaturesVersion},
          {"target", measured.target},
          {"threads", *measured.threads},
          {"machine", machineText},
          {"ops", namesOf(opNames())},
          {"node_features", Json(std::vector<std::string>(nodeNames().begin(), nodeNames().end()))},
          {"candidate_features", candidateNames()},
          {"groups", Json::array()},
          {"left_out", Json::object()}};
  for (auto &[place, trials] : places)
    if (llvm::Error error = addGroup(place, trials))
      return error;
  for (auto &[why, count] : leftOut)
    json["left_out"][why] = count;
  return llvm::Error::success();
}

/// 'a', 'b'
template <typename Some> static std::string listed(const Some &some) {
  std::string text;
  for (auto &each : some)
    text += (text.empty() ? "" : ", ") + ("'" + Twine(each) + "'").str();
  return text;
}

/// Selects records of the situation, by group; sets the number of threads and the machine's name.
llvm::Error Corpus::select(ArrayRef<Record> all) {
  std::set<std::string> targets, machines;
  std::set<int64_t> threads;
  for (const Record &record : all) {
    targets.insert(record.situation.target);
    if (record.situation.target != measured.target)
      continue;
    threads.insert(record.situation.threads);
    if (measured.threads && record.situation.threads != *measured.threads)
      continue;
    machines.insert(record.machine);
    places[{record.situation.key, record.sizes, record.base}].push_back(record);
  }
  if (threads.empty())
    return refuse(
        targets.empty() ? "it has no measurements"
                        : "its measurements are of another machine: they are for " +
                              listed(targets) + ", and '" + measured.target + "' is asked for",
        targets.empty() ? "'heddle tune --collect N' makes some" : "--target names one of these");
  if (!measured.threads && threads.size() > 1)
    return refuse("it has measurements for " + listed(threads) + " threads", "--threads names one");
  if (places.empty())
    return refuse("it has no measurements for '" + std::to_string(*measured.threads) +
                      "' threads, but for " + listed(threads),
                  "--threads names one of these");
  if (machines.size() > 1)
    return refuse("its measurements are of several machines: " + listed(machines),
                  "measure each machine into a file of its own");
  if (!measured.threads)
    measured.threads = *threads.begin();
  machineText = *machines.begin();
  return llvm::Error::success();
}

llvm::Error Corpus::describeMachine() {
  auto described = records.machine(measured.target, *measured.threads, machineText);
  if (!described)
    return described.takeError();
  if (*described)
    measured.machine = **described;
  if (!measured.machine)
    return refuse("it does not describe the machine '" + machineText +
                      "': an older heddle wrote it",
                  "'heddle tune' of a model with these records on that machine adds what is "
                  "missing");
  measured.machine->workers = *measured.threads;
  return llvm::Error::success();
}

/// Reads the mechanisms of cards, by name and hash: those in the file, else those of the built-in
/// cards.
llvm::Error Corpus::readMechanisms() {
  auto cards = warehouse::Warehouse::load(context);
  if (!cards)
    return cards.takeError();
  for (const warehouse::Card &card : cards->cards())
    mechanisms[{card.name, card.hash}] = card.mechanism->name.str();
  auto described = records.mechanisms();
  if (!described)
    return described.takeError();
  for (auto &[card, mechanism] : *described)
    mechanisms[card] = mechanism;
  return llvm::Error::success();
}

/// A module with the group, null if the file has no text of it.
llvm::Expected<OwningOpRef<ModuleOp>> Corpus::parse(const std::string &key) {
  auto text = records.description(key);
  if (!text)
    return text.takeError();
  if (text->empty())
    return OwningOpRef<ModuleOp>();
  if (records::hashOf(*text) != key)
    return refuse("the text of group '" + key + "' is damaged: its hash is " +
                      records::hashOf(*text),
                  "name another file, or remove this one");
  auto module = parseGroup(context, *text);
  if (!module)
    return refuse("the text of group '" + key +
                      "' is not one of this heddle: " + llvm::toString(module.takeError()),
                  "measure again with this heddle, into another file");
  return module;
}

llvm::Error Corpus::addGroup(const Place &place, ArrayRef<Record> trials) {
  const auto &[key, sizes, base] = place;
  auto module = parse(key);
  if (!module)
    return module.takeError();
  graph::GroupOp group = *module ? groupOf(**module) : nullptr;
  size_t symbols = sizes.empty() ? 0 : StringRef(sizes).count(',') + 1;
  auto numbers = symbols ? records::sizesOf(trials.front(), symbols)
                         : std::optional<std::vector<int64_t>>(std::in_place);
  if (!group || !numbers) {
    leftOut["groups without a text"] += 1;
    return llvm::Error::success();
  }
  setSizes(**module, *numbers);
  if (!estimate::hasConstantSizes(group)) {
    leftOut["groups whose sizes are known at run time"] += 1;
    return llvm::Error::success();
  }
  Json candidates = candidatesOf(group, trials);
  if (candidates.empty())
    return llvm::Error::success();
  GroupFeatures features = featuresOf(group);
  Json nodes = Json::array(), models = Json::array();
  for (auto &node : features.nodes)
    nodes.push_back(node);
  for (auto [first, last] = origins.equal_range(key); first != last; ++first)
    models.push_back(first->second);
  json["groups"].push_back({{"key", key},
                            {"sizes", sizes},
                            {"base", base},
                            {"kind", group.getMechanism().value_or("").str()},
                            {"nest", trials.front().nest},
                            {"models", models},
                            {"ops", features.ops},
                            {"nodes", nodes},
                            {"edges", features.edges},
                            {"candidates", candidates}});
  return llvm::Error::success();
}

/// Without the knobs that change nothing with one worker.
static KnobValues knobsThatMatter(const Record &record, const mechanism::Mechanism *mechanism) {
  KnobValues knobs = record.knobs;
  if (mechanism && record.situation.threads == 1)
    for (StringRef name : mechanism->sharing)
      knobs.erase(name.str());
  return knobs;
}

/// Lists candidates; those that are one program count once, as the default or the first.
Json Corpus::candidatesOf(graph::GroupOp group, std::vector<Record> trials) {
  Json candidates = Json::array();
  std::set<std::tuple<std::string, std::string, KnobValues, bool>> seen;
  auto base = llvm::find_if(trials, [](const Record &record) {
    return records::textOf(record) == StringRef(record.base).split(';').first;
  });
  if (base != trials.end())
    std::rotate(trials.begin(), base, base + 1);
  for (const Record &record : trials) {
    if (!record.failure.empty() || !(record.seconds > 0) || !(record.speedup > 0)) {
      leftOut["candidates that failed"] += 1;
      continue;
    }
    Candidate candidate{group.getMechanism().value_or(""), !record.card.empty(), record.knobs,
                        record.isShort};
    if (candidate.hasCard) {
      auto known = mechanisms.find({record.card, record.cardHash});
      if (known == mechanisms.end()) {
        leftOut["candidates of unknown cards"] += 1;
        continue;
      }
      candidate.mechanism = known->second;
    }
    KnobValues knobs = knobsThatMatter(record, mechanism::find(candidate.mechanism));
    if (!seen.insert({record.card, record.cardHash, knobs, record.isShort}).second) {
      leftOut["candidates that are another one's program for one thread"] += 1;
      continue;
    }
    candidates.push_back({{"card", record.card},
                          {"mechanism", candidate.mechanism.str()},
                          {"knobs", record.knobs.empty() ? Json::object() : Json(record.knobs)},
                          {"precision", record.isShort ? "bf16" : "f32"},
                          {"seconds", record.seconds},
                          {"speedup", record.speedup},
                          {"confirmed", record.isConfirmed},
                          {"features", featuresOf(group, candidate, *measured.machine)}});
  }
  return candidates;
}

llvm::Expected<std::string> featuresJson(StringRef path, const Measured &measured) {
  auto records = Records::open(path, Records::Access::Read);
  if (!records)
    return records.takeError();
  Corpus corpus(path, **records, measured);
  if (llvm::Error error = corpus.read())
    return std::move(error);
  return corpus.json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace heddle::learn
