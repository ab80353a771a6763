// heddle explain: what was decided about each group of a model, why, and what it costs.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"
#include "tools/heddle/model.h"
#include "tools/heddle/peer/rows.h"
#include "tools/heddle/report/machine.h"
#include "tools/heddle/report/page.h"
#include "tools/heddle/report/profile.h"
#include "tools/heddle/report/text.h"
#include "tools/heddle/report/trace.h"
#include "tools/heddle/table.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace heddle::cli {

namespace {
struct Options {
  std::string model, group, page, trace, against;
  CompileOptions compile;
  FeedOptions feeds;
  double seconds = 1;
  bool isMeasured = false, isMachineMeasured = false, isJson = false;
};
} // namespace

/// A group by its name, its number, or the name of one of its ops.
static const Json &findGroup(const Json &explanation, const std::string &name,
                             const std::string &model) {
  std::vector<std::string> names;
  const Json *byOp = nullptr;
  for (const Json &group : explanation.at("groups")) {
    if (group.at("name") == name || group.at("number").dump() == name)
      return group;
    names.push_back(group.at("name").get<std::string>());
    for (const Json &op : group.at("ops")) {
      if (op.at("name") == name)
        byOp = &group;
      names.push_back(op.at("name").get<std::string>());
    }
  }
  if (byOp)
    return *byOp;
  failUsage("'" + model + "' has no group '" + name + "'" + didYouMean(name, names) +
            "\nnote: --group takes a group's name or number, or the name of one of its ops; "
            "'heddle explain " +
            model + "' lists the groups");
}

/// The program's assembly, through a file that is gone afterwards.
static std::string assemblyOf(const Compiled &compiled) {
  TemporaryFile file("explain", "the assembly");
  check(heddle_compiled_write(compiled.get(), "asm", file.path().c_str()));
  return readFile(file.path());
}

/// A machine that was busy while it was measured looks slower than it is.
static void noteWrongLimits(const Json &explanation) {
  if (!explanation.contains("machine"))
    return;
  double limit = explanation.at("machine").at("flops_per_second");
  for (const Json &group : explanation.at("groups"))
    if (group.value("flops_per_second", 0.0) > 1.03 * limit) {
      printNotes({"group '" + group.at("name").get<std::string>() +
                  "' was faster than this machine's measured peak, so the machine was busy when it "
                  "was measured; --measure-machine measures it again"});
      return;
    }
}

static Json explanationOf(const Compiled &compiled, const std::vector<std::string> &sizes,
                          const std::vector<int64_t> &lengths) {
  std::vector<const char *> texts;
  for (const std::string &size : sizes)
    texts.push_back(size.c_str());
  const char *text = nullptr;
  check(heddle_compiled_explain_run(compiled.get(), texts.data(), texts.size(), lengths.data(),
                                    lengths.size(), &text));
  return parseJson(text);
}

static Module moduleOf(const Compiled &compiled) {
  heddle_module_t *created = nullptr;
  check(heddle_compiled_module(compiled.get(), &created));
  return Module(created);
}

/// Explains a ragged model, for the sizes and lengths of its inputs.
static Json explainRows(const Options &options, const Compiled &compiled) {
  Module module = moduleOf(compiled);
  std::vector<const heddle_value_t *> inputs = inputsOf(module);
  Feeds feeds = makeFeeds(inputs, options.feeds, options.compile.ragged);
  printNotes(feeds.notes);
  std::vector<std::string> sizes;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t axis = 0; axis < dimsOf(*inputs[i]).size(); ++axis)
      if (inputs[i]->dims[axis].value == HEDDLE_UNKNOWN)
        sizes.push_back(inputs[i]->dims[axis].text + std::string("=") +
                        std::to_string(feeds.inputs[i].dims[axis]));
  Rows rows(options.compile.ragged[0], inputs, feeds);
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < rows.count(); ++row)
    lengths.push_back(rows.lengthOf(row));
  return explanationOf(compiled, sizes, lengths);
}

static Json explain(const Options &options, const Compiled &compiled) {
  Json explanation = options.compile.ragged.empty() ? explanationOf(compiled, {}, {})
                                                    : explainRows(options, compiled);
  Machine machine = options.isMachineMeasured ? measureMachine() : knownMachine();
  int threads = options.compile.threads == 1 ? 1 : machine.threads;
  if (options.isMeasured) {
    if (!machine.isKnown())
      machine = measureMachine();
    Module module = moduleOf(compiled);
    Feeds feeds = makeFeeds(inputsOf(module), options.feeds, options.compile.ragged);
    printNotes(feeds.notes);
    addTimes(explanation, module, options.compile.threads, feeds, options.seconds);
    threads = explanation["run"]["threads"];
  }
  addRoofline(explanation, machine, threads);
  noteWrongLimits(explanation);
  return explanation;
}

/// An earlier explanation, which `heddle explain --json` has printed.
static Json readExplanation(const std::string &path) {
  Json read = parseJson(readFile(path));
  bool isWhole = read.is_object() && read.contains("groups") && read["groups"].is_array();
  for (const Json &group : isWhole ? read["groups"] : Json::array())
    isWhole &= group.is_object() && group.contains("ops") && group.contains("name") &&
               group.contains("knobs");
  if (!isWhole)
    failUsage("--against '" + path +
              "': it is no explanation\nnote: 'heddle explain MODEL --json > FILE' writes one");
  return read;
}

static int run(Options options) {
  Json before = options.against.empty() ? Json() : readExplanation(options.against);
  options.isMeasured |= !options.trace.empty();
  if (isArtefact(options.model))
    failUsage("'" + options.model +
              "' is an artefact, which does not hold the reasons of its making"
              "\nnote: explain the model that it was made from");
  // Sizes that are given are those of the compiled model, so that work and traffic are numbers; but
  // sizes of rows stay open.
  if (options.compile.ragged.empty()) {
    std::swap(options.compile.shapes, options.feeds.shapes);
    std::swap(options.compile.dims, options.feeds.dims);
    if (options.feeds.inputs.empty() && options.feeds.data.empty())
      options.feeds.dims = options.compile.typical; // sizes at which it is measured
  }
  options.compile.profiles = options.isMeasured;
  Compiled compiled = compileModel(options.model, options.compile);
  Json explanation = explain(options, compiled);
  const Json *group =
      options.group.empty() ? nullptr : &findGroup(explanation, options.group, options.model);
  if (!options.trace.empty())
    writeFile(options.trace, traceOf(explanation).dump() + "\n");
  if (!options.page.empty()) {
    if (!before.is_null())
      explanation["differences"] = differencesOf(before, explanation);
    writeFile(options.page, pageOf(explanation, assemblyOf(compiled)));
    if (!options.isJson && !group) {
      print(options.page + "  " +
            formatBytes(static_cast<int64_t>(std::filesystem::file_size(options.page))) + "\n");
      return HEDDLE_OK;
    }
  }
  explanation.erase("differences");
  if (!before.is_null())
    print(differencesOf(before, explanation));
  else if (options.isJson)
    print(group ? *group : explanation);
  else
    print(group ? detailsOf(explanation, *group) : tableOf(explanation));
  return HEDDLE_OK;
}

Run addExplain(Parser app) {
  auto options = std::make_shared<Options>();
  app.add("MODEL", &options->model, "an ONNX model").required();
  app.add("--group", &options->group, "all about one group: its name, number or an op of it")
      .type("NAME");
  app.add("--html", &options->page, "write a page, one file of at most 1 MB").type("FILE");
  app.add("--trace", &options->trace, "measure, and write a Chrome trace, which Perfetto opens")
      .type("FILE");
  app.add("--against", &options->against,
          "say what is other than in an earlier '--json' of it, with --measure times too")
      .type("FILE");
  app.addFlag("--measure", &options->isMeasured, "also run the model, and time each group");
  app.add("--time", &options->seconds, "how long to measure (default 1)")
      .notNegative()
      .type("SECONDS");
  app.addFlag("--measure-machine", &options->isMachineMeasured,
              "measure the machine's limits again, which are kept in the user's cache");
  addFeedOptions(app, options->feeds);
  addCompileOptions(app, options->compile);
  addGroup(app, options->compile, Group::OpenSizes);
  app.addJson(&options->isJson);
  return [options] { return run(*options); };
}

} // namespace heddle::cli
