// heddle cards: which cards there are, which are for a model's groups, and whether a card is right.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"
#include "tools/heddle/model.h"
#include "tools/heddle/table.h"
#include "tools/heddle/terminal/terminal.h"

#include <filesystem>
#include <iostream>

namespace heddle::cli {

namespace {
struct Options {
  std::string name, model, group, output; // subjects of the action
  std::vector<std::string> paths;
  CompileOptions compile;
  int64_t count = 0, seconds = 0;
  uint32_t seed = 1;
  bool isJson = false, isForced = false;
};
using Shared = std::shared_ptr<Options>;
} // namespace

static const char *orNull(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

/// The text that a function of the C API gives.
static std::string textOf(const std::function<heddle_status_t *(heddle_text_t **)> &make) {
  heddle_text_t *text = nullptr;
  check(make(&text));
  return heddle_text_str(Text(text).get());
}

/// Items as "a, b", or knobs with their values as "m=8 n=48".
static std::string joined(const Json &items) {
  std::string text;
  for (const auto &[key, item] : items.items()) {
    std::string word = item.is_string() ? item.get<std::string>() : item.dump();
    text += items.is_object() ? (text.empty() ? "" : " ") + key + "=" + word
                              : (text.empty() ? "" : ", ") + word;
  }
  return text;
}

/// Each knob with its values and, in brackets, its default: "rows=[1] 2 4".
static std::string knobsOf(const Json &card) {
  std::string text;
  for (const Json &knob : card.at("knobs")) {
    text += (text.empty() ? "" : "; ") + knob.at("name").get<std::string>() + "=";
    std::string values;
    for (const Json &value : knob.at("values"))
      values += (values.empty() ? "" : " ") +
                (value == knob.at("default") ? "[" + value.dump() + "]" : value.dump());
    text += values;
  }
  return text;
}

static int list(const Options &options) {
  Json result = parseJson(textOf([&](heddle_text_t **text) {
    return heddle_cards_list(orNull(options.compile.schedules), text);
  }));
  if (options.isJson) {
    print(result);
    return HEDDLE_OK;
  }
  const std::vector<std::string> heads = {"card",      "kind",  "target", "priority",
                                          "mechanism", "loops", "from",   "knobs"};
  Table table(heads);
  std::string stacked; // for where the table has no room
  size_t columns = columnsOfOutput();
  for (const Json &card : result.at("cards")) {
    bool isNest = card.contains("nest");
    std::vector<std::string> row = {
        card.at("name"),
        card.at("card_kind"),
        card.at("target"),
        card.at("priority").dump(),
        card.at("mechanism"),
        (isNest ? "nest " : "key ") + joined(card.at(isNest ? "nest" : "key")),
        card.at("built_in") ? "built-in" : card.at("path").get<std::string>(),
        knobsOf(card)};
    stacked += emphasised(row[0]) + "\n";
    for (size_t i = 1; i < row.size(); ++i)
      if (!row[i].empty())
        stacked += wrapped(heads[i] + " " + row[i], "  ", columns);
    table.add(row);
  }
  print(columns && table.width() > columns ? stacked : table.text());
  return HEDDLE_OK;
}

static int show(const Options &options) {
  print(textOf([&](heddle_text_t **text) {
    return heddle_cards_show(orNull(options.compile.schedules), options.name.c_str(), text);
  }));
  return HEDDLE_OK;
}

static std::string explained(const Json &group) {
  std::string text = "group '" + group.at("name").get<std::string>() + "' (" +
                     group.value("mechanism", "") + "): " + group.at("loops").get<std::string>() +
                     "\n";
  if (!group.at("ops").empty())
    text += "  ops      " + joined(group.at("ops")) + "\n";
  for (const Json &card : group.at("cards")) {
    bool isChosen = card.at("card") == group.at("chosen");
    text += isChosen ? "  chosen   " : card.at("offered") ? "  offered  " : "  refused  ";
    text += card.at("card").get<std::string>();
    if (card.at("card_kind") != "schedule")
      text += " (" + card.at("card_kind").get<std::string>() + ")";
    if (isChosen && !group.at("knobs").empty())
      text += ": " + joined(group.at("knobs"));
    else if (card.contains("refusal"))
      text += ": " + card.at("refusal").get<std::string>();
    text += "\n";
  }
  if (group.at("chosen").is_null())
    text += "  no card: the form of its kind, with default sizes\n";
  return text;
}

static int explain(const Options &options) {
  std::string text;
  withRawOptions(options.compile, [&](const heddle_compile_options_t &raw) {
    text = textOf([&](heddle_text_t **result) {
      return heddle_cards_explain(options.model.c_str(), &raw, orNull(options.group), result);
    });
  });
  Json result = parseJson(text);
  if (options.isJson) {
    print(result);
    return HEDDLE_OK;
  }
  for (const Json &group : result.at("groups"))
    print(explained(group));
  return HEDDLE_OK;
}

static std::string verdict(const Json &proof) {
  std::string path = proof.at("path").get<std::string>(), text;
  if (!proof.at("passes")) {
    const Json &difference = proof.at("difference");
    text = path + ": WRONG: " + difference.at("what").get<std::string>() + "\n  group    " +
           difference.at("group").get<std::string>() + "\n";
    if (!difference.at("sizes").empty())
      text += "  sizes    " + joined(difference.at("sizes")) +
              (difference.at("compiled_for_these_sizes") ? ", known when compiling" : "") + "\n";
    if (!difference.at("knobs").empty())
      text += "  knobs    " + joined(difference.at("knobs")) + "\n";
    for (const Json &version : difference.at("versions"))
      text += "  version  up to " + joined(version.at("when")) + ": " +
              joined(version.at("knobs")) + "\n";
    return text;
  }
  text = path + ": proved in " + formatNumber(proof.at("seconds"), 3) + " s\n";
  text += "  groups   " + joined(proof.at("groups")) + "\n";
  text += "  cases    " + proof.at("cases").dump() + ", in " + proof.at("kernels").dump() +
          " kernels, " + proof.at("carried_out").dump() + " of them by '" +
          proof.at("mechanism").get<std::string>() + "'\n";
  text += "  noticed  " + proof.at("mutation").get<std::string>() + "\n";
  for (const Json &change : proof.at("mutations_missed"))
    text += "  missed   " + change.get<std::string>() + "\n";
  return text;
}

/// All cards are checked, whatever becomes of the first; the worst says how it ends.
static int checkCards(const Options &options) {
  Json proofs = Json::array();
  int code = HEDDLE_OK;
  for (const std::string &path : options.paths) {
    try {
      Json proof = parseJson(textOf([&](heddle_text_t **text) {
        return heddle_cards_check(path.c_str(), options.count, options.seed, options.seconds, text);
      }));
      if (!proof.at("passes"))
        code = std::max<int>(code, HEDDLE_DIFFERS);
      if (!options.isJson)
        print(verdict(proof));
      proofs.push_back(proof);
    } catch (const Failure &failure) {
      code = std::max<int>(code, failure.code);
      std::cerr << failure.what() << "\n";
      proofs.push_back({{"path", path}, {"passes", false}, {"error", failure.what()}});
    }
  }
  if (options.isJson)
    print(Json{{"cards", proofs}});
  return code;
}

static int draft(const Options &options) {
  std::string name = options.name, text;
  withRawOptions(options.compile, [&](const heddle_compile_options_t &raw) {
    text = textOf([&](heddle_text_t **result) {
      return heddle_cards_draft(name.c_str(), options.model.c_str(), &raw, orNull(options.group),
                                result);
    });
  });
  if (std::filesystem::path(options.output).stem() != name)
    failUsage("'" + options.output + "': a card has the name of its file, and this one is to be '" +
              name + "'\nnote: -o " + name + ".mlir");
  if (!options.isForced && std::filesystem::exists(options.output))
    failUsage("'" + options.output +
              "' is there already, and may have been edited\nnote: another "
              "-o, or --force to replace it");
  writeFile(options.output, text);
  print(options.output + "\n");
  return HEDDLE_OK;
}

static void addSchedules(Parser action, Options &options) {
  action
      .add("--schedules", &options.compile.schedules, "a folder of cards beside the built-in ones")
      .type("DIR");
}

static void addShapes(Parser action, Options &options) {
  addCompileOptions(action, options.compile);
  addSizeOptions(action, options.compile);
}

Run addCards(Parser app) {
  auto options = std::make_shared<Options>();
  Parser listed = app.addAction("list", "the cards in the order of their priority");
  addSchedules(listed, *options);
  Parser shown = app.addAction("show", "the text of a card");
  shown.add("NAME", &options->name, "of a card").required();
  addSchedules(shown, *options);
  Parser why = app.addAction("explain", "for each group of a model, which cards are for it");
  why.add("MODEL", &options->model, "an ONNX model").required();
  why.add("--group", &options->group, "this group alone").type("NAME");
  addShapes(why, *options);
  Parser proved = app.addAction("check", "prove cards against the reference interpreter");
  proved.add("CARD", &options->paths, "files of cards").required();
  proved.add("--count", &options->count, "cases: sizes and knobs (default 24)")
      .between(1, 100000)
      .type("N");
  proved.add("--limit", &options->seconds, "seconds that one run may take (default 30)")
      .between(1, 3600)
      .type("S");
  proved.add("--seed", &options->seed, "of sizes, knobs and numbers (default 1)").type("N");
  Parser made = app.addAction("new", "write a first card for a group of a model");
  made.add("NAME", &options->name, "of the new card").required();
  made.add("--from", &options->model, "an ONNX model").required().type("MODEL");
  made.add("--group", &options->group,
           "of the model (default: the first with a reduction or a window)")
      .type("NAME");
  made.add("-o,--output", &options->output, "what to write").required().type("FILE");
  made.addFlag("--force", &options->isForced, "replace a file that is there");
  addShapes(made, *options);
  for (Parser action : {listed, why, proved})
    action.addJson(&options->isJson);
  return [=] {
    return listed.isNamed()   ? list(*options)
           : shown.isNamed()  ? show(*options)
           : why.isNamed()    ? explain(*options)
           : proved.isNamed() ? checkCards(*options)
                              : draft(*options);
  };
}

} // namespace heddle::cli
