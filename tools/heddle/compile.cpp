// heddle compile: a model becomes files, and what it took is said.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"
#include "tools/heddle/model.h"
#include "tools/heddle/python/precision.h"
#include "tools/heddle/table.h"

#include <chrono>
#include <filesystem>
#include <iostream>

namespace heddle::cli {

namespace {
struct Options {
  std::string model, output, kind, planOutput;
  CompileOptions compile;
  PrecisionOptions precision;
  std::vector<std::string> variables; // variables of a derivative
  std::string differentiated;
  bool isVerbose = false, isJson = false;
};

struct Suffix {
  const char *suffix, *kind;
};
} // namespace

static const Suffix kSuffixes[] = {{".so", "so"},      {".o", "o"},        {".h", "h"},
                                   {".ll", "ll"},      {".s", "asm"},      {".asm", "asm"},
                                   {".c", "c"},        {".ptx", "ptx"},    {".json", "plan"},
                                   {".mlir", "graph"}, {".loops", "loops"}};

static std::string kindOf(const Options &options) {
  if (!options.kind.empty())
    return options.kind;
  std::string suffix = std::filesystem::path(options.output).extension(), known;
  for (const Suffix &entry : kSuffixes) {
    if (suffix == entry.suffix)
      return entry.kind;
    known += (known.empty() ? "" : ", ") + std::string(entry.suffix);
  }
  failUsage("'" + options.output + "': its ending says no kind of file (known: " + known +
            ")\nnote: --emit says which kind to write");
}

/// Writes what was asked for, and returns the paths. A header that was made for an artefact which
/// then cannot be written goes away again.
static std::vector<std::string> writeFiles(const Options &options, const Compiled &compiled) {
  namespace fs = std::filesystem;
  std::string kind = kindOf(options), header;
  std::vector<std::string> paths;
  bool isNewHeader = false;
  std::error_code error;
  if ((kind == "so" || kind == "o") && fs::path(options.output).extension() == "." + kind) {
    header = fs::path(options.output).replace_extension(".h");
    isNewHeader = !fs::exists(header, error);
    check(heddle_compiled_write(compiled.get(), "h", header.c_str()));
  }
  try {
    check(heddle_compiled_write(compiled.get(), kind.c_str(), options.output.c_str()));
  } catch (const Failure &) {
    if (isNewHeader)
      fs::remove(header, error);
    throw;
  }
  paths.push_back(options.output);
  if (!header.empty())
    paths.push_back(header);
  if (!options.planOutput.empty()) {
    check(heddle_compiled_write(compiled.get(), "plan", options.planOutput.c_str()));
    paths.push_back(options.planOutput);
  }
  return paths;
}

static void printReport(const Options &options, const Json &result) {
  std::string text;
  for (const Json &file : result.at("files"))
    text += file.at("path").get<std::string>() + "  " + formatBytes(file.at("bytes")) + "\n";
  Table stages({"stage", "seconds"});
  Json ofStages = result.at("report").value("seconds", Json::object());
  for (const auto &[name, seconds] : ofStages.items()) {
    char number[32];
    std::snprintf(number, sizeof number, "%.3f", seconds.get<double>());
    stages.add({name, number});
  }
  text += stages.text();
  const Json &report = result.at("report");
  if (Json objects = report.value("objects", Json()); report.value("from_cache", false))
    text += "cache    the whole artefact\n";
  else if (objects.is_object() && objects.at("from_cache") > 0)
    text += "cache    " + objects.at("from_cache").dump() + " of " + objects.at("count").dump() +
            " objects\n";
  if (report.contains("groups"))
    text += "groups   " + report.at("groups").dump() + "\n";
  for (const Json &group : report.value("pointwise_instead", Json::array()))
    text += "note     group " + group.at("group").dump() +
            " runs element by element: its schedule '" + group.at("planned").get<std::string>() +
            "' could not be carried out\n";
  if (report.contains("arena_bytes")) // a number, or an expression of the sizes of inputs
    text += "arena    " +
            (report.at("arena_bytes").is_number() ? formatBytes(report.at("arena_bytes"))
                                                  : report.at("arena_bytes").dump()) +
            "\n";
  text += "weights  " + formatBytes(result.at("weights_bytes")) + "\n";
  text += "target   " + result.at("target").get<std::string>() + "\n";
  text += "seconds  " + formatNumber(result.at("seconds"), 3) + "\n";
  if (options.isVerbose)
    text += report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  print(text);
}

static int run(Options options) {
  std::string kind = kindOf(options); // a wrong ending is said before the work, not after
  if (!options.variables.empty())
    options.compile.training = Json{
        {"phase", "derivative"},
        {"output", options.differentiated},
        {"variables",
         options.variables}}.dump();
  std::optional<TemporaryFile> plan;
  Json precision;
  if (options.precision.tolerance) {
    Json chosen = choosePrecision(options.model, options.precision, options.compile);
    plan.emplace("plan", "the plan of --tolerance");
    writeFile(plan->path(), chosen.at("plan").dump());
    options.compile.plan = plan->path();
    options.compile.math = chosen.at("math");
    precision = chosen.at("facts");
    if (!options.isJson)
      print(chosen.at("text").get<std::string>() + "\n\n");
  }
  options.compile.plan_only = kind == "plan" || kind == "graph" || kind == "loops";
  auto begin = std::chrono::steady_clock::now();
  Compiled compiled = compileModel(options.model, options.compile);
  std::vector<std::string> paths = writeFiles(options, compiled);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const char *text = heddle_compiled_report(compiled.get());
  Json result = {{"model", options.model}, {"files", Json::array()}};
  for (const std::string &path : paths) {
    std::error_code error;
    auto bytes = std::filesystem::file_size(path, error);
    result["files"].push_back({{"path", path}, {"bytes", error ? 0 : bytes}});
  }
  Json report = parseJson(text ? text : "{}");
  result["report"] = report.is_object() ? report : Json::object();
  result["target"] = result["report"].value("target", options.compile.target);
  result["seconds"] = seconds.count();
  if (!precision.is_null())
    result["precision"] = precision;
  result["weights_bytes"] = result["report"].value("weights_bytes", int64_t{0});
  if (options.isJson)
    print(result);
  else
    printReport(options, result);
  return HEDDLE_OK;
}

Run addCompile(Parser app) {
  auto options = std::make_shared<Options>();
  app.add("MODEL", &options->model, "an ONNX model").required();
  app.add("-o,--output", &options->output, "what to write; model.so and model.o come with model.h")
      .required()
      .type("FILE");
  app.add("--emit", &options->kind, "its kind (default: what the ending of FILE says)")
      .oneOf({"so", "o", "h", "ll", "asm", "ptx", "c", "plan", "graph", "loops"});
  addCompileOptions(app, options->compile);
  addSizeOptions(app, options->compile);
  addGroup(app, options->compile, Group::Compile);
  app.add("--gradient", &options->variables,
          "compile the derivative with respect to these inputs or initializers: x,y")
      .separated()
      .type("NAME,...")
      .excludes("--training");
  app.add("--gradient-of", &options->differentiated,
          "the output that is differentiated (default: the first)")
      .type("OUTPUT")
      .needs("--gradient");
  addPrecision(app, options->precision);
  app.add("--plan-out", &options->planOutput, "also write the plan").type("FILE");
  app.addFlag("-v,--verbose", &options->isVerbose, "print the whole report");
  app.addJson(&options->isJson);
  return [options] { return run(*options); };
}

} // namespace heddle::cli
