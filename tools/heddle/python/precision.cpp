// Precision: see precision.h. The request and the answer are JSON, as
// python/heddle/precision/__main__.py takes and gives them.

#include "tools/heddle/python/precision.h"

#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"
#include "tools/heddle/python/interpreter.h"
#include "tools/heddle/table.h"

#include <cmath>

namespace heddle::cli {

void addPrecision(Parser app, PrecisionOptions &options) {
  app.add("--tolerance", &options.tolerance,
          "products of smaller numbers (--math bf16, the default, or int8) as far as no output is "
          "further than this from float32, relative to the output's largest number "
          "(docs/guide/precision.md)")
      .excludes("--training")
      .excludes("--gradient")
      .excludes("--plan")
      .excludes("--ragged")
      .type("T");
  app.addMany("--data", &options.data,
              "samples that errors are measured on: arrays by the names of inputs, whose first "
              "dimension counts them, or a folder of such files (default: random inputs)")
      .type("FILE.npz")
      .needs("--tolerance");
  app.add("--batch", &options.batch,
          "samples of a run, where the model leaves that open (default 1)")
      .positive()
      .type("N")
      .needs("--tolerance");
  app.addFlag("--each", &options.isEach, "measure the error of each product alone")
      .needs("--tolerance");
  app.addFlag("--untimed", &options.isUntimed,
              "time nothing: the chooser says which products are faster, and estimates by how much")
      .needs("--tolerance");
}

template <typename Value>
static void give(Json &keywords, const std::string &keyword, const Value &value,
                 const Value &without) {
  if (std::string name = keyword.substr(0, keyword.find('=')); value != without && !name.empty())
    keywords[name] = value;
}

/// The options that were given, as keywords of heddle.compile.
static Json keywordsOf(const CompileOptions &options) {
  CompileOptions none;
  Json keywords = Json::object();
#define HEDDLE_OPTION(kind, field, member, value, domain, group, flag, keyword, about)             \
  give(keywords, keyword, options.field, none.field);
#define HEDDLE_OPTION_BY_HAND(kind, field, domain, group, flag, keyword, about)                    \
  give(keywords, keyword, options.field, none.field);
#define HEDDLE_LIST(field, count, member, group, flag, keyword, about)                             \
  give(keywords, keyword, options.field, none.field);
#include <heddle/compile_options.def>
  for (const std::string &size : options.dims)
    keywords["shapes"].push_back(size);
  if (options.isUncached)
    keywords["cache"] = false;
  return keywords;
}

Json choosePrecision(const std::string &model, const PrecisionOptions &options,
                     const CompileOptions &compile) {
  if (!(*options.tolerance > 0 && std::isfinite(*options.tolerance)))
    failUsage("--tolerance " + formatNumber(*options.tolerance) +
              ": must be a number above 0, the greatest error of an output relative to its largest "
              "number");
  TemporaryFile answer("precision", "the plan of --tolerance");
  Json request = {{"model", model},
                  {"tolerance", *options.tolerance},
                  {"data", options.data},
                  {"batch", options.batch},
                  {"each", options.isEach},
                  {"untimed", options.isUntimed},
                  {"custom_ops", compile.customOps},
                  {"answer", answer.path()},
                  {"compile", keywordsOf(compile)}};
  int code = runPython("heddle.precision", "compile", {request.dump()}, {"numpy", "onnx"});
  Json found = parseJson(readFile(answer.path()));
  if (found.is_object() && found.contains("error"))
    throw Failure(static_cast<heddle_code_t>(code), found.at("error"));
  if (code != 0 || !found.is_object())
    throw Failure(static_cast<heddle_code_t>(code ? code : HEDDLE_INTERNAL),
                  "no precision was chosen; messages above say why");
  return found;
}

} // namespace heddle::cli
