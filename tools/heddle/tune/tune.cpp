// heddle tune: finds faster cards and knobs for a model's groups by measuring, and keeps them in
// records that later compilations use.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"
#include "tools/heddle/model.h"
#include "tools/heddle/progress.h"
#include "tools/heddle/terminal/terminal.h"
#include "tools/heddle/tune/text.h"
#include "tools/heddle/tune/turns.h"

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
  std::vector<std::string> sizes, over;
  int64_t trials = 0, collected = 0, candidates = 0;
  double seconds = 300, trialSeconds = 20;
  bool tunesPlans = false, isJson = false;
  std::string strategy, schedule, decide; // options of a search over plans
  std::vector<std::string> passedOn;      // to a compilation with what was found
};
using Clock = std::chrono::steady_clock;
} // namespace

static const int64_t kNominalSize = 32; // as heddle_tune_options_t.sizes has it

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
/// the default choice is compiled without records, and without a cost model.
static std::string recordsOf(const Options &options) {
  namespace fs = std::filesystem;
  const char *named = std::getenv("HEDDLE_RECORDS");
  std::string path = !options.compile.records.empty() ? options.compile.records
                     : named                          ? named
                                                      : "";
  unsetenv("HEDDLE_RECORDS");
  unsetenv("HEDDLE_COST_MODEL");
  if (!path.empty())
    return path;
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  fs::path folder = cache && *cache ? cache : std::string(home ? home : ".") + "/.cache";
  std::error_code error;
  fs::create_directories(folder / "heddle", error);
  return folder / "heddle" / "records.db";
}

static Json measureGroups(const Options &options, double seconds) {
  std::vector<const char *> sizes, over;
  for (const std::string &size : options.sizes)
    sizes.push_back(size.c_str());
  for (const std::string &each : options.over)
    over.push_back(each.c_str());
  Progress progress(options.compile.showProgress);
  heddle_tune_options_t raw = {};
  raw.size = sizeof raw;
  raw.trials = options.trials;
  raw.seconds = seconds;
  raw.trial_seconds = options.trialSeconds;
  raw.seed = options.feeds.seed;
  raw.sizes = sizes.data();
  raw.size_count = sizes.size();
  raw.over = over.data();
  raw.over_count = over.size();
  raw.collected = options.collected;
  raw.plans = options.tunesPlans;
  raw.strategy = options.strategy.empty() ? nullptr : options.strategy.c_str();
  raw.schedule = options.schedule.empty() ? nullptr : options.schedule.c_str();
  raw.decide = options.decide.c_str();
  raw.candidates = options.candidates;
  raw.progress = [](void *data, const char *what, double fraction) -> int {
    static_cast<Progress *>(data)->report(what, fraction);
    return isInterrupted;
  };
  raw.progress_data = &progress;
  heddle_text_t *text = nullptr;
  withRawOptions(options.compile, [&](const heddle_compile_options_t &compile) {
    check(heddle_tune(options.model.c_str(), &compile, &raw, &text));
  });
  return parseJson(heddle_text_str(Text(text).get()));
}

/// Feeds of the sizes at which groups are measured.
static Feeds feedsOf(const Module &module, const Options &options) {
  FeedOptions feeds = options.feeds;
  feeds.dims = options.sizes;
  feeds.dimOption = "--at";
  auto isKnown = [&](const std::string &name) {
    return std::any_of(feeds.dims.begin(), feeds.dims.end(), [&](const std::string &dim) {
      return dim.substr(0, dim.find('=')) == name;
    });
  };
  std::vector<const heddle_value_t *> inputs = inputsOf(module);
  if (feeds.inputs.empty() && feeds.data.empty())
    for (const heddle_value_t *input : inputs)
      for (const heddle_dim_t &dim : dimsOf(*input)) {
        std::string text = dim.text;
        bool isName = !text.empty() && text.find_first_of(" *+-/(") == std::string::npos;
        if (dim.value == HEDDLE_UNKNOWN && isName && !isKnown(text))
          feeds.dims.push_back(text + "=" + std::to_string(kNominalSize));
      }
  return makeFeeds(inputs, feeds);
}

namespace {
/// A way to compile the model.
struct Candidate {
  std::string name;
  CompileOptions compile;
};
} // namespace

/// The candidate beside the model as it was; null if the model does not take these numbers, or when
/// it was stopped at once.
static Json timesOf(const Candidate &candidate, const Module &before, const Options &options,
                    const Feeds &feeds, double seconds) {
  Module after = openModel(options.model, candidate.compile);
  try {
    return compareModels(before, after, options.compile.threads, feeds, seconds,
                         [] { return isInterrupted != 0; });
  } catch (const Failure &failure) {
    printNotes({std::string("the whole model was not timed: ") + failure.what() +
                "; --input or --data give it other numbers"});
  }
  return nullptr;
}

/// The findings of tuning, the most promising last.
static std::vector<Candidate> candidatesOf(const Json &found, const Options &options,
                                           const TemporaryFile &plan) {
  std::vector<Candidate> candidates;
  if (std::any_of(found.at("groups").begin(), found.at("groups").end(),
                  [](const Json &group) { return group.at("default") != group.at("chosen"); }))
    candidates.push_back({"knobs", options.compile});
  if (found.contains("plans") && found.at("plans").at("plan").is_string()) {
    writeFile(plan.path(), found.at("plans").at("plan").get<std::string>());
    candidates.push_back({"plan", options.compile});
    candidates.back().compile.plan = plan.path();
  }
  return candidates;
}

/// Times the findings by turns with the model as it was, and writes the plan of the kept ones:
/// those that make the whole model faster. If that is not timed, cards and knobs are kept, which
/// were measured by turns before, but no plan's groups.
static void confirm(Json &found, const Module &before, const Options &options, const Feeds &feeds,
                    double seconds) {
  TemporaryFile file("plan", "a plan that is timed");
  std::vector<Candidate> candidates = candidatesOf(found, options, file);
  Candidate kept{"default", options.compile};
  kept.compile.records.clear();
  if (!candidates.empty())
    printNotes(feeds.notes);
  double best = 1;
  for (const Candidate &candidate : candidates) {
    Json times = timesOf(candidate, before, options, feeds, seconds);
    found["candidates"][candidate.name] = times;
    bool isTimed = times.is_object();
    bool isBest = isTimed ? times.at("ratio") > best : !options.tunesPlans;
    if (isBest)
      kept = candidate;
    if (isBest && isTimed)
      best = times.at("ratio");
    if (isBest || !options.tunesPlans)
      found["model_times"] = times;
  }
  found["kept"] = kept.name;
  if (options.output.empty())
    return;
  kept.compile.plan_only = true;
  check(heddle_compiled_write(compileModel(options.model, kept.compile).get(), "plan",
                              options.output.c_str()));
  found["plan"] = options.output;
}

/// The command that compiles the model with the kept choices, for a shell.
static std::string nextOf(const Json &found, const Options &options) {
  bool isSlower = found.value("kept", "") == "default" && found.at("model_times").is_object();
  std::vector<std::string> words{"heddle", "compile", options.model};
  words.insert(words.end(), options.passedOn.begin(), options.passedOn.end());
  if (found.at("plan").is_string())
    words.insert(words.end(), {"--plan", options.output});
  else if (isSlower)
    words.insert(words.end(), {"--chooser", "rules"});
  else
    words.insert(words.end(), {"--records", options.compile.records});
  words.insert(words.end(),
               {"-o", std::filesystem::path(options.model).filename().replace_extension(".so")});
  std::string line;
  for (const std::string &word : words)
    line += (line.empty() ? "" : " ") + shellWord(word);
  return line;
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
  if (!options.compile.chooser.empty())
    failUsage("--chooser says who chooses without measuring, and tuning measures"
              "\nnote: leave it out; --cost-model says what is worth a measurement");
  if (!options.compile.cost_model.empty() && (options.collected || !options.over.empty()))
    failUsage("--cost-model says what is worth a measurement at one size, " +
              std::string(options.collected ? "and --collect draws by chance"
                                            : "but --over searches for all sizes together") +
              "\nnote: leave one of them out");
  if (options.candidates && options.compile.cost_model.empty())
    failUsage("--candidates counts what a cost model proposes, but there is none"
              "\nnote: --cost-model names one; --trials limits a search without one");
  std::string records = recordsOf(options), costModel = options.compile.cost_model;
  options.compile.records.clear();
  options.compile.cost_model.clear(); // shows the default choice and that of records
  Module before = openModel(options.model, options.compile);
  Feeds feeds = feedsOf(before, options); // reports wrong inputs before the work
  double compiling = secondsSince(begin);
  // The end of the time is for the whole model: compiling what was found, and both by turns.
  double comparing = std::clamp(0.05 * options.seconds, 0.5, 10.0);
  int candidates = options.tunesPlans ? 2 : 1;
  double seconds = options.seconds - (1.2 + candidates) * compiling - candidates * comparing;
  options.compile.records = records;
  catchInterrupt();
  options.compile.cost_model = costModel;
  Json found = measureGroups(options, std::max(1.0, seconds));
  options.compile.cost_model.clear();
  if (const Json &led = found.at("cost_model"); led.is_object() && led.at("problem").is_string())
    printNotes({led.at("problem").get<std::string>()});
  found["model"] = options.model;
  found["plan"] = nullptr;
  found["model_times"] = nullptr;
  if (found.at("ended") != "interrupted" && !options.collected)
    confirm(found, before, options, feeds, comparing);
  found["seconds"] = secondsSince(begin);
  found["next"] = nextOf(found, options);
  if (options.isJson)
    print(found);
  else
    print(textOf(found));
  return HEDDLE_OK;
}

Run addTune(Parser app) {
  auto options = std::make_shared<Options>();
  app.add("MODEL", &options->model, "an ONNX model").required();
  app.add("--time", &options->seconds, "for the whole command (default 300)")
      .positive()
      .type("SECONDS");
  app.add("--trials", &options->trials, "candidates and plans to try at most (default: no limit)")
      .notNegative()
      .type("N");
  app.add("--collect", &options->collected,
          "search for nothing, but time N drawn candidates of each group, "
          "for models of costs")
      .positive()
      .type("N");
  Argument plans = app.addFlag("--plans", &options->tunesPlans,
                               "search over whole plans as well: what is fused, split and laid out "
                               "how (-o writes the best)");
  app.add("--strategy", &options->strategy, "of that search (default annealing)")
      .oneOf({"annealing", "evolution"})
      .needs("--plans");
  app.add("--schedule", &options->schedule,
          "of that search: 'joint' (default), plans and knobs by turns, or 'sequential'")
      .oneOf({"joint", "sequential"})
      .needs("--plans");
  app.add("--decide", &options->decide,
          "what that search decides (default all): layouts, fusion, split, knobs")
      .type("WHAT,...")
      .needs("--plans");
  app.add("--candidates", &options->candidates,
          "with --cost-model: of each group measure at most N of those that it judges "
          "(default 8)")
      .positive()
      .type("N");
  app.add("--trial-time", &options->trialSeconds, "after which a candidate has failed (default 20)")
      .positive()
      .type("SECONDS");
  app.add("-o,--output", &options->output, "write the plan of what was found")
      .excludes("--collect")
      .type("FILE");
  plans.excludes("--collect").needs("--output");
  addCompileOptions(app, options->compile);
  addSizeOptions(app, options->compile);
  app.addMany("--at", &options->sizes,
              "measure at this size, which stays a symbol: batch=4 (default 32)")
      .type("NAME=SIZE");
  app.addMany("--over", &options->over,
              "tune for all of these sizes together: seq=5,24:0.2,43 with weights, seq=1..128, or "
              "seq=@FILE of observed ones")
      .excludes("--collect")
      .type("NAME=SIZES");
  app.addMany("--input", &options->feeds.inputs, "of the comparison at the end, as for bench")
      .type("NAME=VALUE");
  app.add("--data", &options->feeds.data, "the same from a folder with input_0.pb").type("DIR");
  app.add("--seed", &options->feeds.seed, "of the candidates that are drawn (default 0)").type("N");
  app.addJson(&options->isJson);
  return [options, app] {
    Parser compile("compile", "");
    addCompile(compile);
    // Words that name what was found come later; a cost model proposes, and does not choose.
    options->passedOn =
        app.givenFor(compile, {"--output", "--records", "--cost-model", "--json", "--progress"});
    return run(*options);
  };
}

} // namespace heddle::cli
