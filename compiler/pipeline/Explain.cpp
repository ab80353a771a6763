// Explain: see Explain.h.

#include "compiler/pipeline/Explain.h"

#include "compiler/estimate/Seconds.h"
#include "compiler/estimate/Traffic.h"
#include "compiler/graph/LoopNest.h"
#include "compiler/graph/ragged/Ragged.h"
#include "compiler/lower/program/MemoryPlan.h"
#include "compiler/pipeline/Planning.h"
#include "compiler/pipeline/RowWork.h"
#include "compiler/support/Json.h"
#include "compiler/warehouse/Builtin.h"
#include "compiler/warehouse/Warehouse.h"

using namespace mlir;

namespace heddle {

using graph::Dim;

namespace {

/// Groups by their numbers, and where the tensors between them come from.
class Explainer {
public:
  Explainer(const Compiled &compiled, func::FuncOp model, const warehouse::Warehouse &cards,
            const RunSizes &sizes)
      : compiled(compiled), cards(cards), sizes(sizes) {
    auto lengths = model.getOps<graph::RowLengthsOp>();
    if (!lengths.empty())
      rows = *lengths.begin();
    model.walk([&](graph::GroupOp group) {
      numbers[group] = groups.size();
      groups.push_back(group);
    });
    Json report = parseJson(compiled.reportJson);
    for (const Json &group : report.value("pointwise_instead", Json::array()))
      simpler.insert(group.at("group").get<std::string>());
    Json plan = parseJson(compiled.planJson);
    integers = plan.value("integers", Json::array());
    for (const Json &group : plan.value("groups", Json::array()))
      for (const char *field : {"knobs", "versions", "measured"})
        if (group.contains(field))
          settings[field][group.at("name").get<std::string>()] = group.at(field);
  }
  Json write();

private:
  std::optional<int64_t> valueOf(const Dim &dim, ArrayRef<int64_t> lengths) const;
  Json sizeOf(const Dim &dim) const;
  Json sizeOf(const std::string &text) const;
  Json rowsJson();
  std::optional<int64_t> ofRow(const Dim &dim, int64_t row) const;
  ProductTile tileAt(graph::GroupOp group, SizeOf sizeOf) const;
  int64_t computedBeyond(graph::GroupOp group) const;
  Balance balanceOf(int64_t number) const;
  Json sourceOf(Value value) const;
  Json groupOf(int64_t number);
  Json memory() const;
  Json chosenCards() const;

  const Compiled &compiled;
  const warehouse::Warehouse &cards;
  const RunSizes &sizes;
  graph::RowLengthsOp rows; // null if the model is not ragged
  std::vector<graph::GroupOp> groups;
  llvm::DenseMap<Operation *, int64_t> numbers;
  std::set<std::string> simpler, chosen;
  Json integers; // nodes whose products of floats are computed with integers
  /// Knobs, versions and what was measured of the groups that have some, by their names.
  Json settings = {
      {"knobs", Json::object()}, {"versions", Json::object()}, {"measured", Json::object()}};
};

} // namespace

/// The size for rows with these lengths; nullopt if the sizes of the run do not say it.
std::optional<int64_t> Explainer::valueOf(const Dim &dim, ArrayRef<int64_t> lengths) const {
  return dim.evaluate([&](StringRef name) -> std::optional<int64_t> {
    auto product = rows ? graph::summedBy(name) : std::nullopt;
    if (!product) {
      auto found = sizes.symbols.find(name.str());
      return found == sizes.symbols.end() ? std::nullopt : std::optional(found->second);
    }
    graph::RowLengthsOp op = rows;
    auto ofRow = graph::rowSize(op.getSize(), op.getOf()).symbolName();
    int64_t sum = 0;
    for (int64_t length : lengths) {
      auto value = product->evaluate([&](StringRef each) -> std::optional<int64_t> {
        return each == *ofRow ? std::optional(length) : std::nullopt;
      });
      if (!value || llvm::AddOverflow(sum, *value, sum))
        return std::nullopt;
    }
    return sum;
  });
}

/// A number, or an expression of the symbols as text.
Json Explainer::sizeOf(const Dim &dim) const {
  auto number = valueOf(dim, sizes.lengths);
  return number ? Json(*number) : Json(dim.str());
}

Json Explainer::sizeOf(const std::string &text) const {
  auto dim = Dim::parse(text);
  return dim ? sizeOf(*dim) : Json(text);
}

/// The size for one row; `of` is 1.
std::optional<int64_t> Explainer::ofRow(const Dim &dim, int64_t row) const {
  graph::RowLengthsOp op = rows;
  auto size = graph::rowSize(op.getSize(), op.getOf()).symbolName();
  return graph::inRow(dim, op.getOf()).evaluate([&](StringRef name) -> std::optional<int64_t> {
    auto found = sizes.symbols.find(name.str());
    if (name == *size)
      return sizes.lengths[row];
    return found == sizes.symbols.end() ? std::nullopt : std::optional(found->second);
  });
}

/// The tile by the knobs of the first version that is for these sizes.
ProductTile Explainer::tileAt(graph::GroupOp group, SizeOf sizeOf) const {
  std::string name = group.getName().str();
  Json knobs = settings.at("knobs").value(name, Json::object());
  for (const Json &version : settings.at("versions").value(name, Json::array())) {
    bool fits = llvm::all_of(version.at("when").items(), [&](const auto &bound) {
      auto dim = Dim::parse(bound.key());
      auto size = dim ? sizeOf(*dim) : std::nullopt;
      return size && *size <= bound.value().template get<int64_t>();
    });
    if (fits) {
      knobs = version.at("knobs");
      break;
    }
  }
  return {std::max<int64_t>(1, knobs.value("m", 1)), std::max<int64_t>(1, knobs.value("n", 1))};
}

/// FLOPs that the group computes beside those of its rows.
int64_t Explainer::computedBeyond(graph::GroupOp group) const {
  auto whole = [&](const Dim &dim) { return valueOf(dim, sizes.lengths); };
  if (graph::rowsOf(group).empty())
    return filledUpFlops(group, tileAt(group, whole), whole);
  int64_t flops = 0;
  for (size_t row = 0; row < sizes.lengths.size(); ++row) {
    auto size = [&](const Dim &dim) { return ofRow(dim, row); };
    flops += filledUpFlops(group, tileAt(group, size), size);
  }
  return flops;
}

/// The sum of all launches of the group over rows.
Balance Explainer::balanceOf(int64_t number) const {
  Balance sum;
  for (const program::RowLaunch &launch : compiled.program.rowLaunches)
    if (launch.kernel == number)
      if (auto balance = heddle::balanceOf(
              launch, sizes.lengths.size(), std::max<int64_t>(1, compiled.machine.workers),
              [&](const Dim &dim, int64_t row) { return ofRow(dim, row); })) {
        sum.all += balance->all;
        sum.most += balance->most;
      }
  return sum;
}

/// The rows' share of a padded batch, the work with and without the padding, and what is left of
/// padding and of unequal work.
Json Explainer::rowsJson() {
  int64_t sum = 0, beyond = 0;
  for (int64_t length : sizes.lengths)
    sum += length;
  auto size = sizes.symbols.find(rows.getSize().str());
  if (sizes.lengths.empty() || size == sizes.symbols.end())
    return nullptr;
  std::vector<int64_t> padded(sizes.lengths.size(), size->second);
  Dim flops;
  Balance balance;
  for (auto [number, group] : llvm::enumerate(groups)) {
    flops = flops + estimate::flopsOf(group);
    beyond += computedBeyond(group);
    Balance ofGroup = balanceOf(number);
    balance.all += ofGroup.all;
    balance.most += ofGroup.most;
  }
  auto number = [&](ArrayRef<int64_t> lengths) {
    auto value = valueOf(flops, lengths);
    return value ? Json(*value) : Json(nullptr);
  };
  Json needed = number(sizes.lengths);
  return {{"of", rows.getOf().str()},
          {"size", rows.getSize().str()},
          {"count", sizes.lengths.size()},
          {"padded_length", size->second},
          {"sum_of_lengths", sum},
          {"flops", needed},
          {"padded_flops", number(padded)},
          {"computed_flops", needed.is_null() ? needed : Json(needed.get<int64_t>() + beyond)},
          {"threads", std::max<int64_t>(1, compiled.machine.workers)},
          {"largest_share",
           balance.all > 0 ? Json(double(balance.most) / double(balance.all)) : Json(nullptr)}};
}

static std::string mathOf(const Compiled &compiled) {
  switch (compiled.shortFloats) {
  case program::ShortFloats::None:
    return compiled.isStrict ? "strict" : "fast";
  case program::ShortFloats::Emulated:
    return "bf16-emulated";
  case program::ShortFloats::Native:
    return "bf16";
  }
}

/// The type without its encoding: "2x?x768xf32" has the names of its sizes instead.
static std::string typeOf(Value value) {
  std::string text;
  for (const Dim &dim : graph::dimsOf(value))
    text += dim.str() + " x ";
  llvm::raw_string_ostream(text) << graph::elementOf(value);
  return text;
}

/// {"group": 3}, {"input": "x"}, {"weight": true} or {"op": "graph.if"}.
Json Explainer::sourceOf(Value value) const {
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<graph::ReshapeOp, graph::DynamicReshapeOp>(op)) {
    value = op->getOperand(0);
    op = value.getDefiningOp();
  }
  if (auto known = numbers.find(op); op && known != numbers.end())
    return Json::object({{"group", known->second}});
  if (isa_and_nonnull<graph::ConstantOp>(op))
    return Json::object({{"weight", true}});
  if (op)
    return Json::object({{"op", op->getName().getStringRef().str()}});
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!function)
    return Json::object(
        {{"op", argument.getOwner()->getParentOp()->getName().getStringRef().str()}});
  auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "graph.name");
  return Json::object({{"input", name ? name.str() : std::to_string(argument.getArgNumber())}});
}

/// The importer's description of the node, inside of its name.
static std::string descriptionOf(Location location) {
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (std::string text = descriptionOf(part); !text.empty())
        return text;
  auto named = dyn_cast<NameLoc>(location);
  auto about = named ? dyn_cast<NameLoc>(named.getChildLoc()) : NameLoc();
  return about ? about.getName().str() : "";
}

/// The ONNX nodes that the group's ops come from, and the graph ops of each.
static Json opsOf(graph::GroupOp group) {
  Json ops = Json::array();
  for (Operation &op : group.getBody().front().without_terminator()) {
    if (isa<graph::ConstantOp>(op))
      continue;
    std::string name = graph::sourceName(op.getLoc());
    std::string kind = op.getName().stripDialect().str();
    auto known = llvm::find_if(ops, [&](const Json &other) { return other.at("name") == name; });
    if (known == ops.end()) {
      Json made = {{"name", name}, {"graph_ops", {kind}}};
      if (std::string about = descriptionOf(op.getLoc()); !about.empty())
        made["onnx"] = about;
      ops.push_back(made);
      known = std::prev(ops.end());
    } else if (!llvm::is_contained((*known)["graph_ops"], Json(kind))) {
      (*known)["graph_ops"].push_back(kind);
    }
    if (op.getNumResults() == 1) // the last one is the node's result, as far as it is in the group
      (*known)["result"] = typeOf(op.getResult(0));
  }
  return ops;
}

/// Kernels of a group on a device, and the time that a roofline of the chip gives it, in the
/// precision that it has.
static Json deviceJson(graph::GroupOp group, const Compiled &compiled) {
  if (!group.deviceNumber())
    return nullptr;
  const program::Machine &machine = compiled.machine.on(group.deviceNumber());
  Json json = {{"name", machine.device}, {"kernels", Json::array()}};
  std::vector<std::string> functions;
  for (auto [name, own] : llvm::zip(compiled.program.kernels, compiled.program.functions))
    if (name == group.getName())
      functions = own;
  for (const program::Device &device : compiled.program.devices)
    for (const program::DeviceKernel &kernel : device.kernels)
      if (llvm::is_contained(functions, kernel.name))
        json["kernels"].push_back({{"name", kernel.name},
                                   {"threads", std::max<int64_t>(1, kernel.threads)},
                                   {"shared_bytes", kernel.sharedBytes}});
  json["roofline_seconds"] = estimate::roofOf(group, machine);
  return json;
}

Json Explainer::groupOf(int64_t number) {
  graph::GroupOp group = groups[number];
  Json json = {{"number", number}, {"name", group.getName().str()}, {"ops", opsOf(group)}};
  json["key"] = graph::loopNestOf(group).str();
  json["made_for"] = group.getMechanism().value_or("").str();
  json["region"] = group.getRegion() ? Json(*group.getRegion()) : Json(nullptr);
  json["card"] = group.getCard() ? Json(group.cardName().str()) : Json(nullptr);
  json["card_hash"] = group.getCardHash().value_or("").str();
  json["knobs"] = settings["knobs"].value(group.getName().str(), Json::object());
  json["versions"] = settings["versions"].value(group.getName().str(), Json::array());
  bool isFallback = simpler.count(group.getName().str());
  const mechanism::Mechanism *used = isFallback            ? &mechanism::kPointwise
                                     : group.getSchedule() ? mechanism::chosenFor(group)
                                                           : mechanism::of(group);
  json["mechanism"] = used ? used->name.str() : "";
  json["precision"] = group.isShort() ? Json(graph::GroupOp::kShort.str()) : Json(nullptr);
  json["measured"] = settings["measured"].value(group.getName().str(), Json());
  auto why = compiled.whyPrecision.find(group.getName().str());
  json["why_precision"] = why == compiled.whyPrecision.end() ? Json(nullptr) : Json(why->second);
  json["is_fallback"] = isFallback;
  json["offers"] = Json::array();
  for (const warehouse::Offer &offer : cards.offer(group))
    json["offers"].push_back(
        {{"card", offer.card->name},
         {"priority", offer.card->priority},
         {"refusal", offer.isOffered() ? Json(nullptr) : Json(offer.refusal)}});
  chosen.insert(group.cardName().str());

  Dim read, weights, written;
  json["inputs"] = Json::array();
  for (const estimate::GroupInput &input : estimate::inputsOf(group)) {
    Json source = sourceOf(input.value);
    (source.contains("weight") ? weights : read) =
        (source.contains("weight") ? weights : read) + input.bytes;
    source["type"] = typeOf(input.value);
    source["bytes"] = sizeOf(input.bytes);
    json["inputs"].push_back(std::move(source));
  }
  json["outputs"] = Json::array();
  for (Value result : group.getResults()) {
    written = written + estimate::bytesOf(result);
    json["outputs"].push_back(
        {{"type", typeOf(result)}, {"bytes", sizeOf(estimate::bytesOf(result))}});
  }
  json["weight_bytes"] = sizeOf(weights);
  json["read_bytes"] = sizeOf(read + weights);
  json["written_bytes"] = sizeOf(written);
  json["flops"] = sizeOf(estimate::flopsOf(group));
  json["estimated_seconds"] = estimate::secondsOf(group, compiled.machine.on(group.deviceNumber()));
  json["functions"] = compiled.program.functions.at(number);
  json["device"] = deviceJson(group, compiled);
  return json;
}

Json Explainer::memory() const {
  Json json = {{"arena_bytes", 0}, {"buffers", Json::array()}};
  for (const program::ArenaBuffer &buffer : compiled.program.buffers) {
    Json bytes = sizeOf(buffer.bytes), offset;
    if (buffer.offset) {
      offset = *buffer.offset;
      int64_t end = llvm::alignTo(*buffer.offset + bytes.get<int64_t>(), lower::kAlignment);
      json["arena_bytes"] = std::max(json["arena_bytes"].get<int64_t>(), end);
    } else {
      json["arena_bytes"] = nullptr;
    }
    json["buffers"].push_back({{"group", buffer.kernel},
                               {"is_temporary", buffer.isTemporary},
                               {"index", buffer.index},
                               {"bytes", bytes},
                               {"offset", offset},
                               {"first", buffer.first},
                               {"last", buffer.last}});
  }
  return json;
}

/// Text of the cards that were chosen.
Json Explainer::chosenCards() const {
  Json json = Json::object();
  for (const warehouse::Card &card : cards.cards()) {
    if (!chosen.count(card.name))
      continue;
    Json knobs = Json::object();
    for (const warehouse::Knob &knob : card.knobs)
      knobs[knob.name] = {{"values", knob.domain}, {"default", knob.initial}};
    json[card.name] = {{"card_kind", mechanism::nameOf(card.mechanism->type)},
                       {"path", card.path},
                       {"hash", card.hash},
                       {"priority", card.priority},
                       {"mechanism", card.mechanism->name},
                       {"knobs", knobs},
                       {"text", card.text}};
  }
  return json;
}

Json Explainer::write() {
  Json json = {{"model", compiled.program.model},
               {"target", compiled.target->name},
               {"vector_bits", compiled.machine.lanes * 32},
               {"math", integers.empty() ? mathOf(compiled) : "int8"},
               {"integers", integers},
               {"subnormals", compiled.target->subnormals().str()},
               {"symbols", compiled.program.symbols},
               {"launches", compiled.program.launches},
               {"weights_bytes", compiled.program.weights.size}};
  json["groups"] = Json::array();
  for (size_t i = 0; i < groups.size(); ++i)
    json["groups"].push_back(groupOf(i));
  if (rows)
    json["rows"] = rowsJson();
  json["feedback"] = feedbackJson(compiled);
  json["unfolded"] = unfoldedJson(compiled);
  if (!compiled.costJson.empty())
    json["cost_model"] = parseJson(compiled.costJson);
  json["memory"] = memory();
  json["cards"] = chosenCards();
  return json;
}

llvm::Expected<std::string> explain(const Compiled &compiled, const RunSizes &sizes) {
  auto cards = loadCards(compiled);
  if (!cards)
    return cards.takeError();
  ModuleOp module = *compiled.graph; // a handle: reading changes nothing
  for (auto [row, length] : llvm::enumerate(sizes.lengths))
    if (length < 0)
      return makeError(ErrorCode::Usage, "error: row " + Twine(row) + " has the length " +
                                             Twine(length) + ", which must be 0 or more");
  Explainer explainer(compiled, module.lookupSymbol<func::FuncOp>("main"), *cards, sizes);
  return explainer.write().dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace heddle
