// heddle compare: the compiled model, the reference interpreter and ONNX Runtime on the same feeds.
//
// Outputs are compared first. If they differ, or with --per-node, the reference runs once more and
// each node's results are held against ONNX Runtime's, a node at a time, so that no more than a few
// intermediate values are in memory.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"
#include "tools/heddle/model.h"
#include "tools/heddle/peer/peer.h"
#include "tools/heddle/peer/rows.h"
#include "tools/heddle/progress.h"
#include "tools/heddle/table.h"

#include <exception>
#include <functional>
#include <iostream>

namespace heddle::cli {

namespace {
struct Options {
  std::string model;
  std::vector<std::string> against;
  CompileOptions compile;
  FeedOptions feeds;
  Tolerance tolerance;
  bool isPerNode = false, isJson = false;
};

struct NodeResult {
  std::string node, op, value; // no node and the name as value: an output of the model
  const heddle_tensor_t &tensor;
};

/// One output of two engines.
struct OutputRow {
  std::string output, engine, against;
  Difference difference;
};

struct NodeRow {
  std::string node, op;
  size_t output;
  Difference difference;
};

struct Comparison {
  std::vector<OutputRow> outputs;
  std::vector<NodeRow> nodes;
  std::vector<std::string> notes;

  bool agrees() const {
    return std::all_of(outputs.begin(), outputs.end(),
                       [](const OutputRow &row) { return row.difference.isAllowed(); });
  }
  const NodeRow *firstParting() const {
    auto found = std::find_if(nodes.begin(), nodes.end(),
                              [](const NodeRow &row) { return !row.difference.isAllowed(); });
    return found == nodes.end() ? nullptr : &*found;
  }
};

using Tensors = std::map<std::string, Tensor>;
} // namespace

/// Calls `each` for every result. Its exceptions pass through the C API unseen, and on from here.
static void runReference(const Options &options, const Feeds &feeds,
                         const std::function<void(const NodeResult &)> &each) {
  struct State {
    const std::function<void(const NodeResult &)> &each;
    Progress progress;
    std::exception_ptr thrown;
  } state{each, Progress(options.compile.showProgress), nullptr};
  std::vector<heddle_tensor_t> inputs = feeds.views();
  heddle_compile_options_t recipe = {};
  recipe.size = sizeof recipe;
  recipe.cache = "";
  if (!options.compile.training.empty())
    recipe.training = options.compile.training.c_str();
  check(heddle_reference_run_with(
      options.model.c_str(), &recipe, inputs.data(), inputs.size(),
      [](void *data, const char *node, const char *op, const char *value,
         const heddle_tensor_t *result) {
        State &state = *static_cast<State *>(data);
        if (state.thrown)
          return;
        try {
          state.progress.report(std::string("reference: ") + op + " '" + node + "'", -1);
          state.each({node, op, value, *result});
        } catch (...) {
          state.thrown = std::current_exception();
        }
      },
      &state));
  if (state.thrown)
    std::rethrow_exception(state.thrown);
}

/// The outputs by the reference. One that no node makes is an input that is passed on.
static Tensors referenceOutputs(const Options &options, const Module &module, const Feeds &feeds) {
  Tensors outputs;
  std::vector<const heddle_value_t *> inputs = inputsOf(module), wanted = outputsOf(module);
  for (const heddle_value_t *output : wanted)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (std::string(output->name) == inputs[i]->name)
        outputs[output->name] = feeds.inputs[i];
  runReference(options, feeds, [&](const NodeResult &result) {
    for (const heddle_value_t *output : wanted)
      if (result.value == output->name)
        outputs[output->name] = copyOf(result.tensor);
  });
  return outputs;
}

static void compareOutputs(const Tolerance &tolerance, const Module &module,
                           const std::string &engine, const Tensors &actual,
                           const std::string &against, const Tensors &expected,
                           const std::map<std::string, double> &steps, Comparison &comparison) {
  for (const heddle_value_t *output : outputsOf(module)) {
    auto one = actual.find(output->name), two = expected.find(output->name);
    if (one == actual.end() || two == expected.end()) {
      comparison.notes.push_back("output '" + std::string(output->name) +
                                 "': " + (one == actual.end() ? engine : against) +
                                 " gives no tensor of this name");
      continue;
    }
    auto step = steps.find(output->name);
    comparison.outputs.push_back({output->name, engine, against,
                                  differenceOf(one->second, two->second, tolerance,
                                               step == steps.end() ? 0 : step->second)});
  }
}

namespace {

/// Compares the reference's reports of a node of the model with ONNX Runtime's outputs of it.
///
/// The reference reports each op of the graph, and a node of the model may be several: if the node
/// has one output, the last report is it. If it has more, all reports must be its outputs. Nodes
/// inside of functions and subgraphs are not in `counts`, and are left out.
class NodeComparison {
public:
  NodeComparison(const Options &options, Peer &peer, Comparison &comparison)
      : options(options), peer(peer), comparison(comparison), counts(peer.nodes()) {}

  void add(const NodeResult &result) {
    if (result.node != node)
      finish();
    auto found = counts.find(result.node);
    if (isOver || found == counts.end())
      return;
    node = result.node;
    op = result.op;
    if (found->second == 1)
      results.clear();
    results.push_back(copyOf(result.tensor));
  }

  void finish() {
    if (!results.empty() && results.size() == counts[node]) {
      std::vector<Tensor> theirs = peer.node(node);
      for (size_t i = 0; theirs.size() == results.size() && i < results.size(); ++i) {
        Difference difference = differenceOf(theirs[i], results[i], options.tolerance);
        isOver |= !options.isPerNode && !difference.isAllowed();
        comparison.nodes.push_back({node, op, i, difference});
      }
    }
    results.clear();
    node.clear();
  }

private:
  const Options &options;
  Peer &peer;
  Comparison &comparison;
  std::map<std::string, size_t> counts;
  std::string node, op;
  std::vector<Tensor> results;
  bool isOver = false;
};

} // namespace

static void compareNodes(const Options &options, const Feeds &feeds, Peer &peer,
                         Comparison &comparison) {
  NodeComparison nodes(options, peer, comparison);
  runReference(options, feeds, [&](const NodeResult &result) { nodes.add(result); });
  nodes.finish();
}

static Json toJson(const Options &options, const Feeds &feeds, const Module &module,
                   const Comparison &comparison) {
  Json json = {{"model", options.model}, {"agrees", comparison.agrees()}};
  std::vector<const heddle_value_t *> inputs = inputsOf(module);
  json["inputs"] = json["outputs"] = json["nodes"] = Json::array();
  for (size_t i = 0; i < inputs.size(); ++i)
    json["inputs"].push_back(describe(inputs[i]->name, feeds.inputs[i]));
  for (const OutputRow &row : comparison.outputs) {
    Json about = {{"output", row.output}, {"engine", row.engine}, {"against", row.against}};
    about.update(describe(row.difference));
    json["outputs"].push_back(std::move(about));
  }
  auto describeNode = [](const NodeRow &row) {
    Json about = {{"node", row.node}, {"op", row.op}, {"output", row.output}};
    about.update(describe(row.difference));
    return about;
  };
  if (options.isPerNode)
    for (const NodeRow &row : comparison.nodes)
      json["nodes"].push_back(describeNode(row));
  const NodeRow *first = comparison.firstParting();
  json["first_parting"] = first ? describeNode(*first) : Json(nullptr);
  json["notes"] = comparison.notes;
  return json;
}

static std::string describeText(const Options &options, const Comparison &comparison) {
  std::string text;
  if (options.isPerNode && !comparison.nodes.empty()) {
    Table nodes({"node", "op", "output", "onnxruntime against reference"});
    for (const NodeRow &row : comparison.nodes)
      nodes.add({row.node, row.op, std::to_string(row.output), row.difference.text()});
    text += nodes.text() + "\n";
  }
  Table outputs({"output", "engine", "against", ""});
  for (const OutputRow &row : comparison.outputs)
    outputs.add({row.output, row.engine, row.against, row.difference.text()});
  text += outputs.text();
  if (const NodeRow *first = comparison.firstParting())
    text += "onnxruntime first parts from the reference at node '" + first->node + "' (" +
            first->op + "), whose output " + std::to_string(first->output) + " " +
            first->difference.text() + "\n";
  else if (!comparison.nodes.empty())
    text += "onnxruntime agrees with the reference at all " +
            std::to_string(comparison.nodes.size()) + " values of nodes that both have\n";
  return text;
}

/// Runs each row of a ragged batch alone, and joins the engines' results into one padded batch.
/// Rows without elements are ours: of many models no engine computes them.
static void runRows(const Options &options, const Module &module, const PaddedModel &padded,
                    const Feeds &feeds, const Tensors &ours, Tensors *reference, Tensors *theirs,
                    Comparison &comparison) {
  Rows rows(options.compile.ragged[0], inputsOf(module), feeds);
  auto merge = [&](int64_t row, const Tensors &alone, Tensors &all) {
    for (const heddle_value_t *output : outputsOf(module)) {
      auto made = alone.find(output->name);
      const Tensor &found = ours.at(output->name);
      if (!rows.isPlaced(*output) || (made == alone.end() && rows.lengthOf(row) > 0))
        continue;
      auto [whole, isNew] = all.try_emplace(output->name);
      if (isNew)
        whole->second = makeTensor(found.dtype, found.dims, "output");
      if (made == alone.end())
        rows.copy(row, *output, found, whole->second);
      else
        rows.place(row, *output, made->second, whole->second);
    }
  };
  for (int64_t row = 0; row < rows.count(); ++row) {
    Tensors none;
    Feeds alone = rows.feedsOf(row, inputsOf(padded.module));
    bool isEmpty = rows.lengthOf(row) == 0;
    if (isEmpty)
      comparison.notes.push_back("row " + std::to_string(row) +
                                 " has the length 0, and is not compared");
    if (reference)
      merge(row, isEmpty ? none : referenceOutputs(options, padded.module, alone), *reference);
    if (theirs)
      merge(row,
            isEmpty ? none
                    : Peer(options.model, padded.module, alone, options.compile.threads).run(),
            *theirs);
  }
}

static int run(Options options) {
  if (isArtefact(options.model))
    failUsage("'" + options.model +
              "' is an artefact, but the reference interpreter and ONNX "
              "Runtime need the model\nnote: 'heddle run --expect' holds an "
              "artefact against files");
  bool isRagged = !options.compile.ragged.empty();
  if (isRagged && (options.isPerNode || options.compile.ragged_outputs == "packed"))
    failUsage(std::string(options.isPerNode ? "--per-node" : "--ragged-outputs packed") +
              " with --ragged: rows are compared by the padded outputs of the whole model");
  bool isDefault = options.against.empty();
  auto has = [&](const char *engine) {
    return std::find(options.against.begin(), options.against.end(), engine) !=
           options.against.end();
  };
  bool trains = !options.compile.training.empty(); // ONNX Runtime does not
  bool hasReference = isDefault || has("reference"),
       hasPeer = (isDefault && !trains) || has("onnxruntime");
  Tolerance tolerance = options.tolerance;
  Module module = openModel(options.model, options.compile, &tolerance);
  Feeds feeds = makeFeeds(inputsOf(module), options.feeds, options.compile.ragged);
  printNotes(feeds.notes);
  Comparison comparison;
  std::optional<PaddedModel> padded; // set if rows are compared
  if (isRagged)
    padded.emplace(options.model, options.compile, module, feeds);
  std::unique_ptr<Peer> peer;
  if (hasPeer) {
    try {
      peer = std::make_unique<Peer>(options.model, padded ? padded->module : module,
                                    padded ? padded->feeds : feeds, options.compile.threads);
    } catch (const Failure &failure) {
      if (!isDefault)
        throw;
      comparison.notes.push_back(std::string("not compared with ONNX Runtime: ") + failure.what());
    }
  }
  Runner runner(module, options.compile.threads, feeds);
  runner.run();
  Tensors ours;
  std::vector<Tensor> results = runner.outputs();
  std::vector<const heddle_value_t *> outputs = outputsOf(module);
  for (size_t i = 0; i < outputs.size(); ++i)
    ours[outputs[i]->name] = std::move(results[i]);
  Tensors reference, theirs;
  std::map<std::string, double> steps = peer ? peer->steps : std::map<std::string, double>();
  if (padded) {
    runRows(options, module, *padded, feeds, ours, hasReference ? &reference : nullptr,
            peer ? &theirs : nullptr, comparison);
  } else {
    if (hasReference)
      reference = referenceOutputs(options, module, feeds);
    if (peer)
      theirs = peer->run();
  }
  if (hasReference)
    compareOutputs(tolerance, module, "heddle", ours, "reference", reference, steps, comparison);
  if (peer) {
    compareOutputs(tolerance, module, "heddle", ours, "onnxruntime", theirs, steps, comparison);
    if (hasReference)
      compareOutputs(options.tolerance, module, "onnxruntime", theirs, "reference", reference,
                     steps, comparison);
  }
  if (peer && hasReference && !isRagged && (options.isPerNode || !comparison.agrees()))
    compareNodes(options, feeds, *peer, comparison);
  else if (options.isPerNode || !comparison.agrees())
    comparison.notes.push_back("no nodes are compared: that takes both the reference and ONNX "
                               "Runtime, without --ragged and --training");
  printNotes(comparison.notes);
  if (options.isJson)
    print(toJson(options, feeds, module, comparison));
  else
    print(describeText(options, comparison));
  if (comparison.outputs.empty() && !outputs.empty())
    failUsage("nothing was compared: no engine gives an output of this model");
  return comparison.agrees() ? HEDDLE_OK : HEDDLE_DIFFERS;
}

Run addCompare(Parser app) {
  auto options = std::make_shared<Options>();
  app.add("MODEL", &options->model, "an ONNX model").required();
  app.add("--against", &options->against,
          "reference, onnxruntime (default: both, the latter if installed)")
      .separated()
      .oneOf({"reference", "onnxruntime"});
  addFeedOptions(app, options->feeds);
  addTolerance(app, options->tolerance);
  app.addFlag("--per-node", &options->isPerNode,
              "print each node's difference of ONNX Runtime from the reference");
  addCompileOptions(app, options->compile);
  addGroup(app, options->compile, Group::OpenSizes);
  app.addJson(&options->isJson);
  return [options] { return run(*options); };
}

} // namespace heddle::cli
