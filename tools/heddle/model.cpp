// Model: see model.h.

#include "tools/heddle/model.h"

#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"
#include "tools/heddle/progress.h"

#include <heddle/custom_op.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <iostream>
#include <set>

namespace heddle::cli {

namespace {
/// Parser's check of an option's value.
using Domain = std::function<void(Argument)>;

const Domain any = [](Argument) {};
Domain variable(const char *) { return any; }
Domain range(int64_t least, int64_t most) {
  return [=](Argument option) { option.between(least, most); };
}
Domain atLeast(int64_t least) {
  return [=](Argument option) { least > 0 ? option.positive() : option.notNegative(); };
}
template <typename... Words> Domain oneOf(Words... words) {
  return [=](Argument option) { option.oneOf({words...}); };
}
template <typename... Words> Domain someOf(Words...) { return any; } // the compiler knows them

/// A flag of the table, "--plan FILE", and the first sentence about it.
struct Flag {
  Flag(const std::string &flag, const std::string &about)
      : name(flag.substr(0, flag.find(' '))),
        type(flag.size() > name.size() ? flag.substr(name.size() + 1) : ""),
        help(about.substr(0, std::min(about.find(". "), about.find(".\n")))) {
    if (help == about)
      help.pop_back();
    help[0] = static_cast<char>(std::tolower(help[0]));
  }

  void add(Parser app, bool &value, const Domain &) const { app.addFlag(name, &value, help); }
  void add(Parser app, std::vector<std::string> &values, const Domain &) const {
    app.addMany(name, &values, help).type(type);
  }
  template <typename Value> void add(Parser app, Value &value, const Domain &domain) const {
    Argument option = app.add(name, &value, help);
    if (std::is_same_v<Value, int64_t>)
      option.bytes();
    domain(option);
    option.type(type);
  }

  std::string name, type, help;
};

const char *const kDimForm = "NAME=SIZE";
} // namespace

void addGroup(Parser app, CompileOptions &options, Group wanted) {
#define HEDDLE_OPTION_BY_HAND(kind, field, domain, group, flag, keyword, about)                    \
  if (Group::group == wanted)                                                                      \
    Flag(flag, about).add(app, options.field, domain);
#define HEDDLE_OPTION(kind, field, member, value, domain, group, flag, keyword, about)             \
  HEDDLE_OPTION_BY_HAND(kind, field, domain, group, flag, keyword, about)
#define HEDDLE_LIST(field, count, member, group, flag, keyword, about)                             \
  HEDDLE_OPTION_BY_HAND(Texts, field, any, group, flag, keyword, about)
#include <heddle/compile_options.def>
}

void addCompileOptions(Parser app, CompileOptions &options) {
  addGroup(app, options, Group::Common);
  app.addMany("--custom-op", &options.customOps,
              "a library with ops of your own (docs/guide/custom-ops.md)")
      .type("LIBRARY")
      .each([](const std::string &path) { check(heddle_custom_op_load(path.c_str())); });
  app.add("--training", &options.trainingFile,
          "a recipe: compile a step of the model's training (docs/spec/training.md)")
      .each([&options](const std::string &path) { options.training = readFile(path); })
      .type("FILE.json");
  addCacheOption(app, &options.cache).each([&options](const std::string &folder) {
    options.isUncached = folder.empty();
  });
  app.addFlag("--no-cache", &options.isUncached, "compile everything anew, and keep nothing")
      .excludes("--cache");
  app.addFlag("--progress", &options.showProgress, "show progress also without a terminal");
}

void addSizeOptions(Parser app, CompileOptions &options) {
  addGroup(app, options, Group::Sizes);
  app.addMany("--dim", &options.dims, "fix a size by its name, or by its place: batch=4, x.0=4")
      .type(kDimForm);
  addGroup(app, options, Group::OpenSizes);
}

Argument addCacheOption(Parser app, Parser::Value folder) {
  return app
      .add("--cache", folder,
           "folder of what was compiled before (default: HEDDLE_CACHE, or heddle/compiled in "
           "the folder of caches)")
      .type("DIR");
}

void addFeedOptions(Parser app, FeedOptions &options) {
  app.addMany("--input", &options.inputs,
              "x=@FILE.npy, x=2x3xf32=1,2,..., x=random:SEED or x=random:SEED:LOW..HIGH")
      .type("NAME=VALUE");
  app.addMany("--shape", &options.shapes, "sizes of an input that is random: x=1x3x224x224")
      .type("NAME=SIZES");
  app.addMany("--dim", &options.dims, "a size by its name, or by its place: batch=4, x.0=4")
      .type(kDimForm);
  app.add("--data", &options.data, "a folder with input_0.pb, as ONNX's tests have it").type("DIR");
  app.add("--seed", &options.seed,
          "of inputs that nothing else says and, in 'run', of random ops (default 0)")
      .type("N");
}

void addTolerance(Parser app, Tolerance &tolerance) {
  const char *const formula = "|difference| <= atol + rtol |expected| (default 1e-4)";
  app.add("--rtol", &tolerance.rtol, formula).notNegative();
  app.add("--atol", &tolerance.atol, formula).notNegative();
  app.add("--steps", &tolerance.steps, "what quantised values may differ by (default 1)")
      .notNegative();
  app.add("--tolerance", &tolerance.share,
          "or |difference| <= T times the largest |expected| of the output (default 0; 5e-2 where "
          "products are of bf16 or int8, as --math, a plan or the model says)")
      .notNegative();
}

static void set(const char *&to, const std::string &text) {
  to = text.empty() ? nullptr : text.c_str();
}
template <typename Number, typename Given> static void set(Number &to, Given number) {
  to = number;
}

static std::vector<const char *> pointersOf(const std::vector<std::string> &texts) {
  std::vector<const char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(text.c_str());
  return pointers;
}

void withRawOptions(const CompileOptions &given,
                    const std::function<void(const heddle_compile_options_t &)> &use) {
  CompileOptions options = given;
  options.shapes.insert(options.shapes.end(), given.dims.begin(), given.dims.end());
  Progress progress(options.showProgress);
  heddle_compile_options_t raw = {};
  raw.size = sizeof raw;
#define HEDDLE_OPTION(kind, field, ...) set(raw.field, options.field);
#define HEDDLE_OPTION_BY_HAND HEDDLE_OPTION
#define HEDDLE_LIST(field, count, ...)                                                             \
  std::vector<const char *> field = pointersOf(options.field);                                     \
  raw.field = field.data();                                                                        \
  raw.count = field.size();
#include <heddle/compile_options.def>
  if (options.opt_level == 0)
    raw.opt_level = HEDDLE_OPT_NONE;
  if (options.isUncached)
    raw.cache = "";
  raw.progress = [](void *data, const char *stage, double fraction) {
    static_cast<Progress *>(data)->report(stage, fraction);
  };
  raw.progress_data = &progress;
  raw.print = [](void *, const char *stage, const char *text) {
    std::cerr << "// after " << stage << "\n" << text << std::flush;
  };
  use(raw);
}

/// Refuses options that only the compilation of a model takes.
static void refuseForArtefact(const std::string &path, const CompileOptions &options) {
  const std::set<std::string> taken = {"threads", "jobs", "cache_limit_bytes"};
  CompileOptions none;
  std::string given;
#define HEDDLE_OPTION_BY_HAND(kind, field, domain, group, flag, ...)                               \
  if (Group::group == Group::Common && !taken.count(#field) && options.field != none.field)        \
    given += ", " + Flag(flag, " ").name;
#define HEDDLE_OPTION(kind, field, member, value, ...)                                             \
  HEDDLE_OPTION_BY_HAND(kind, field, __VA_ARGS__)
#define HEDDLE_LIST(field, count, member, ...) HEDDLE_OPTION_BY_HAND(Texts, field, any, __VA_ARGS__)
#include <heddle/compile_options.def>
  if (!options.typical.empty())
    given += ", --typical";
  if (!given.empty())
    failUsage("'" + path +
              "' is an artefact, which is compiled already; for models only: " + given.substr(2));
}

Compiled compileModel(const std::string &path, const CompileOptions &options) {
  heddle_compiled_t *compiled = nullptr;
  withRawOptions(options, [&](const heddle_compile_options_t &raw) {
    check(heddle_compile(path.c_str(), &raw, &compiled));
  });
  Compiled made(compiled);
  Json report = parseJson(heddle_compiled_report(compiled));
  if (report.contains("cost_model"))
    if (const Json &problem = report.at("cost_model").at("problem"); problem.is_string())
      printNotes({problem.get<std::string>()});
  return made;
}

Module openModel(const std::string &path, const CompileOptions &options, Tolerance *tolerance) {
  heddle_module_t *module = nullptr;
  bool areSmaller = options.math.starts_with("bf16") || options.math == "int8";
  if (isArtefact(path)) {
    refuseForArtefact(path, options);
    check(heddle_module_load(path.c_str(), &module));
  } else {
    Compiled compiled = compileModel(path, options);
    check(heddle_compiled_module(compiled.get(), &module));
    if (tolerance && !areSmaller)
      areSmaller =
          !parseJson(heddle_compiled_plan(compiled.get())).value("integers", Json()).empty();
  }
  if (tolerance && areSmaller && !tolerance->share)
    tolerance->share = 5e-2;
  return Module(module);
}

std::vector<const heddle_value_t *> inputsOf(const Module &module) {
  std::vector<const heddle_value_t *> values;
  for (size_t i = 0; i < heddle_module_input_count(module.get()); ++i)
    values.push_back(heddle_module_input(module.get(), i));
  return values;
}

std::vector<const heddle_value_t *> outputsOf(const Module &module) {
  std::vector<const heddle_value_t *> values;
  for (size_t i = 0; i < heddle_module_output_count(module.get()); ++i)
    values.push_back(heddle_module_output(module.get(), i));
  return values;
}

Runner::Runner(const Module &module, int threads, const Feeds &feeds, Profile profile)
    : profile(std::move(profile)), inputs(feeds.views()),
      results(heddle_module_output_count(module.get())) {
  heddle_session_options_t options = {};
  options.size = sizeof options;
  options.threads = threads;
  if (this->profile) {
    options.profile = [](void *data, int64_t group, int64_t nanoseconds) {
      static_cast<Runner *>(data)->profile(group, nanoseconds);
    };
    options.profile_data = this;
  }
  heddle_session_t *created = nullptr;
  check(heddle_session_create(module.get(), &options, &created));
  session.reset(created);
}

Runner::~Runner() {
  for (heddle_tensor_t &result : results)
    heddle_tensor_release(&result);
  for (heddle_tensor_t &result : reused)
    heddle_tensor_release(&result);
}

void Runner::run() {
  bool isFirst = reused.empty();
  std::vector<heddle_tensor_t> &outputs = isFirst ? results : reused;
  for (heddle_tensor_t &output : reused) // strings and sequences are made anew
    if (output.dtype == HEDDLE_STRING || output.dtype == HEDDLE_SEQUENCE) {
      heddle_tensor_release(&output);
      output.data = nullptr;
    }
  check(heddle_session_run(session.get(), inputs.data(), inputs.size(), outputs.data(),
                           outputs.size()));
  if (!isFirst)
    return;
  reused = results;
  for (heddle_tensor_t &output : reused)
    output.owner = nullptr;
}

std::vector<Tensor> Runner::outputs() const {
  std::vector<Tensor> copies;
  for (const heddle_tensor_t &result : results)
    copies.push_back(copyOf(result));
  return copies;
}

Json parseJson(const std::string &text) { return Json::parse(text, nullptr, false); }

Json describe(const std::string &name, const Tensor &tensor, int64_t firstValues) {
  Json json = {{"name", name}, {"dtype", heddle_dtype_name(tensor.dtype)}, {"shape", tensor.dims}};
  if (firstValues <= 0)
    return json;
  Json first = Json::array();
  for (int64_t i = 0; i < std::min(firstValues, tensor.count()); ++i) {
    bool isNumber = isFloating(tensor.dtype) && std::isfinite(element(tensor, i));
    if (isNumber)
      first.push_back(element(tensor, i));
    else if (isInteger(tensor.dtype) && tensor.dtype != HEDDLE_UINT64)
      first.push_back(integerElement(tensor, i));
    else if (tensor.dtype == HEDDLE_BOOL)
      first.push_back(integerElement(tensor, i) != 0);
    else
      first.push_back(formatElement(tensor, i)); // JSON has no NaN, no infinity, no complex
  }
  json["first"] = std::move(first);
  return json;
}

Json describe(const Difference &difference) {
  Json json = {{"agrees", difference.isAllowed()}};
  if (!difference.mismatch.empty()) {
    json["mismatch"] = difference.mismatch;
    return json;
  }
  auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json("inf"); };
  json["largest_difference"] = finite(difference.largest);
  json["times_allowed"] = finite(difference.excess);
  json["wrong_elements"] = difference.wrong;
  if (difference.wrong)
    json["worst"] = {{"index", difference.worst},
                     {"actual", difference.actual},
                     {"expected", difference.expected}};
  return json;
}

void print(const std::string &text) {
  errno = 0;
  std::cout << text << std::flush;
  if (!std::cout)
    throw Failure(errno == ENOSPC || errno == EFBIG ? HEDDLE_LIMIT : HEDDLE_USAGE,
                  std::string("cannot write to standard output: ") + std::strerror(errno));
}

void print(const Json &json) {
  print(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void printNotes(const std::vector<std::string> &notes) {
  for (const std::string &note : notes)
    std::cerr << "note: " << note << "\n";
}

} // namespace heddle::cli
