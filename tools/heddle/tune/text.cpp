// Text: see text.h.

#include "tools/heddle/tune/text.h"

#include "tools/heddle/table.h"

#include <map>

namespace heddle::cli {

static std::string choiceText(const Json &choice) {
  if (choice.at("card").is_null())
    return "(default form)";
  std::string text = choice.at("card");
  for (const auto &[name, value] : choice.at("knobs").items())
    text += " " + name + "=" + value.dump();
  return text + (choice.contains("precision") ? " bf16" : "");
}

/// Differences from the default choice.
static std::string changeText(const Json &group) {
  const Json &before = group.at("default"), &after = group.at("chosen");
  if (before == after)
    return "=";
  if (before.at("card") != after.at("card"))
    return choiceText(after);
  std::string text;
  for (const auto &[name, value] : after.at("knobs").items())
    if (before.at("knobs").value(name, Json()) != value)
      text += (text.empty() ? "" : " ") + name + "=" + value.dump();
  if (before.value("precision", Json()) != after.value("precision", Json()))
    text += text.empty() ? "bf16" : " bf16";
  if (before.value("versions", Json()) != after.value("versions", Json()))
    text += (text.empty() ? "" : ", ") +
            std::to_string(after.value("versions", Json::array()).size()) + " versions by size";
  return text;
}

/// Decisions that the search over plans has changed.
static std::string plansText(const Json &found) {
  const Json &plans = found.at("plans");
  std::string text;
  for (const Json &decision : plans.at("decisions")) {
    const Json &names = decision.at("names");
    text += "decided  " + decision.at("section").get<std::string>() + ": " +
            decision.at("value").get<std::string>() + ": " + names.at(0).get<std::string>() +
            (names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " like it" : "") +
            "\n";
  }
  text += "plans    " + plans.at("tried").dump() + " tried of " + plans.at("sites").dump() +
          " decisions; ratio of the best " + formatNumber(plans.at("ratio"), 3) + "\n";
  if (plans.at("not_run_whole").is_string())
    text +=
        "note     plans were judged by their groups alone, since the whole model did not run: " +
        plans.at("not_run_whole").get<std::string>() + "\n";
  if (found.contains("candidates"))
    for (const auto &[name, times] : found.at("candidates").items())
      text += "whole    " + name + ": " +
              (times.is_object() ? "ratio " + formatNumber(times.at("ratio"), 3) : "not timed") +
              "\n";
  return text;
}

std::string textOf(const Json &found) {
  Table table({"group", "times", "share %", "default", "chosen", "ratio", "tried"});
  std::map<std::string, std::vector<std::string>> problems; // the groups that have each
  for (const Json &group : found.at("groups")) {
    std::string name = group.at("groups").at(0);
    if (group.at("problem").is_string()) {
      problems[group.at("problem")].push_back(name);
      continue;
    }
    table.add({name, std::to_string(group.at("groups").size()),
               formatNumber(100 * group.at("share").get<double>(), 3),
               choiceText(group.at("default")), changeText(group),
               formatNumber(group.at("ratio").get<double>(), 3), group.at("known").dump()});
  }
  std::string text = table.text();
  for (const auto &[problem, names] : problems)
    text += "note     group '" + names.front() + "'" +
            (names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more were"
                              : std::string(" was")) +
            " not tried: " + problem + "\n";
  const Json &model = found.at("model_times");
  if (model.is_object())
    text += "model    " + formatSeconds(model.at("default_seconds")) + " -> " +
            formatSeconds(model.at("tuned_seconds")) + ", ratio " +
            formatNumber(model.at("ratio"), 3) + " (above 1: tuned is faster)\n";
  if (found.contains("plans"))
    text += plansText(found);
  if (found.contains("kept"))
    text += "kept     " + found.at("kept").get<std::string>() + "\n";
  bool isDone = found.at("ended") == "done";
  text += "trials   " + found.at("trials").dump() + " now, ended by " +
          found.at("ended").get<std::string>() +
          (isDone ? "" : "; the same command again goes on") + "\n";
  text += "records  " + found.at("records").get<std::string>() + "\n";
  if (found.at("plan").is_string())
    text += "plan     " + found.at("plan").get<std::string>() + "\n";
  return text + "next     " + found.at("next").get<std::string>() + "\n";
}

} // namespace heddle::cli
