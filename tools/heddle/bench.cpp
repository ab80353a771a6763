// heddle bench: how long a run takes, alone or beside ONNX Runtime.
//
// Beside ONNX Runtime both engines run by turns, a round each of about kRoundSeconds, on the same
// feeds with the same number of threads, so that a machine that slows down slows down both. Each
// turn begins with a run that is not counted, which wakes threads up and warms caches.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"
#include "tools/heddle/model.h"
#include "tools/heddle/peer/peer.h"
#include "tools/heddle/peer/rows.h"
#include "tools/heddle/progress.h"
#include "tools/heddle/statistics.h"
#include "tools/heddle/table.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

namespace heddle::cli {

namespace {
struct Options {
  std::string model, rival, rivalModel;
  CompileOptions compile;
  FeedOptions feeds;
  Tolerance tolerance;
  int warmup = 3, runs = 0;
  double seconds = 1;
  bool isJson = false;
};

struct Samples {
  std::vector<double> ours, theirs; // seconds
};

class Stopwatch {
public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

private:
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};
} // namespace

static const double kRoundSeconds = 0.05;
static const size_t kFewestRuns = 10;

/// Waits between turns: threads of the other engine that still spin would take a core from the one
/// that is timed. Each turn then begins with one run that does not count.
static void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

static double timeOne(Runner &runner) {
  Stopwatch watch;
  runner.run();
  return watch.seconds();
}

/// Runs until there are `runs`, or without --iters until the time is over and kFewestRuns are
/// there.
static Samples measure(const Options &options, Runner &runner, Peer *peer) {
  Samples samples;
  double one = 0;
  for (int i = 0; i < std::max(1, options.warmup); ++i)
    one = timeOne(runner);
  if (peer)
    peer->time(std::max(1, options.warmup));
  int perRound = std::clamp(static_cast<int>(kRoundSeconds / std::max(one, 1e-9)), 1, 10000);
  Progress progress(options.compile.showProgress);
  Stopwatch watch;
  double wanted = options.seconds * (peer ? 2 : 1);
  while (true) {
    size_t done = samples.ours.size(), count = static_cast<size_t>(perRound);
    if (options.runs > 0 ? done >= static_cast<size_t>(options.runs)
                         : watch.seconds() >= wanted && done >= kFewestRuns)
      return samples;
    if (options.runs > 0)
      count = std::min(count, static_cast<size_t>(options.runs) - done);
    progress.report("timing", options.runs > 0 ? static_cast<double>(done) / options.runs
                                               : std::min(1.0, watch.seconds() / wanted));
    if (peer) {
      settle();
      peer->time(1);
      std::vector<double> seconds = peer->time(static_cast<int>(count));
      samples.theirs.insert(samples.theirs.end(), seconds.begin(), seconds.end());
      settle();
      runner.run();
    }
    for (size_t i = 0; i < count; ++i)
      samples.ours.push_back(timeOne(runner));
  }
}

/// Errors of our outputs, a line each.
static std::string disagreements(const Tolerance &tolerance, const Module &module, Runner &runner,
                                 Peer &peer) {
  runner.run();
  std::vector<Tensor> ours = runner.outputs();
  auto theirs = peer.run();
  std::string lines;
  std::vector<const heddle_value_t *> outputs = outputsOf(module);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string name = outputs[i]->name;
    auto found = theirs.find(name);
    if (found == theirs.end()) {
      lines += "output '" + name + "': ONNX Runtime gives no tensor of this name\n";
      continue;
    }
    Difference difference = differenceOf(ours[i], found->second, tolerance, peer.steps[name]);
    if (!difference.isAllowed())
      lines += "output '" + name + "' " + difference.text() + " (by ONNX Runtime)\n";
  }
  return lines;
}

static Json toJson(const Statistics &statistics) {
  return {{"median_ms", 1e3 * statistics.median},
          {"p90_ms", 1e3 * statistics.p90},
          {"p99_ms", 1e3 * statistics.p99},
          {"min_ms", 1e3 * statistics.min},
          {"runs", statistics.runs}};
}

static std::vector<std::string> row(const std::string &name, const Statistics &statistics) {
  auto milliseconds = [](double seconds) { return formatNumber(1e3 * seconds); };
  return {name,
          milliseconds(statistics.median),
          milliseconds(statistics.p90),
          milliseconds(statistics.p99),
          milliseconds(statistics.min),
          std::to_string(statistics.runs)};
}

static void report(const Options &options, const Module &module, const Feeds &feeds,
                   const Runner &runner, const Peer *peer, const Samples &samples,
                   const std::string &differences) {
  heddle_module_info_t info = heddle_module_info(module.get());
  Statistics ours = summarize(samples.ours);
  heddle_memory_t memory = runner.memory();
  Json json = {{"model", options.model}, {"target", info.target}, {"threads", runner.threads()}};
  json.update(toJson(ours));
  json["arena_bytes"] = memory.arena_bytes;
  json["scratch_bytes"] = memory.scratch_bytes;
  json["peak_bytes"] = memory.peak_bytes;
  json["weights_bytes"] = info.weights_bytes;
  json["gflops"] = info.flops > 0 ? Json(info.flops / ours.median * 1e-9) : Json(nullptr);
  json["inputs"] = Json::array();
  std::string sizes;
  std::vector<const heddle_value_t *> inputs = inputsOf(module);
  for (size_t i = 0; i < inputs.size(); ++i) {
    json["inputs"].push_back(describe(inputs[i]->name, feeds.inputs[i]));
    sizes +=
        (i ? ", " : "") + std::string(inputs[i]->name) + " " + formatDims(feeds.inputs[i].dims);
  }
  Table table({"", "median ms", "p90", "p99", "min", "runs"});
  table.add(row("heddle", ours));
  std::string ratio;
  if (peer) {
    Statistics theirs = summarize(samples.theirs);
    json["onnxruntime"] = toJson(theirs);
    json["onnxruntime"]["version"] = peer->version;
    json["onnxruntime"]["called"] = peer->calledHow;
    json["ratio"] = theirs.median / ours.median;
    json["agrees"] = differences.empty();
    if (!differences.empty())
      json["differences"] = differences;
    table.add(row("onnxruntime " + peer->version, theirs));
    ratio = "ratio    " + formatNumber(theirs.median / ours.median, 3) +
            " (above 1: heddle is faster" +
            (differences.empty() ? "" : "; but outputs differ, see below") + ")\ncalled   heddle " +
            "from C, inputs and outputs in place; ONNX Runtime " + peer->calledHow + "\n";
  }
  if (options.isJson)
    return print(json);
  std::string text = table.text() + ratio + "inputs   " + sizes + "\nthreads  " +
                     std::to_string(runner.threads()) + "\narena    " +
                     formatBytes(memory.arena_bytes) + "\n";
  if (info.flops > 0)
    text += "speed    " + formatNumber(info.flops / ours.median * 1e-9) + " GFLOP/s\n";
  print(text);
}

static int run(const Options &options) {
  bool hasRival = !options.rival.empty();
  std::string rivalModel = options.rivalModel.empty() ? options.model : options.rivalModel;
  if (hasRival && isArtefact(rivalModel))
    failUsage("'" + rivalModel +
              "' is an artefact, which ONNX Runtime cannot run"
              "\nnote: --vs-model names the model that it was made from");
  Tolerance tolerance = options.tolerance;
  Module module = openModel(options.model, options.compile, &tolerance);
  Feeds feeds = makeFeeds(inputsOf(module), options.feeds, options.compile.ragged);
  printNotes(feeds.notes);
  Runner runner(module, options.compile.threads, feeds);
  std::unique_ptr<Peer> peer;
  std::string differences;
  if (hasRival) {
    if (options.compile.ragged.empty()) {
      peer = std::make_unique<Peer>(rivalModel, module, feeds, runner.threads());
      differences = disagreements(tolerance, module, runner, *peer);
    } else {
      PaddedModel padded(rivalModel, options.compile, module, feeds);
      peer = std::make_unique<Peer>(rivalModel, padded.module, padded.feeds, runner.threads());
      printNotes({"ONNX Runtime computes the batch with its padding; 'heddle compare' holds the "
                  "results against each other, row by row"});
    }
  }
  Samples samples = measure(options, runner, peer.get());
  report(options, module, feeds, runner, peer.get(), samples, differences);
  if (!differences.empty())
    throw Failure(HEDDLE_DIFFERS, differences + "note: 'heddle compare' says where they part");
  return HEDDLE_OK;
}

Run addBench(Parser app) {
  auto options = std::make_shared<Options>();
  app.add("MODEL", &options->model, "an ONNX model, or an artefact of 'heddle compile'").required();
  app.add("--vs", &options->rival, "also time this engine, by turns").oneOf({"onnxruntime"});
  app.add("--vs-model", &options->rivalModel, "the model for it, when MODEL is an artefact")
      .type("FILE");
  app.add("--warmup", &options->warmup, "runs before (default 3)").notNegative();
  app.add("--iters", &options->runs, "runs to time, in place of --time").between(1, 1000000000);
  app.add("--time", &options->seconds, "how long to time each engine (default 1)")
      .notNegative()
      .type("SECONDS");
  addFeedOptions(app, options->feeds);
  addTolerance(app, options->tolerance);
  addCompileOptions(app, options->compile);
  addGroup(app, options->compile, Group::OpenSizes);
  app.addJson(&options->isJson);
  return [options] { return run(*options); };
}

} // namespace heddle::cli
