// Plan: the file format, JSON with one group a line so that two plans can be compared line by line.

#include "compiler/plan/Plan.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/support/Error.h"
#include "compiler/support/Json.h"
#include "compiler/support/Suggest.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;

namespace heddle::plan {

const GroupPlan *Plan::find(StringRef group) const {
  auto found = llvm::find_if(groups, [&](const GroupPlan &plan) { return plan.name == group; });
  return found == groups.end() ? nullptr : &*found;
}

std::vector<Recomputation> Plan::recomputations() const {
  std::vector<Recomputation> all;
  for (const GroupPlan &group : groups)
    if (group.again)
      all.push_back(*group.again);
  return all;
}

std::string Plan::str() const {
  auto quoted = [](const std::string &text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string text =
      "{\"plan\": 1, \"model\": " + quoted(model) + ", \"target\": " + quoted(target) + ",\n ";
  if (!layouts.empty())
    text += "\"layouts\": " + Json(layouts).dump(-1, ' ', false, Json::error_handler_t::replace) +
            ",\n ";
  if (!fusion.empty())
    text +=
        "\"fusion\": " + Json(fusion).dump(-1, ' ', false, Json::error_handler_t::replace) + ",\n ";
  if (integers)
    text +=
        "\"integers\": " + Json(*integers).dump(-1, ' ', false, Json::error_handler_t::replace) +
        ",\n ";
  if (!thresholds.empty())
    text += "\"thresholds\": " + Json(thresholds).dump() + ",\n ";
  if (!split.empty())
    text +=
        "\"split\": " + Json(split).dump(-1, ' ', false, Json::error_handler_t::replace) + ",\n ";
  text += "\"groups\": [";
  StringRef separator = "\n";
  for (const GroupPlan &group : groups) {
    Json line = {{"name", group.name},
                 {"ops", group.ops},
                 {"key", group.key},
                 {"card", group.card},
                 {"card_hash", group.cardHash},
                 {"knobs", Json(group.knobs)}};
    if (group.knobs.empty())
      line["knobs"] = Json::object();
    for (const Version &version : group.versions) {
      Json made = {{"when", Json(version.when)}, {"knobs", Json(version.knobs)}};
      if (version.isShort)
        made["precision"] = *version.isShort ? graph::GroupOp::kShort : graph::GroupOp::kExact;
      line["versions"].push_back(std::move(made));
    }
    if (!group.parts.empty()) {
      line["parts"] = group.parts;
      line["mechanism"] = group.mechanism;
    }
    if (group.order)
      line["order"] = *group.order;
    if (group.device)
      line["device"] = group.device;
    if (group.isShort)
      line["precision"] = graph::GroupOp::kShort;
    if (!group.measured.empty())
      line["measured"] = group.measured;
    if (group.region >= 0)
      line["region"] = group.region;
    if (group.again)
      line["again"] = {{"group", group.again->group},
                       {"results", group.again->results},
                       {"from", group.again->from},
                       {"readers", group.again->readers}};
    text += separator.str() + "  " + line.dump(-1, ' ', false, Json::error_handler_t::replace);
    separator = ",\n";
  }
  return text + "\n ]}\n";
}

namespace {
/// Takes the fields of the file, and keeps the first thing that is wrong.
class PlanReader {
public:
  PlanReader(StringRef text, StringRef path) : text(text), path(path) {}

  llvm::Expected<Plan> read(const Json &json) {
    if (!json.is_object() || !json.contains("plan") || json["plan"] != 1)
      return makeError(ErrorCode::Usage,
                       path + ": error: this is no plan: it must begin with {\"plan\": 1");
    Plan plan;
    plan.path = path.str();
    checkFields(json, {"plan", "model", "target", "layouts", "fusion", "integers", "thresholds",
                       "split", "groups"});
    take(json, "model", plan.model, "a string");
    take(json, "target", plan.target, "a string");
    take(json, "layouts", plan.layouts, "an object of 'first' and 'last'");
    for (const auto &[node, layout] : plan.layouts)
      if (layout != "first" && layout != "last")
        complain("the layout of '" + node + "' is '" + layout + "', but must be 'first' or 'last'");
    take(json, "fusion", plan.fusion, "an object of 'apart' and 'joined'");
    for (const auto &[node, fusion] : plan.fusion)
      if (fusion != "apart" && fusion != "joined")
        complain("the fusion of '" + node + "' is '" + fusion +
                 "', but must be 'apart' or 'joined'");
    if (json.contains("integers"))
      take(json, "integers", plan.integers.emplace(), "a list of names");
    take(json, "thresholds", plan.thresholds, "an object of integers");
    take(json, "split", plan.split, "an object of lists of steps");
    checkThresholds(plan);
    if (!json.contains("groups") || !json["groups"].is_array())
      complain("'groups' must be a list");
    else
      for (const Json &group : json["groups"])
        plan.groups.push_back(readGroup(group));
    llvm::StringSet<> seen;
    for (const GroupPlan &group : plan.groups)
      if (!seen.insert(group.name).second)
        complain("group '" + group.name + "' is twice in the plan");
    if (!problems.empty())
      return makeError(ErrorCode::Usage, llvm::join(problems, "\n"));
    return plan;
  }

private:
  void complain(const Twine &what) {
    std::string place = group.empty() ? "" : ":" + std::to_string(lineOf(group));
    problems.push_back(
        (path + place + ": " + (group.empty() ? "" : "group '" + group + "': ") + "error: " + what)
            .str());
  }

  /// The line in which the name of a group is first.
  int64_t lineOf(const std::string &name) const {
    std::string quoted = Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
    for (size_t at = text.find(quoted); at != StringRef::npos; at = text.find(quoted, at + 1)) {
      StringRef before = text.take_front(at).rtrim();
      if (before.consume_back(":") && before.rtrim().ends_with("\"name\""))
        return 1 + text.take_front(at).count('\n');
    }
    return 1;
  }

  void checkFields(const Json &json, ArrayRef<StringRef> known) {
    for (auto &[name, value] : json.items()) {
      if (llvm::is_contained(known, StringRef(name)))
        continue;
      std::string near = support::nearest(name, known);
      complain("unknown field '" + name + "'" +
               (near.empty() ? "" : "; did you mean '" + near + "'?") +
               " known: " + llvm::join(known, ", "));
    }
  }

  void checkThresholds(const Plan &plan) {
    SmallVector<StringRef> names;
    for (const estimate::Threshold *each : estimate::thresholds())
      names.push_back(each->name);
    for (const auto &[name, value] : plan.thresholds) {
      auto known =
          llvm::find_if(estimate::thresholds(), [&](auto *each) { return each->name == name; });
      if (known == estimate::thresholds().end()) {
        std::string near = support::nearest(name, names);
        complain("there is no threshold '" + name + "'; " +
                 (near.empty() ? "there are: " + llvm::join(names, ", ")
                               : "did you mean '" + near + "'?"));
      } else if (value < (*known)->least || value > (*known)->most) {
        complain("threshold '" + name + "' is " + Twine(value) + ", but must be from " +
                 Twine((*known)->least) + " to " + Twine((*known)->most));
      }
    }
  }

  template <typename T>
  void take(const Json &json, const char *name, T &value, const Twine &wanted) {
    auto found = json.find(name);
    if (found == json.end())
      return;
    bool isRead = hasOnlyIntegers(*found);
    try {
      if (isRead)
        value = found->template get<T>();
    } catch (const nlohmann::json::exception &) {
      isRead = false;
    }
    if (!isRead)
      complain("'" + Twine(name) + "' is " + found->dump() + ", but must be " + wanted);
  }

  /// Whether all numbers in it are integers of 64 bits, as those of plans are: others would be cut
  /// off.
  static bool hasOnlyIntegers(const Json &json) {
    if (json.is_structured())
      return llvm::all_of(json, hasOnlyIntegers);
    return !json.is_number() ||
           (json.is_number_integer() &&
            (!json.is_number_unsigned() || json.get<uint64_t>() <= uint64_t(INT64_MAX)));
  }

  void readMeasured(const Json &json, std::map<std::string, double> &measured) {
    auto found = json.find("measured");
    if (found == json.end())
      return;
    bool isRead = found->is_object() &&
                  llvm::all_of(*found, [](const Json &value) { return value.is_number(); });
    if (isRead)
      measured = found->get<std::map<std::string, double>>();
    else
      complain("'measured' is " + found->dump() + ", but must be an object of numbers");
  }

  /// Whether factors are rounded to bf16.
  bool readPrecision(const Json &json) {
    std::string precision = graph::GroupOp::kExact.str();
    take(json, "precision", precision, "a string");
    bool isShort = precision == graph::GroupOp::kShort;
    if (!isShort && precision != graph::GroupOp::kExact)
      complain("its precision is '" + precision + "', but must be 'f32' or 'bf16'");
    return isShort;
  }

  void readVersions(const Json &json, std::vector<Version> &versions) {
    if (!json.is_array())
      return complain("'versions' is " + json.dump() + ", but must be a list");
    for (const Json &each : json) {
      Version &version = versions.emplace_back();
      if (!each.is_object() || !each.contains("when") || !each.contains("knobs")) {
        complain("each of 'versions' must be an object with 'when' and 'knobs', got " +
                 each.dump());
        continue;
      }
      checkFields(each, {"when", "knobs", "precision"});
      if (each.contains("precision"))
        version.isShort = readPrecision(each);
      take(each, "when", version.when, "an object of integers");
      take(each, "knobs", version.knobs, "an object of integers");
    }
  }

  void readAgain(const Json &json, Recomputation &again) {
    again.name = group;
    if (!json.is_object() || !json.contains("group") || !json.contains("results") ||
        !json.contains("readers"))
      return complain("'again' is " + json.dump() +
                      ", but must be an object with 'group', 'results' and 'readers'");
    checkFields(json, {"group", "results", "from", "readers"});
    take(json, "group", again.group, "a string");
    take(json, "results", again.results, "a list of integers");
    take(json, "from", again.from, "a list of integers");
    take(json, "readers", again.readers, "a list of strings");
  }

  void checkParts(const GroupPlan &line) {
    if (line.parts.empty() != line.mechanism.empty())
      return complain("'parts' and 'mechanism' are given together, or neither is");
    if (line.parts.empty())
      return;
    if (!mechanism::find(line.mechanism)) {
      SmallVector<StringRef> names;
      for (const mechanism::Mechanism *each : mechanism::all())
        names.push_back(each->name);
      std::string near = support::nearest(line.mechanism, names);
      complain("there is no mechanism '" + line.mechanism + "'; " +
               (near.empty() ? "there are: " + llvm::join(names, ", ")
                             : "did you mean '" + near + "'?"));
    }
    std::set<std::string> names(line.ops.begin(), line.ops.end()), nodes;
    for (auto &[node, numbers] : line.parts)
      if (!node.empty())
        nodes.insert(node);
    if (names != nodes)
      complain("its 'ops' are not the nodes of its 'parts'; change both, or take out 'parts' and "
               "'mechanism' to go by names alone");
  }

  GroupPlan readGroup(const Json &json) {
    GroupPlan result;
    group.clear();
    if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) {
      complain("each of 'groups' must be an object with a 'name', got " + json.dump());
      return result;
    }
    group = result.name = json["name"].get<std::string>();
    checkFields(json, {"name", "ops", "key", "card", "card_hash", "knobs", "versions", "order",
                       "device", "precision", "measured", "region", "again", "parts", "mechanism"});
    take(json, "ops", result.ops, "a list of strings");
    take(json, "key", result.key, "a string");
    take(json, "card", result.card, "a string");
    take(json, "card_hash", result.cardHash, "a string");
    take(json, "knobs", result.knobs, "an object of integers");
    take(json, "parts", result.parts, "an object of lists of integers");
    take(json, "mechanism", result.mechanism, "a string");
    checkParts(result);
    if (json.contains("versions"))
      readVersions(json["versions"], result.versions);
    if (json.contains("order"))
      take(json, "order", result.order.emplace(), "an integer");
    take(json, "device", result.device, "an integer");
    result.isShort = readPrecision(json);
    readMeasured(json, result.measured);
    take(json, "region", result.region, "an integer");
    if (json.contains("again"))
      readAgain(json["again"], result.again.emplace());
    result.line = lineOf(group);
    group.clear();
    return result;
  }

  StringRef text, path;
  std::string group;
  std::vector<std::string> problems;
};
} // namespace

/// "file:3: error: this is not JSON: ..."; the line of the byte, if it is known.
static llvm::Error notJson(StringRef text, StringRef path, const Json::exception &error,
                           std::optional<size_t> byte) {
  std::string line = byte ? ":" + std::to_string(1 + text.take_front(*byte).count('\n')) : "";
  StringRef why(error.what());
  return makeError(ErrorCode::Usage,
                   path + line + ": error: this is not JSON: " +
                       why.substr(why.rfind("] ") == StringRef::npos ? 0 : why.find("] ") + 2));
}

llvm::Expected<Plan> parsePlan(StringRef text, StringRef path) {
  try {
    return PlanReader(text, path).read(Json::parse(text.begin(), text.end()));
  } catch (const Json::parse_error &error) {
    return notJson(text, path, error, error.byte);
  } catch (const Json::out_of_range &error) { // a number that no double holds
    return notJson(text, path, error, std::nullopt);
  }
}

/// Refuses names in a section of the plan that the model does not have: one line for each of
/// `unknown`.
static llvm::Error whyUnknown(const Plan &given, StringRef section, StringRef what,
                              ArrayRef<StringRef> unknown, ArrayRef<StringRef> known) {
  std::vector<std::string> problems;
  for (StringRef name : unknown) {
    std::string near = support::nearest(name, known);
    problems.push_back(given.path + ": error: '" + section.str() + "': the model has no " +
                       what.str() + " '" + name.str() + "'" +
                       (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
  return problems.empty() ? llvm::Error::success()
                          : makeError(ErrorCode::Usage, llvm::join(problems, "\n"));
}

llvm::Error checkLayouts(const Plan &given, const std::map<std::string, std::string> &made) {
  SmallVector<StringRef> known, unknown;
  for (auto &[name, layout] : made)
    known.push_back(name);
  for (auto &[name, layout] : given.layouts)
    if (!made.count(name))
      unknown.push_back(name);
  return whyUnknown(given, "layouts", "convolution or pool", unknown, known);
}

llvm::Error checkIntegers(const Plan &given, const std::map<std::string, bool> &made) {
  SmallVector<StringRef> known, unknown;
  for (auto &[name, isMade] : made)
    known.push_back(name);
  if (given.integers)
    for (const std::string &name : *given.integers)
      if (auto found = made.find(name); found == made.end() || !found->second)
        unknown.push_back(name);
  return whyUnknown(
      given, "integers",
      "product of float32 with constant weights (finite, 32 rows and 16 columns or more)", unknown,
      known);
}

llvm::Error checkFusion(const Plan &given, const std::set<std::string> &nodes) {
  SmallVector<StringRef> known(nodes.begin(), nodes.end()), unknown;
  for (auto &[name, fusion] : given.fusion)
    if (!nodes.count(name))
      unknown.push_back(name);
  return whyUnknown(given, "fusion", "node that computes", unknown, known);
}

std::string fingerprint(func::FuncOp function) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(64).elideLargeResourceString(64);
  function->print(stream, flags);
  return "sha256:" + llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), true);
}

} // namespace heddle::plan
