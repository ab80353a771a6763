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

namespace heddle::cli {

void addCompileOptions(Parser app, CompileOptions &options) {
  app.add(
         "--target", &options.target,
         "'host' (default), c (a C99 file), x86-64-v2, x86-64-v3, x86-64-v4, x86-64-vnni, aarch64, "
         "aarch64-dotprod, aarch64-i8mm, or an LLVM CPU name; several in one artefact: "
         "x86-64-v2+v3+v4+vnni; 'help' lists all")
      .type("CPU[+CPU...]");
  app.add("-O", &options.level, "optimisation level of LLVM").between(0, 3).type("0..3");
  app.add("--threads", &options.threads, "threads of a run; 0 (default): all there are")
      .between(0, 4096)
      .type("N");
  app.addMany("--function", &options.functions,
              "an ONNX file with functions that the model's nodes may call")
      .type("FILE");
  app.addMany("--custom-op", &options.customOps,
              "a library with ops of your own (docs/guide/custom-ops.md)")
      .type("LIBRARY")
      .each([](const std::string &path) { check(heddle_custom_op_load(path.c_str())); });
  app.add("--plan", &options.plan, "carry out this plan").type("FILE");
  app.add("--records", &options.records,
          "use what 'heddle tune' has found (default: HEDDLE_RECORDS, or none)")
      .type("FILE");
  app.add("--cost-model", &options.costModel,
          "let a cost model choose where records do not (docs/guide/cost.md; default: "
          "HEDDLE_COST_MODEL, or none)")
      .type("FILE.so");
  app.add("--chooser", &options.chooser,
          "who chooses where the plan does not: 'learned', the cost model without any "
          "records, or 'rules', which ask neither (default: records, cost model, rules)")
      .oneOf({"learned", "rules"})
      .type("WHO");
  app.add("--training", &options.trainingFile,
          "a recipe: compile a step of the model's training (docs/spec/training.md)")
      .each([&options](const std::string &path) { options.training = readFile(path); })
      .type("FILE.json");
  app.add("--memory", &options.memory,
          "what a run may take (docs/guide/memory.md): where it is too little, results are "
          "computed twice")
      .bytes()
      .positive()
      .type("BYTES");
  app.add("--schedules", &options.schedules, "a folder of cards beside the built-in ones")
      .type("DIR");
  app.add("--fold-limit", &options.foldLimit, "do not compute larger constants at compile time")
      .notNegative()
      .type("BYTES");
  app.add("--math", &options.math,
          "'fast' (default), or 'strict': no algorithms that round sums otherwise than "
          "by their order, and floats of 16 bits are rounded after each op")
      .oneOf({"fast", "strict"})
      .type("MATH");
  app.add("--subnormals", &options.subnormals,
          "results below the normal numbers: 'keep' (default with --math strict), or 'flush' them "
          "to 0, which is faster where there are any")
      .oneOf({"keep", "flush"})
      .type("HOW");
  app.add("--without", &options.without,
          "leave out layers of the partitioner, to compare: cards, fusion, stitch, siblings, "
          "regions, feedback, recomputation")
      .type("LAYER,...");
  app.add("--jobs", &options.jobs, "threads that compile; 0 (default): all cores")
      .between(0, 4096)
      .type("N");
  addCacheOption(app, options.cache);
  app.addFlag("--no-cache", &options.isUncached, "compile everything anew, and keep nothing")
      .excludes("--cache");
  app.add("--cache-limit", &options.cacheLimit,
          "of the cache's folder; above it goes what was not used (default 10 GiB)")
      .positive()
      .type("BYTES");
  app.addFlag("--progress", &options.showProgress, "show progress also without a terminal");
}

static const char *const kDimForm = "NAME=SIZE";

void addSizeOptions(Parser app, CompileOptions &options) {
  app.addMany("--shape", &options.shapes, "fix the sizes of an input: x=1x3x?x?")
      .type("NAME=SIZES");
  app.addMany("--dim", &options.dims, "fix a size by its name, or by its place: batch=4, x.0=4")
      .type(kDimForm);
  addOpenSizeOptions(app, options);
}

void addOpenSizeOptions(Parser app, CompileOptions &options) {
  app.addMany("--typical", &options.typical,
              "what a size usually is, which decides how work is laid out; it stays open: seq=128")
      .type(kDimForm);
  app.addMany(
         "--ragged", &options.ragged,
         "rows of a batch have lengths of their own, which an input says, and only they are "
         "computed: batch:seq=lengths (a new input) or batch:seq=attention_mask (one of the model)")
      .type("BATCH:SIZE=INPUT");
  app.add("--ragged-outputs", &options.raggedOutputs,
          "outputs with rows: 'padded' with zeros (default), or 'packed': row after row, and "
          "a last output row_offsets")
      .oneOf({"padded", "packed"});
}

void addCacheOption(Parser app, std::optional<std::string> &folder) {
  app.add("--cache", &folder,
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
}

void withRawOptions(const CompileOptions &options,
                    const std::function<void(const heddle_compile_options_t &)> &use) {
  std::vector<const char *> shapes, functions, typical, inPlace, ragged;
  for (const std::vector<std::string> *texts : {&options.shapes, &options.dims})
    for (const std::string &text : *texts)
      shapes.push_back(text.c_str());
  for (const std::string &function : options.functions)
    functions.push_back(function.c_str());
  for (const std::string &size : options.typical)
    typical.push_back(size.c_str());
  for (const std::string &pair : options.inPlace)
    inPlace.push_back(pair.c_str());
  for (const std::string &text : options.ragged)
    ragged.push_back(text.c_str());
  auto orNull = [](const std::string &text) { return text.empty() ? nullptr : text.c_str(); };
  Progress progress(options.showProgress);
  heddle_compile_options_t raw = {};
  raw.size = sizeof raw;
  raw.target = options.target.c_str();
  if (options.level)
    raw.opt_level = *options.level == 0 ? HEDDLE_OPT_NONE : *options.level;
  raw.shapes = shapes.data();
  raw.shape_count = shapes.size();
  raw.typical = typical.data();
  raw.typical_count = typical.size();
  raw.in_place = inPlace.data();
  raw.in_place_count = inPlace.size();
  raw.ragged = ragged.data();
  raw.ragged_count = ragged.size();
  raw.ragged_outputs = options.raggedOutputs.c_str();
  raw.training = orNull(options.training);
  raw.memory_limit_bytes = options.memory;
  raw.functions = functions.data();
  raw.function_count = functions.size();
  raw.plan = orNull(options.plan);
  raw.schedules = orNull(options.schedules);
  raw.threads = options.threads;
  raw.fold_limit_bytes = options.foldLimit;
  raw.progress = [](void *data, const char *stage, double fraction) {
    static_cast<Progress *>(data)->report(stage, fraction);
  };
  raw.progress_data = &progress;
  raw.without = orNull(options.without);
  raw.profiles = options.profiles;
  raw.records = orNull(options.records);
  raw.cost_model = orNull(options.costModel);
  raw.chooser = orNull(options.chooser);
  raw.math = options.math.c_str();
  raw.subnormals = options.subnormals.c_str();
  raw.jobs = options.jobs;
  raw.cache = options.isUncached ? "" : options.cache ? options.cache->c_str() : nullptr;
  raw.cache_limit_bytes = options.cacheLimit;
  raw.plan_only = options.plansOnly;
  raw.verify_stages = options.verifiesStages;
  raw.print_after = orNull(options.printAfter);
  raw.print = [](void *, const char *stage, const char *text) {
    std::cerr << "// after " << stage << "\n" << text << std::flush;
  };
  use(raw);
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

Module openModel(const std::string &path, const CompileOptions &options) {
  heddle_module_t *module = nullptr;
  if (isArtefact(path)) {
    if (!options.plan.empty() || !options.functions.empty() || !options.schedules.empty() ||
        options.level || options.foldLimit || !options.without.empty() ||
        !options.records.empty() || !options.costModel.empty() || !options.chooser.empty() ||
        options.memory || !options.typical.empty() || options.target != "host" ||
        options.math != "fast" || !options.subnormals.empty())
      failUsage(
          "'" + path +
          "' is an artefact, which is compiled already: --target, -O, --plan, --function, "
          "--records, --cost-model, --chooser, --schedules, --memory, --typical, --fold-limit, "
          "--math, --subnormals and --without are for models");
    check(heddle_module_load(path.c_str(), &module));
  } else {
    check(heddle_compiled_module(compileModel(path, options).get(), &module));
  }
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
