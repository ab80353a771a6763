// Trace: see trace.h.

#include "tools/heddle/report/trace.h"

#include "tools/heddle/table.h"

#include <map>

namespace heddle::cli {

static std::string opsOf(const Json &group) {
  std::string text;
  for (const Json &op : group.at("ops"))
    text += (text.empty() ? "" : " ") + op.at("name").get<std::string>();
  return text;
}

Json traceOf(const Json &explanation) {
  Json events = Json::array();
  double at = 0; // microseconds
  for (const Json &group : explanation.at("groups")) {
    double duration = 1e6 * group.value("seconds", 0.0);
    Json about = {{"ops", opsOf(group)}};
    for (const char *key : {"card", "mechanism", "knobs", "flops", "read_bytes", "written_bytes",
                            "of_bound", "launched_with"})
      if (group.contains(key))
        about[key] = group[key];
    events.push_back({{"name", group.at("name")},
                      {"cat", group.value("mechanism", "")},
                      {"ph", "X"},
                      {"ts", at},
                      {"dur", duration},
                      {"pid", 1},
                      {"tid", 1},
                      {"args", about}});
    at += duration;
  }
  Json model = {{"name", explanation.at("model")}};
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", model}});
  return {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
}

static std::string choiceOf(const Json &group) {
  std::string text = group.value("card", "none");
  for (const auto &[name, value] : group.at("knobs").items())
    text += " " + name + "=" + value.dump();
  return text;
}

static std::string timeOf(const Json &group) {
  return group.contains("seconds") ? formatSeconds(group.at("seconds")) : "";
}

std::string differencesOf(const Json &before, const Json &after) {
  std::map<std::string, const Json *> known;
  for (const Json &group : before.at("groups"))
    known[opsOf(group)] = &group;
  Table table({"group", "before", "now", "before", "now", "ratio"});
  size_t equal = 0, others = 0;
  for (const Json &group : after.at("groups")) {
    auto found = known.find(opsOf(group));
    std::string name = group.at("name");
    if (found == known.end()) {
      table.add({name, "-", choiceOf(group), "", timeOf(group), ""});
      ++others;
      continue;
    }
    const Json &old = *found->second;
    bool isTimed = old.contains("seconds") && group.contains("seconds");
    if (isTimed || choiceOf(old) != choiceOf(group)) {
      double ratio =
          isTimed ? old.at("seconds").get<double>() / group.at("seconds").get<double>() : 0;
      table.add({name, choiceOf(old),
                 choiceOf(old) == choiceOf(group) ? "the same" : choiceOf(group), timeOf(old),
                 timeOf(group), isTimed ? formatNumber(ratio, 3) : ""});
      ++others;
    } else {
      ++equal;
    }
    known.erase(found);
  }
  for (const auto &[ops, group] : known) {
    table.add({group->at("name"), choiceOf(*group), "-", timeOf(*group), "", ""});
    ++others;
  }
  std::string text = std::to_string(equal) + " groups are as before";
  return (others ? table.text() : "") + text + "\n";
}

} // namespace heddle::cli
