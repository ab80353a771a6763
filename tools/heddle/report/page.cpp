// Page: see page.h.

#include "tools/heddle/report/page.h"

#include "tools/heddle/failure.h"
#include "tools/heddle/report/texts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

namespace heddle::cli {

/// An assembler's directive that says nothing about what is computed.
static bool isNoise(const std::string &line) {
  size_t first = line.find_first_not_of(" \t");
  return first == std::string::npos || line[first] == '#' ||
         (line[first] == '.' && line.find(':') == std::string::npos);
}

/// ".LBB12_3" becomes ".L3", so that functions of equal code have equal texts; comments go.
static std::string tidy(const std::string &line) {
  std::string text;
  for (size_t i = 0; i < line.size() && line[i] != '#'; ++i) {
    if (line.compare(i, 4, ".LBB") != 0) {
      text += line[i] == '\t' ? ' ' : line[i];
      continue;
    }
    text += ".L";
    i = std::min(line.find('_', i), line.size() - 1);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

/// The code of each of the functions that are named.
static std::map<std::string, std::string> functionsOf(const std::string &assembly,
                                                      const std::set<std::string> &names) {
  std::map<std::string, std::string> texts;
  std::string *current = nullptr;
  std::istringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    size_t colon = line.find(':');
    if (line.rfind(".Lfunc_end", 0) == 0)
      current = nullptr;
    else if (colon != std::string::npos && colon > 0 && names.count(line.substr(0, colon)))
      current = &texts[line.substr(0, colon)];
    else if (current && !isNoise(line))
      *current += tidy(line) + "\n";
  }
  return texts;
}

/// JSON for a script element, where "</" and "<!--" would end or change it.
static std::string inScript(const Json &json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace), safe;
  for (char letter : text)
    safe += letter == '<' ? "\\u003c" : std::string(1, letter);
  return safe;
}

static void replace(std::string &page, const std::string &mark, const std::string &text) {
  size_t place = page.find(mark);
  if (place == std::string::npos)
    throw Failure(HEDDLE_INTERNAL, "internal error: the page has no place '" + mark + "'");
  page.replace(place, mark.size(), text);
}

/// Groups in the order in which their code is worth room: by time, else by work.
static std::vector<size_t> byWeight(const Json &groups) {
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto weight = [&](size_t i) {
    const Json &group = groups[i];
    const Json &flops = group.at("flops");
    return std::pair(group.value("seconds", 0.0), flops.is_number() ? flops.get<double>() : 0.0);
  };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(weight(b), a) < std::pair(weight(a), b); });
  return order;
}

/// {"texts": [...], "functions": {name: index of its text}, "cut": functions without text}
static Json assemblyOf(const Json &groups, const std::string &assembly, size_t room) {
  std::set<std::string> names;
  for (const Json &group : groups)
    for (const Json &name : group.at("functions"))
      names.insert(name.get<std::string>());
  auto texts = functionsOf(assembly, names);
  Json json = {{"texts", Json::array()}, {"functions", Json::object()}, {"cut", Json::array()}};
  std::map<std::string, int> known;
  std::set<std::string> seen;
  for (size_t i : byWeight(groups))
    for (const Json &name : groups[i].at("functions")) {
      std::string function = name.get<std::string>();
      auto text = texts.find(function);
      if (text == texts.end() || !seen.insert(function).second)
        continue;
      auto found = known.find(text->second);
      if (found == known.end()) {
        size_t bytes = inScript(Json(text->second)).size() + 64;
        if (bytes > room) {
          json["cut"].push_back(function);
          continue;
        }
        room -= bytes;
        found = known.emplace(text->second, static_cast<int>(json["texts"].size())).first;
        json["texts"].push_back(text->second);
      }
      json["functions"][function] = found->second;
    }
  return json;
}

/// Every group names the same few reasons: the page has each text once.
static void shareTexts(Json &explanation) {
  std::map<std::string, size_t> known;
  Json texts = Json::array();
  for (Json &group : explanation["groups"])
    for (Json &offer : group["offers"]) {
      if (!offer["refusal"].is_string())
        continue;
      std::string text = offer["refusal"].get<std::string>();
      auto [place, isNew] = known.emplace(text, texts.size());
      if (isNew)
        texts.push_back(text);
      offer["refusal"] = place->second;
    }
  explanation["refusals"] = std::move(texts);
}

std::string pageOf(Json explanation, const std::string &assembly) {
  shareTexts(explanation);
  std::string page = reportText("page.html"), scripts;
  for (const char *name : {"data.js", "graph.js", "charts.js", "details.js"})
    scripts += reportText(name);
  replace(page, "/*style*/", reportText("page.css"));
  replace(page, "/*scripts*/", scripts);
  // A margin for the names of functions, which are not counted one by one.
  size_t used = page.size() + inScript(explanation).size() + 64 * explanation["groups"].size();
  size_t room = used < kMostPageBytes ? kMostPageBytes - used : 0;
  explanation["assembly"] = assemblyOf(explanation["groups"], assembly, room);
  replace(page, "/*data*/", inScript(explanation));
  return page;
}

} // namespace heddle::cli
