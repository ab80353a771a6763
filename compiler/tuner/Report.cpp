// Report: see Report.h.

#include "compiler/tuner/Report.h"

#include "compiler/records/Decision.h"
#include "compiler/tuner/ExtractedGroup.h"
#include "compiler/tuner/joint/Sizes.h"

using namespace mlir;

namespace heddle::tuner {

using plan::Choice;
using records::Record;

static Json describe(const Choice &choice) {
  Json json = {{"card", choice.card ? Json(choice.card->name) : Json()},
               {"knobs", choice.knobs.empty() ? Json::object() : Json(choice.knobs)}};
  if (choice.isShort)
    json["precision"] = graph::GroupOp::kShort;
  for (const plan::Version &version : choice.versions)
    json["versions"].push_back({{"when", version.when}, {"knobs", Json(version.knobs)}});
  return json;
}

/// The mean of the speed-ups that the choice has at the sizes at which it was measured at length.
static double jointRatio(const GroupTuning &work, const Choice &chosen) {
  double logarithms = 0;
  int64_t count = 0;
  for (const Record &record : work.records) {
    auto numbers = records::sizesOf(record, work.key.symbols.size());
    if (!numbers || !record.isConfirmed || !record.failure.empty())
      continue;
    trial::Sizes sizes;
    for (auto [symbol, size] : llvm::zip(work.key.symbols, *numbers))
      sizes[symbol] = size;
    if (!chosen.card || record.card != chosen.card->name || record.isShort != chosen.isShort ||
        knobsAt(chosen, sizes, kNominalSize) != record.knobs)
      continue;
    logarithms += std::log(record.speedup > 0 ? record.speedup : 1);
    ++count;
  }
  return count ? std::exp(logarithms / static_cast<double>(count)) : 1;
}

Json describe(const GroupTuning &work, double whole) {
  std::vector<std::string> symbols;
  if (work.isJoint && records::mayVary(work.group))
    symbols = work.key.symbols;
  Choice chosen = records::bestOf(work.records, work.offers, work.base, symbols);
  const Record *record = work.isJoint ? nullptr : work.find(chosen);
  Json json = {{"groups", work.names},
               {"loops", work.blank.nest},
               {"sizes", Json::object()},
               {"default", describe(work.base)},
               {"chosen", describe(chosen)}};
  for (const std::string &symbol : work.key.symbols)
    json["sizes"][symbol] = work.sizeOf(symbol);
  int64_t failed = llvm::count_if(work.records, [](auto &each) { return !each.failure.empty(); });
  json["seconds"] = work.problem.empty() ? Json(work.baseSeconds) : Json();
  json["share"] = whole > 0 ? work.weight() / whole : 0;
  json["ratio"] = work.isJoint                    ? jointRatio(work, chosen)
                  : record && record->speedup > 0 ? record->speedup
                                                  : 1;
  json["known"] = work.records.size();
  json["failed"] = failed;
  json["measured"] = work.measured;
  json["scored"] = work.scored;
  json["unscored"] = work.unscored.empty() ? Json() : Json(work.unscored);
  json["is_done"] = work.isDone;
  json["problem"] = work.problem.empty() ? Json() : Json(work.problem);
  return json;
}

} // namespace heddle::tuner
