// heddle run: a model or an artefact, once; its outputs are printed, kept, or held against files.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/model.h"
#include "tools/heddle/table.h"
#include "tools/heddle/tensor/npy.h"
#include "tools/heddle/tensor/tensor_proto.h"

#include <filesystem>
#include <iostream>
#include <map>

namespace heddle::cli {

namespace {
struct Options {
  std::string model;
  CompileOptions compile;
  FeedOptions feeds;
  Tolerance tolerance;
  std::vector<std::string> outputs, expects;
  bool isJson = false;
};
} // namespace

static const int64_t kFirstValues = 8;

/// {output's index: path} of options such as "y=@y.npy".
static std::map<size_t, std::string> filesOf(const std::vector<std::string> &texts,
                                             const char *option, const Module &module) {
  std::vector<std::string> names;
  for (const heddle_value_t *output : outputsOf(module))
    names.push_back(output->name);
  std::map<size_t, std::string> files;
  for (const std::string &text : texts) {
    auto [name, path] = splitAssignment(text, option, "NAME=@FILE.npy");
    auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      failUsage(std::string(option) + " '" + text + "': the model has no output '" + name + "'" +
                didYouMean(name, names));
    if (path.size() < 2 || path[0] != '@')
      failUsage(std::string(option) + " '" + text + "': expected NAME=@FILE.npy");
    files[static_cast<size_t>(found - names.begin())] = path.substr(1);
  }
  return files;
}

static std::map<size_t, Tensor> readExpected(const Options &options, const Module &module) {
  std::vector<const heddle_value_t *> outputs = outputsOf(module);
  std::map<size_t, Tensor> expected;
  if (!options.feeds.data.empty())
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::string path =
          testDataFolder(options.feeds.data) + "/output_" + std::to_string(i) + ".pb";
      if (std::filesystem::exists(path))
        expected[i] = readTensorProto(path);
    }
  for (const auto &[index, path] : filesOf(options.expects, "--expect", module))
    expected[index] = readNpy(path, outputs[index]->dtype);
  return expected;
}

static int run(const Options &options) {
  Tolerance tolerance = options.tolerance;
  Module module = openModel(options.model, options.compile, &tolerance);
  auto files = filesOf(options.outputs, "--output", module);
  auto expected = readExpected(options, module);
  Feeds feeds = makeFeeds(inputsOf(module), options.feeds, options.compile.ragged);
  printNotes(feeds.notes);
  Runner runner(module, options.compile.threads, feeds);
  runner.seed(options.feeds.seed);
  runner.run();
  std::vector<Tensor> results = runner.outputs();
  std::vector<const heddle_value_t *> inputs = inputsOf(module), outputs = outputsOf(module);

  Json json = {{"model", options.model},
               {"target", heddle_module_info(module.get()).target},
               {"threads", runner.threads()}};
  json["inputs"] = json["outputs"] = Json::array();
  Table table({"", "name", "dtype", "shape", "first values"});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor &input = feeds.inputs[i];
    json["inputs"].push_back(describe(inputs[i]->name, input, kFirstValues));
    table.add({"input", inputs[i]->name, heddle_dtype_name(input.dtype), formatDims(input.dims),
               formatFirst(input, kFirstValues)});
  }
  bool agrees = true;
  std::string differences;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Json about = describe(outputs[i]->name, results[i], kFirstValues);
    table.add({"output", outputs[i]->name, heddle_dtype_name(results[i].dtype),
               formatDims(results[i].dims), formatFirst(results[i], kFirstValues)});
    if (auto found = expected.find(i); found != expected.end()) {
      Difference difference = differenceOf(results[i], found->second, tolerance);
      about["expected"] = describe(difference);
      agrees &= difference.isAllowed();
      differences += "output '" + std::string(outputs[i]->name) + "' " + difference.text() + "\n";
    }
    json["outputs"].push_back(std::move(about));
  }
  for (const auto &[index, path] : files)
    writeNpy(path, results[index]);
  if (!expected.empty())
    json["agrees"] = agrees;
  if (options.isJson)
    print(json);
  else
    print(table.text() + (agrees ? differences : ""));
  if (!agrees)
    std::cerr << differences;
  return agrees ? HEDDLE_OK : HEDDLE_DIFFERS;
}

Run addRun(Parser app) {
  auto options = std::make_shared<Options>();
  app.add("MODEL", &options->model, "an ONNX model, or an artefact of 'heddle compile'").required();
  addFeedOptions(app, options->feeds);
  app.addMany("--output", &options->outputs, "write an output: y=@y.npy").type("NAME=@FILE");
  app.addMany("--expect", &options->expects, "hold an output against a file: y=@y.npy")
      .type("NAME=@FILE");
  addTolerance(app, options->tolerance);
  addCompileOptions(app, options->compile);
  addGroup(app, options->compile, Group::OpenSizes);
  app.addJson(&options->isJson);
  return [options] { return run(*options); };
}

} // namespace heddle::cli
