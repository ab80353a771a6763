// heddle plan: what was chosen for each group of a model: printed, written, or checked.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"
#include "tools/heddle/model.h"
#include "tools/heddle/table.h"

#include <iostream>

namespace heddle::cli {

namespace {
struct Options {
  std::string model, output, checked;
  CompileOptions compile;
  bool isJson = false;
};
} // namespace

/// A value of the plan in one cell: lists by commas, objects as "m=16 n=32".
static std::string cell(const Json &value) {
  if (value.is_string())
    return value.get<std::string>();
  if (!value.is_structured())
    return value.is_null() ? "" : value.dump();
  std::string text;
  for (const auto &[key, item] : value.items())
    text += (text.empty()       ? ""
             : value.is_array() ? ", "
                                : " ") +
            (value.is_array() ? cell(item) : key + "=" + cell(item));
  return text;
}

static const Json &groupsOf(const Json &plan) {
  static const Json none = Json::array();
  return plan.contains("groups") && plan.at("groups").is_array() ? plan.at("groups") : none;
}

/// A column for each key of the groups, in the order in which they appear.
static std::string tableOf(const Json &plan) {
  std::vector<std::string> keys;
  for (const Json &group : groupsOf(plan))
    for (const auto &[key, value] : group.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        keys.push_back(key);
  std::string text;
  for (const auto &[key, value] : plan.items())
    if (key != "groups")
      text += key + ": " + cell(value) + "\n";
  if (keys.empty())
    return text + "no groups\n";
  Table table(keys);
  for (const Json &group : groupsOf(plan)) {
    std::vector<std::string> row;
    for (const std::string &key : keys)
      row.push_back(group.contains(key) ? cell(group.at(key)) : "");
    table.add(std::move(row));
  }
  return text + table.text();
}

/// Whether what was made is what a file says, which may leave things out: members of an object, and
/// the order of names. "" stands for any card's hash.
static bool isMade(const Json &said, const Json &made) {
  if (said.is_object() && made.is_object()) {
    for (const auto &[name, value] : said.items())
      if (!(name == "card_hash" && value == "") && !isMade(value, made.value(name, Json())))
        return false;
    return true;
  }
  if (!said.is_array() || !made.is_array() || said.size() != made.size())
    return said == made;
  if (!said.empty() && said[0].is_string())
    return std::is_permutation(said.begin(), said.end(), made.begin());
  return std::equal(said.begin(), said.end(), made.begin(), isMade);
}

/// Differences of the file's groups from the plan that was carried out. `order`, `region`
/// and `device` are carried out or refused; `key` is for readers.
static std::vector<std::string> differencesOf(const Json &file, const Json &carriedOut) {
  std::vector<std::string> lines;
  const Json &made = groupsOf(carriedOut);
  for (const Json &group : groupsOf(file)) {
    auto found = std::find_if(made.begin(), made.end(), [&](const Json &other) {
      return other.at("name") == group.at("name");
    });
    if (found == made.end()) {
      lines.push_back("group " + group.at("name").dump() + " was not made");
      continue;
    }
    Json carried = *found;
    carried.emplace("precision", "f32");
    for (const char *field :
         {"ops", "card", "card_hash", "knobs", "versions", "again", "precision"})
      if (group.contains(field) && !isMade({{field, group[field]}}, carried))
        lines.push_back("group " + group.at("name").dump() + ": '" + field + "' is " +
                        group[field].dump() + ", but was carried out as " +
                        carried.value(field, Json()).dump());
  }
  return lines;
}

static int run(Options options) {
  if (!options.checked.empty()) {
    if (!options.compile.plan.empty())
      failUsage("--check and --plan exclude each other");
    options.compile.plan = options.checked;
  }
  options.compile.plan_only = true;
  Compiled compiled = compileModel(options.model, options.compile);
  Json plan = parseJson(heddle_compiled_plan(compiled.get()));
  if (!plan.is_object())
    throw Failure(HEDDLE_INTERNAL,
                  "internal error: the plan of '" + options.model + "' is not a JSON object");
  if (!options.output.empty())
    check(heddle_compiled_write(compiled.get(), "plan", options.output.c_str()));
  if (options.checked.empty()) {
    if (options.isJson)
      print(plan);
    else
      print(options.output.empty() ? tableOf(plan) : options.output + "\n");
    return HEDDLE_OK;
  }
  Json file = parseJson(readFile(options.checked)); // accepted by the compiler
  std::vector<std::string> lines = differencesOf(file, plan);
  if (options.isJson)
    print(Json{{"plan", options.checked}, {"fits", lines.empty()}, {"differences", lines}});
  for (const std::string &line : lines)
    std::cerr << "'" << options.checked << "': " << line << "\n";
  if (lines.empty() && !options.isJson)
    print("'" + options.checked + "' fits '" + options.model + "': it says " +
          std::to_string(groupsOf(file).size()) + " of " + std::to_string(groupsOf(plan).size()) +
          " groups\n");
  return lines.empty() ? HEDDLE_OK : HEDDLE_DIFFERS;
}

Run addPlan(Parser app) {
  auto options = std::make_shared<Options>();
  app.add("MODEL", &options->model, "an ONNX model").required();
  app.add("-o,--output", &options->output, "write the plan instead of printing it").type("FILE");
  app.add("--check", &options->checked, "does this plan fit the model?").type("FILE");
  addCompileOptions(app, options->compile);
  addSizeOptions(app, options->compile);
  app.addJson(&options->isJson);
  return [options] { return run(*options); };
}

} // namespace heddle::cli
