// heddle tune: finds faster cards and knobs for a model's groups by measuring, and keeps them in
// records that later compilations use.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"
#include "tools/heddle/model.h"
#include "tools/heddle/progress.h"
#include "tools/heddle/statistics.h"
#include "tools/heddle/table.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace heddle::cli {

namespace {
struct Options {
  std::string model, output;
  CompileOptions compile;
  FeedOptions feeds;
  std::vector<std::string> dims, sizes;
  int64_t trials = 0;
  double seconds = 300, trialSeconds = 20;
  bool isJson = false;
};
using Clock = std::chrono::steady_clock;
} // namespace

static const int64_t kNominalSize = 32; // as heddle_tune_options_t.sizes has it
static const size_t kFewestTurns = 5;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Set by Ctrl-C; a second one ends the process.
static volatile std::sig_atomic_t isInterrupted = 0;

static void catchInterrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { isInterrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

/// --records, else HEDDLE_RECORDS, else a file in the user's cache. The environment is forgotten:
/// the default choice is compiled without records.
static std::string recordsOf(const Options &options) {
  namespace fs = std::filesystem;
  const char *named = std::getenv("HEDDLE_RECORDS");
  std::string path = !options.compile.records.empty() ? options.compile.records
                     : named                          ? named
                                                      : "";
  unsetenv("HEDDLE_RECORDS");
  if (!path.empty())
    return path;
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  fs::path folder = cache && *cache ? cache : std::string(home ? home : ".") + "/.cache";
  std::error_code error;
  fs::create_directories(folder / "heddle", error);
  return folder / "heddle" / "records.db";
}

static Json measureGroups(const Options &options, double seconds) {
  std::vector<const char *> sizes;
  for (const std::string &size : options.sizes)
    sizes.push_back(size.c_str());
  Progress progress(options.compile.showProgress);
  heddle_tune_options_t raw = {};
  raw.size = sizeof raw;
  raw.trials = options.trials;
  raw.seconds = seconds;
  raw.trial_seconds = options.trialSeconds;
  raw.seed = options.feeds.seed;
  raw.sizes = sizes.data();
  raw.size_count = sizes.size();
  raw.progress = [](void *data, const char *what, double fraction) -> int {
    static_cast<Progress *>(data)->report(what, fraction);
    return isInterrupted;
  };
  raw.progress_data = &progress;
  heddle_text_t *text = nullptr;
  withRawOptions(options.compile, [&](const heddle_compile_options_t &compile) {
    check(heddle_tune(options.model.c_str(), &compile, &raw, &text));
  });
  return Json::parse(heddle_text_str(Text(text).get()));
}

/// Feeds of the sizes at which groups are measured.
static Feeds feedsOf(const Module &module, const Options &options) {
  FeedOptions feeds = options.feeds;
  feeds.dims = options.sizes;
  auto isKnown = [&](const std::string &name) {
    return std::any_of(feeds.dims.begin(), feeds.dims.end(), [&](const std::string &dim) {
      return dim.substr(0, dim.find('=')) == name;
    });
  };
  std::vector<const heddle_value_t *> inputs = inputsOf(module);
  if (feeds.inputs.empty() && feeds.data.empty())
    for (const heddle_value_t *input : inputs)
      for (int32_t i = 0; i < input->rank; ++i) {
        std::string text = input->dims[i].text;
        bool isName = !text.empty() && text.find_first_of(" *+-/(") == std::string::npos;
        if (input->dims[i].value == HEDDLE_UNKNOWN && isName && !isKnown(text))
          feeds.dims.push_back(text + "=" + std::to_string(kNominalSize));
      }
  return makeFeeds(inputs, feeds);
}

/// The whole model, by turns with the default choice and with what was found. Of the turns the
/// quieter half counts: what else the machine does only ever adds.
static Json compareModels(const Options &options, const Module &before, const Module &after,
                          double seconds) {
  Feeds feeds = feedsOf(before, options);
  printNotes(feeds.notes);
  Runner slow(before, options.compile.threads, feeds), fast(after, options.compile.threads, feeds);
  struct Turn {
    double ofSlow, ofFast;
  };
  std::vector<Turn> turns;
  auto time = [](Runner &runner) {
    Clock::time_point begin = Clock::now();
    runner.run();
    return secondsSince(begin);
  };
  for (Runner *runner : {&slow, &fast, &slow, &fast})
    runner->run();
  Clock::time_point begin = Clock::now();
  while (!isInterrupted && (turns.size() < kFewestTurns || secondsSince(begin) < seconds)) {
    bool isSlowFirst = turns.size() % 2 == 0;
    double first = time(isSlowFirst ? slow : fast), second = time(isSlowFirst ? fast : slow);
    turns.push_back(isSlowFirst ? Turn{first, second} : Turn{second, first});
  }
  if (turns.empty())
    return Json(nullptr);
  size_t count = turns.size();
  std::sort(turns.begin(), turns.end(),
            [](const Turn &a, const Turn &b) { return a.ofSlow + a.ofFast < b.ofSlow + b.ofFast; });
  turns.resize((count + 1) / 2);
  std::vector<double> ofSlow, ofFast, ratios;
  for (const Turn &turn : turns) {
    ofSlow.push_back(turn.ofSlow);
    ofFast.push_back(turn.ofFast);
    ratios.push_back(turn.ofSlow / std::max(turn.ofFast, 1e-9));
  }
  return {{"default_seconds", summarize(ofSlow).median},
          {"tuned_seconds", summarize(ofFast).median},
          {"ratio", summarize(ratios).median},
          {"turns", count}};
}

static std::string choiceText(const Json &choice) {
  if (choice.at("card").is_null())
    return "(default form)";
  std::string text = choice.at("card");
  for (const auto &[name, value] : choice.at("knobs").items())
    text += " " + name + "=" + value.dump();
  return text;
}

/// What is other than in the default choice.
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
  return text;
}

static std::string textOf(const Options &options, const Json &found) {
  Table table({"group", "times", "share %", "default", "chosen", "ratio", "tried"});
  std::string problems;
  for (const Json &group : found.at("groups")) {
    std::string name = group.at("groups").at(0);
    if (group.at("problem").is_string()) {
      problems += "note     group '" + name +
                  "' was not tried: " + group.at("problem").get<std::string>() + "\n";
      continue;
    }
    table.add({name, std::to_string(group.at("groups").size()),
               formatNumber(100 * group.at("share").get<double>(), 3),
               choiceText(group.at("default")), changeText(group),
               formatNumber(group.at("ratio").get<double>(), 3), group.at("known").dump()});
  }
  std::string text = table.text() + problems;
  const Json &model = found.at("model_times");
  if (model.is_object())
    text += "model    " + formatSeconds(model.at("default_seconds")) + " -> " +
            formatSeconds(model.at("tuned_seconds")) + ", ratio " +
            formatNumber(model.at("ratio"), 3) + " (above 1: tuned is faster)\n";
  text += "trials   " + found.at("trials").dump() + " now, ended by " +
          found.at("ended").get<std::string>() + "\n";
  text += "records  " + found.at("records").get<std::string>() + "\n";
  if (found.at("plan").is_string())
    text += "plan     " + found.at("plan").get<std::string>() + "\n";
  bool isOpen = found.at("ended") != "done";
  return text + "next     heddle compile " + options.model + " --records " +
         found.at("records").get<std::string>() + " -o ..." +
         (isOpen ? ", or the same command again to go on" : "") + "\n";
}

static bool isChanged(const Json &found) {
  return std::any_of(found.at("groups").begin(), found.at("groups").end(),
                     [](const Json &group) { return group.at("default") != group.at("chosen"); });
}

static int run(Options options) {
  Clock::time_point begin = Clock::now();
  if (isArtefact(options.model))
    failUsage("'" + options.model +
              "' is an artefact, which is compiled already"
              "\nnote: tune the model that it was made from");
  if (!options.compile.plan.empty())
    failUsage("--plan says what to choose, and tuning chooses"
              "\nnote: leave it out; -o writes what was found as a plan");
  std::string records = recordsOf(options);
  options.compile.records.clear();
  options.compile.shapes.insert(options.compile.shapes.end(), options.dims.begin(),
                                options.dims.end());
  Module before = openModel(options.model, options.compile);
  double compiling = secondsSince(begin);
  // The end of the time is for the whole model: compiling it again, and both by turns.
  double comparing = std::clamp(0.05 * options.seconds, 0.5, 10.0);
  double seconds = options.seconds - 2.2 * compiling - comparing;
  options.compile.records = records;
  catchInterrupt();
  Json found = measureGroups(options, std::max(1.0, seconds));
  bool isWhole = found.at("ended") != "interrupted";
  found["model"] = options.model;
  found["plan"] = nullptr;
  found["model_times"] = nullptr;
  if (isWhole && (isChanged(found) || !options.output.empty())) {
    Compiled compiled = compileModel(options.model, options.compile);
    if (!options.output.empty()) {
      check(heddle_compiled_write(compiled.get(), "plan", options.output.c_str()));
      found["plan"] = options.output;
    }
    heddle_module_t *module = nullptr;
    check(heddle_compiled_module(compiled.get(), &module));
    Module after(module);
    compiled.reset();
    if (isChanged(found))
      found["model_times"] = compareModels(options, before, after, comparing);
  }
  found["seconds"] = secondsSince(begin);
  if (options.isJson)
    print(found);
  else
    print(textOf(options, found));
  return HEDDLE_OK;
}

Run addTune(CLI::App &app) {
  auto options = std::make_shared<Options>();
  app.add_option("MODEL", options->model, "an ONNX model")->required();
  app.add_option("--time", options->seconds, "for the whole command (default 300)")
      ->check(CLI::PositiveNumber)
      ->type_name("SECONDS");
  app.add_option("--trials", options->trials, "candidates to measure at most (default: no limit)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_option("--trial-time", options->trialSeconds,
                 "after which a candidate has failed (default 20)")
      ->check(CLI::PositiveNumber)
      ->type_name("SECONDS");
  app.add_option("-o,--output", options->output, "write the plan of what was found")
      ->type_name("FILE");
  addCompileOptions(app, options->compile);
  addMany(app, "--shape", options->compile.shapes, "fix the sizes of an input: x=1x3x?x?")
      ->type_name("NAME=SIZES");
  addMany(app, "--dim", options->dims, "fix the size that a symbol stands for: batch=4")
      ->type_name("NAME=SIZE");
  addMany(app, "--at", options->sizes,
          "measure at this size, which stays a symbol: batch=4 (default 32)")
      ->type_name("NAME=SIZE");
  addMany(app, "--input", options->feeds.inputs, "of the comparison at the end, as for bench")
      ->type_name("NAME=VALUE");
  app.add_option("--data", options->feeds.data, "the same from a folder with input_0.pb")
      ->type_name("DIR");
  app.add_option("--seed", options->feeds.seed, "of the candidates that are drawn (default 0)")
      ->type_name("N");
  app.add_flag("--json", options->isJson, "print one JSON object");
  return [options] { return run(*options); };
}

} // namespace heddle::cli
