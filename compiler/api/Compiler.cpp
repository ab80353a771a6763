// Compiler: include/heddle/compiler.h over the pipeline. No exception and no LLVM error crosses it.

#include "compiler/api/CachedArtefact.h"
#include "compiler/api/CostModelFile.h"
#include "compiler/api/Options.h"
#include "compiler/api/Status.h"
#include "compiler/api/Text.h"
#include "compiler/onnx/Importer.h"
#include "compiler/pipeline/Explain.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/support/Files.h"
#include "compiler/support/Json.h"
#include "compiler/support/Mapped.h"

#include "heddle/compiler.h"
#include "runtime/executable/variants.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <cstring>
#include <fstream>
#include <malloc.h>
#include <mutex>
#include <unistd.h>

using namespace heddle;

/// What was compiled, or found in the cache. What the cache does not hold of a model is compiled
/// when it is asked for.
struct heddle_compiled {
  CompileOptions options;
  std::optional<ModelKey> key; // where the artefact is cached, or will be
  mutable std::optional<CachedArtefact> cached;
  mutable std::atomic<bool> isCached{false};  // there is `cached`
  mutable std::atomic<bool> isDamaged{false}; // what was cached: it is compiled anew then
  mutable bool isSound = false;               // all of what was cached has been read
  mutable std::mutex mutex;
  mutable std::unique_ptr<Compiled> compiled; // null where it was cached and nobody asked for more
  mutable std::map<std::string, std::string> explanations; // of runs that were asked for
  pid_t process = getpid();

  ~heddle_compiled() { letGo(); }
  /// In a child by fork it is left as it is: there are none of LLVM's threads, for which it waits.
  void letGo() const {
    if (process == getpid())
      compiled.reset();
    (void)compiled.release();
  }

  llvm::Expected<const Compiled *> whole() const {
    std::lock_guard<std::mutex> lock(mutex);
    if (!compiled) {
      auto made = compile({key->path, std::nullopt}, options);
      if (!made)
        return made.takeError();
      compiled = std::move(*made);
    }
    return compiled.get();
  }

  /// What was cached, while it is what this stands for.
  const CachedArtefact *fromCache() const { return isCached && !isDamaged ? &*cached : nullptr; }
  /// Keeps the artefact of what was compiled for a run in this process: then its weights are mapped
  /// and shared between processes, and all that compiling has taken is let go.
  void settle() const;
  void dropCached() const {
    options.cache->remove(key->digest);
    isDamaged = true;
  }
  /// What was cached, whose bytes are what was stored; null, and dropped, where they are not.
  const CachedArtefact *soundCached() const {
    std::lock_guard<std::mutex> lock(mutex);
    const CachedArtefact *found = fromCache();
    if (!found || isSound || (isSound = found->entry.isSound()))
      return found;
    dropCached();
    return nullptr;
  }
  /// What `heddle_compiled_report` and `heddle_compiled_plan` tell.
  const std::string &told(std::string CachedArtefact::*ofCached,
                          std::string Compiled::*ofCompiled) const {
    std::lock_guard<std::mutex> lock(mutex);
    const CachedArtefact *found = fromCache();
    return found ? found->*ofCached : compiled.get()->*ofCompiled;
  }

  /// True where the cache has this form of the model, which is written then.
  llvm::Expected<bool> writeCached(llvm::StringRef kind, const std::string &path) const;
  llvm::Error write(llvm::StringRef kind, const std::string &path) const;
};

llvm::Expected<bool> heddle_compiled::writeCached(llvm::StringRef kind,
                                                  const std::string &path) const {
  if (!fromCache() || !llvm::is_contained({"so", "h", "plan"}, kind))
    return false;
  if (kind != "so") {
    if (llvm::Error error =
            support::writeFile(path, kind == "h" ? cached->header : cached->planJson))
      return std::move(error);
    return true;
  }
  auto place = support::Workplace::beside(path);
  if (!place)
    return place.takeError();
  int failure = cached->entry.copyTo((*place)->file("artefact"));
  if (failure == EBADMSG) {
    dropCached();
    return false;
  }
  if (failure)
    return support::writeError(path, failure);
  if (llvm::Error error = (*place)->publish("artefact"))
    return std::move(error);
  return true;
}

llvm::Error heddle_compiled::write(llvm::StringRef kind, const std::string &path) const {
  auto isDone = writeCached(kind, path);
  if (!isDone || *isDone)
    return isDone.takeError();
  auto made = whole();
  if (!made)
    return made.takeError();
  if (llvm::Error error = writeKind(**made, options.threads, kind, path))
    return error;
  if (kind == "so" && key)
    keep(*key, **made, options, path);
  return llvm::Error::success();
}

std::shared_ptr<cache::Cache> heddle::cacheOf(const char *folder, int64_t limitBytes) {
  std::string path = folder ? folder : cache::defaultFolder();
  return path.empty() ? nullptr
                      : std::make_shared<cache::Cache>(
                            path, limitBytes > 0 ? limitBytes : cache::kDefaultLimitBytes);
}

/// The stages after which the caller wants to see what there is.
static llvm::Error readPrinting(const heddle_compile_options_t &given, CompileOptions &options) {
  if (!given.print_after || !given.print)
    return llvm::Error::success();
  llvm::SmallVector<llvm::StringRef> stages;
  llvm::StringRef(given.print_after).split(stages, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef stage : stages) {
    if (!llvm::is_contained(stageNames(), stage))
      return makeError(ErrorCode::Usage, "error: there is no stage '" + stage +
                                             "'; stages: " + llvm::join(stageNames(), ", "));
    options.printAfter.insert(stage.str());
  }
  options.print = [print = given.print, data = given.print_data](llvm::StringRef stage,
                                                                 llvm::StringRef text) {
    print(data, stage.str().c_str(), text.str().c_str());
  };
  return llvm::Error::success();
}

static llvm::Error readRaggedOutputs(const heddle_compile_options_t &given,
                                     CompileOptions &options) {
  llvm::StringRef outputs = given.ragged_outputs ? given.ragged_outputs : "padded";
  if (outputs != "padded" && outputs != "packed")
    return makeError(ErrorCode::Usage, "error: ragged_outputs is '" + outputs +
                                           "', but must be 'padded' or 'packed'");
  options.packsRows = outputs == "packed";
  if (options.packsRows && options.ragged.empty())
    return makeError(ErrorCode::Usage, "error: packed outputs are those of rows with lengths of "
                                       "their own, which '--ragged' declares");
  return llvm::Error::success();
}

static llvm::Error readLayers(llvm::StringRef without, CompileOptions &options) {
  llvm::SmallVector<llvm::StringRef> layers;
  without.split(layers, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef layer : layers) {
    if (!llvm::is_contained(
            {"cards", "fusion", "stitch", "siblings", "regions", "feedback", "recomputation"},
            layer))
      return makeError(ErrorCode::Usage,
                       "error: there is no layer '" + layer +
                           "' to leave out; layers: cards (what cards claim as a whole), fusion "
                           "(of the rest), stitch (products and the reductions over their rows), "
                           "siblings (groups that walk the same elements become one), "
                           "regions (groups that are launched at once), feedback (groups that "
                           "are split again since their kernel does not pay), recomputation "
                           "(of what steps of training need not keep)");
    options.without.insert(layer.str());
  }
  return llvm::Error::success();
}

/// A file that is no cost model of this heddle is a reason to do without, which the report tells.
static void readCostModel(llvm::StringRef path, CompileOptions &options) {
  options.costModelPath = path.str();
  auto refuse = [&](const llvm::Twine &why) {
    options.costModelProblem = ("'" + path + "' is no cost model of this heddle: " + why).str();
  };
  if (!llvm::sys::fs::exists(path)) {
    refuse("there is no such file");
    return;
  }
  auto model = loadCostModel(path);
  if (model)
    options.costModel = std::move(*model);
  else
    refuse(llvm::toString(model.takeError()));
}

static llvm::StringRef environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

/// Who chooses where the plan does not. What the environment names is a hint: it is left aside
/// where the caller says who is to choose, and a cost model that is not there is no mistake.
static llvm::Error readChooser(const heddle_compile_options_t &given, CompileOptions &options) {
  llvm::StringRef chooser = given.chooser ? given.chooser : "";
  if (!llvm::is_contained({"", "learned", "rules"}, chooser))
    return makeError(ErrorCode::Usage,
                     "error: there is no chooser '" + chooser + "'; known: learned, rules");
  if (!chooser.empty() && given.records)
    return makeError(ErrorCode::Usage, "error: chooser '" + chooser +
                                           "' goes by no measurement, but records '" +
                                           given.records + "' are given\nnote: leave one out");
  if (chooser == "rules" && given.cost_model)
    return makeError(ErrorCode::Usage, "error: chooser 'rules' asks no cost model, but '" +
                                           llvm::Twine(given.cost_model) +
                                           "' is given\nnote: leave one out");
  if (given.cost_model && !llvm::sys::fs::exists(given.cost_model))
    return makeError(ErrorCode::Usage, "error: cannot read cost model '" +
                                           llvm::Twine(given.cost_model) +
                                           "': there is no such file");
  if (given.records)
    options.recordsPath = given.records;
  else if (chooser.empty())
    options.recordsPath = environment("HEDDLE_RECORDS").str();
  llvm::StringRef model = given.cost_model     ? given.cost_model
                          : chooser == "rules" ? ""
                                               : environment("HEDDLE_COST_MODEL");
  if (!model.empty())
    readCostModel(model, options);
  else if (chooser == "learned")
    return makeError(
        ErrorCode::Usage,
        "error: chooser 'learned' needs a cost model"
        "\nnote: --cost-model or HEDDLE_COST_MODEL names its file; 'heddle cost train' "
        "makes one, and 'heddle compile' an artefact of it");
  return llvm::Error::success();
}

llvm::Expected<CompileOptions> heddle::optionsOf(const heddle_compile_options_t *caller) {
  CompileOptions options;
  if (!caller) {
    options.cache = cacheOf(nullptr, 0);
    if (llvm::Error error = readChooser({}, options))
      return std::move(error);
    return options;
  }
  // A caller of an earlier version knows fewer fields, one of a later version more.
  constexpr size_t oldest = offsetof(heddle_compile_options_t, without);
  if (caller->size < oldest)
    return makeError(ErrorCode::Usage, "error: heddle_compile_options_t.size is " +
                                           llvm::Twine(caller->size) + ", but must be at least " +
                                           llvm::Twine(oldest));
  heddle_compile_options_t known = {};
  std::memcpy(&known, caller, std::min(caller->size, sizeof known));
  const heddle_compile_options_t *given = &known;
  options.isProfiled = given->profiles;
  if (given->target)
    options.target = given->target;
  if (given->opt_level < HEDDLE_OPT_NONE || given->opt_level > 3)
    return makeError(ErrorCode::Usage, "error: opt_level is " + llvm::Twine(given->opt_level) +
                                           ", but must be HEDDLE_OPT_NONE or from 0 to 3");
  if (given->opt_level)
    options.optLevel = std::max(given->opt_level, 0);
  for (size_t i = 0; i < given->shape_count; ++i)
    options.shapes.push_back(given->shapes[i]);
  for (size_t i = 0; i < given->typical_count; ++i)
    options.typical.push_back(given->typical[i]);
  for (size_t i = 0; i < given->in_place_count; ++i)
    options.inPlace.push_back(given->in_place[i]);
  for (size_t i = 0; i < given->ragged_count; ++i)
    options.ragged.push_back(given->ragged[i]);
  if (llvm::Error error = readRaggedOutputs(*given, options))
    return std::move(error);
  if (given->training)
    options.training = given->training;
  if (given->memory_limit_bytes < 0)
    return makeError(ErrorCode::Usage, "error: memory_limit_bytes is " +
                                           llvm::Twine(given->memory_limit_bytes) +
                                           ", but must be positive, or 0 for no limit");
  options.memoryLimitBytes = given->memory_limit_bytes;
  if (given->plan) {
    auto buffer = support::readFile("plan", given->plan, support::kMaxTextBytes);
    if (!buffer)
      return buffer.takeError();
    if ((*buffer)->getBuffer().trim().empty())
      return makeError(ErrorCode::Usage, "error: plan '" + llvm::Twine(given->plan) +
                                             "' is empty\nnote: 'heddle plan MODEL -o PLAN' "
                                             "writes one");
    options.planText = (*buffer)->getBuffer().str();
    options.planPath = given->plan;
  }
  for (size_t i = 0; i < given->function_count; ++i) {
    auto buffer = support::readFile("functions", given->functions[i], INT32_MAX);
    if (!buffer)
      return buffer.takeError();
    options.functions.emplace_back(given->functions[i], (*buffer)->getBuffer().str());
  }
  if (llvm::Error error = readChooser(*given, options))
    return std::move(error);
  if (given->schedules)
    options.scheduleFolders.push_back(given->schedules);
  options.threads = given->threads;
  if (given->fold_limit_bytes)
    options.foldLimitBytes = given->fold_limit_bytes;
  if (given->without)
    if (llvm::Error error = readLayers(given->without, options))
      return std::move(error);
  if (given->math && llvm::StringRef(given->math) != "fast") {
    if (llvm::StringRef(given->math) != "strict")
      return makeError(ErrorCode::Usage, "error: there is no math '" + llvm::Twine(given->math) +
                                             "'; known: fast, strict");
    options.isStrict = true;
  }
  llvm::StringRef subnormals = given->subnormals ? given->subnormals : "";
  if (!subnormals.empty() && subnormals != "keep" && subnormals != "flush")
    return makeError(ErrorCode::Usage,
                     "error: subnormals are '" + subnormals + "', but must be keep or flush");
  options.keepsSubnormals = subnormals.empty() ? options.isStrict : subnormals == "keep";
  if (llvm::Error error = readPrinting(*given, options))
    return std::move(error);
  options.jobs = given->jobs;
  options.plansOnly = given->plan_only;
  options.verifiesStages |= given->verify_stages != 0;
  options.cache = cacheOf(given->cache, given->cache_limit_bytes);
  if (given->progress)
    options.progress = [report = given->progress,
                        data = given->progress_data](llvm::StringRef stage, double fraction) {
      report(data, stage.str().c_str(), fraction);
    };
  return options;
}

/// Of the targets that the model is compiled for, what this machine runs.
static llvm::Expected<const Compiled *> formForThisMachine(const Compiled &compiled) {
  if (llvm::Error error = target::checkRunsHere(*compiled.target, compiled.program.model))
    return std::move(error);
  if (compiled.variants.empty())
    return &compiled; // the runtime says what this machine lacks
  std::vector<const Compiled *> forms{&compiled};
  for (const std::unique_ptr<Compiled> &variant : compiled.variants)
    forms.push_back(variant.get());
  std::vector<std::string> features;
  for (const Compiled *form : forms)
    features.push_back(llvm::join(form->target->required(), ","));
  std::vector<heddle_variant_t> variants;
  for (size_t i = 0; i < forms.size(); ++i)
    variants.push_back({forms[i]->target->name.c_str(), features[i].c_str()});
  int64_t chosen = 0;
  heddle_status_t *status = heddle_variants_choose(variants.data(), variants.size(),
                                                   compiled.program.model.c_str(), &chosen);
  if (!status)
    return forms[chosen];
  auto code = heddle_status_code(status) == HEDDLE_USAGE ? ErrorCode::Usage : ErrorCode::Refused;
  std::string message = heddle_status_message(status);
  heddle_status_destroy(status);
  return makeError(code, message);
}

void heddle_compiled::settle() const {
  std::lock_guard<std::mutex> lock(mutex);
  if (!key || cached || !compiled)
    return;
  // What is wrong is said by who loads it.
  auto forget = [](llvm::Error error) { llvm::consumeError(std::move(error)); };
  if (auto form = formForThisMachine(*compiled); !form)
    return forget(form.takeError());
  llvm::SmallString<128> path;
  if (llvm::sys::fs::createTemporaryFile("heddle", "so", path))
    return;
  llvm::FileRemover remover(path);
  if (llvm::Error error = writeKind(*compiled, options.threads, "so", path))
    return forget(std::move(error));
  keep(*key, *compiled, options, path.str().str());
  auto found = findCached(*key, options);
  if (!found)
    return;
  // Moved, since callers may hold their characters.
  found->planJson = std::move(compiled->planJson);
  found->reportJson = std::move(compiled->reportJson);
  cached.emplace(std::move(*found));
  isCached = true;
  letGo();
  malloc_trim(0);
  support::letCodeGo();
}

static heddle_status_t *compileSource(const ModelSource &source,
                                      const heddle_compile_options_t *given,
                                      heddle_compiled_t **result) {
  *result = nullptr;
  return guarded([&]() -> llvm::Error {
    auto options = optionsOf(given);
    if (!options)
      return options.takeError();
    auto made = std::make_unique<heddle_compiled>();
    made->options = std::move(*options);
    if (!source.bytes)
      made->key = keyOfModel(source.path, made->options);
    bool showsStages = !made->options.printAfter.empty() || (given && given->verify_stages);
    if (made->key && !showsStages) // what is cached has none
      if (auto found = findCached(*made->key, made->options))
        made->cached.emplace(std::move(*found));
    made->isCached = made->cached.has_value();
    if (!made->cached) {
      auto compiled = compile(source, made->options);
      if (!compiled)
        return compiled.takeError();
      made->compiled = std::move(*compiled);
    }
    made->options.progress = nullptr; // the caller's are for this call
    made->options.printAfter.clear();
    *result = made.release();
    return llvm::Error::success();
  });
}

extern "C" {

heddle_status_t *heddle_compile_options_check(const heddle_compile_options_t *given) {
  return guarded([&]() -> llvm::Error {
    auto options = optionsOf(given);
    return options ? checkOptions(*options) : options.takeError();
  });
}

heddle_status_t *heddle_compile(const char *path, const heddle_compile_options_t *options,
                                heddle_compiled_t **compiled) {
  return compileSource({path, std::nullopt}, options, compiled);
}

heddle_status_t *heddle_compile_bytes(const void *model, size_t bytes, const char *name,
                                      const heddle_compile_options_t *options,
                                      heddle_compiled_t **compiled) {
  llvm::ArrayRef<char> content(static_cast<const char *>(model), bytes);
  return compileSource({name ? name : "model", content}, options, compiled);
}

void heddle_compiled_destroy(heddle_compiled_t *compiled) { delete compiled; }

heddle_status_t *heddle_compiled_module(const heddle_compiled_t *compiled,
                                        heddle_module_t **module) {
  *module = nullptr;
  return guarded([&]() -> llvm::Error {
    compiled->settle();
    if (compiled->soundCached()) {
      std::string path = compiled->options.cache->pathOf(compiled->key->digest);
      heddle_status_t *status = heddle_module_load(path.c_str(), module);
      if (!status)
        return llvm::Error::success();
      heddle_status_destroy(status); // another process may have removed it
    }
    auto whole = compiled->whole();
    if (!whole)
      return whole.takeError();
    if ((*whole)->plansOnly)
      return makeError(ErrorCode::Usage, "error: the model was only planned (plan_only), so there "
                                         "is nothing to run");
    auto form = formForThisMachine(**whole);
    if (!form)
      return form.takeError();
    const Compiled &made = **form;
    auto loaded = made.code->load(made.program);
    if (!loaded)
      return loaded.takeError();
    auto *keeper = new std::shared_ptr<target::LoadedProgram>(*loaded);
    auto release = [](void *data) {
      delete static_cast<std::shared_ptr<target::LoadedProgram> *>(data);
    };
    heddle_status_t *status =
        heddle_module_from_executable((*loaded)->executable(), release, keeper, module);
    if (!status)
      return llvm::Error::success();
    release(keeper);
    std::string message = heddle_status_message(status);
    heddle_status_destroy(status);
    return makeError(ErrorCode::Internal, message);
  });
}

heddle_status_t *heddle_compiled_kept(const heddle_compiled_t *compiled, heddle_text_t **json) {
  return textOf(json, [&]() -> llvm::Expected<std::string> {
    compiled->settle();
    Json kept;
    if (const CachedArtefact *found = compiled->soundCached())
      kept = {{"path", compiled->options.cache->pathOf(compiled->key->digest)},
              {"files", found->files}};
    else if (auto whole = compiled->whole(); !whole) // of what was damaged
      return whole.takeError();
    return kept.dump(-1, ' ', false, Json::error_handler_t::replace);
  });
}

const char *heddle_compiled_plan(const heddle_compiled_t *compiled) {
  return compiled->told(&CachedArtefact::planJson, &Compiled::planJson).c_str();
}

const char *heddle_compiled_report(const heddle_compiled_t *compiled) {
  return compiled->told(&CachedArtefact::reportJson, &Compiled::reportJson).c_str();
}

heddle_status_t *heddle_compiled_explain(const heddle_compiled_t *compiled, const char **json) {
  return heddle_compiled_explain_run(compiled, nullptr, 0, nullptr, 0, json);
}

heddle_status_t *heddle_compiled_explain_run(const heddle_compiled_t *compiled,
                                             const char *const *sizes, size_t size_count,
                                             const int64_t *lengths, size_t length_count,
                                             const char **json) {
  return guarded([&]() -> llvm::Error {
    RunSizes run;
    std::string key;
    run.lengths.assign(lengths, lengths + length_count);
    for (size_t i = 0; i < size_count; ++i) {
      auto [name, size] = llvm::StringRef(sizes[i]).split('=');
      if (name.empty() || size.getAsInteger(10, run.symbols[name.str()]))
        return makeError(ErrorCode::Usage, "error: the size '" + llvm::Twine(sizes[i]) +
                                               "' must be of the form batch=4");
      key += sizes[i] + std::string(" ");
    }
    for (int64_t length : run.lengths)
      key += std::to_string(length) + ",";
    auto whole = compiled->whole();
    if (!whole)
      return whole.takeError();
    std::lock_guard<std::mutex> lock(compiled->mutex);
    auto known = compiled->explanations.find(key);
    if (known == compiled->explanations.end()) {
      auto text = explain(**whole, run);
      if (!text)
        return text.takeError();
      known = compiled->explanations.emplace(std::move(key), std::move(*text)).first;
    }
    *json = known->second.c_str();
    return llvm::Error::success();
  });
}

heddle_status_t *heddle_compiled_write(const heddle_compiled_t *compiled, const char *kind,
                                       const char *path) {
  return guarded([&]() -> llvm::Error { return compiled->write(kind, path); });
}

const char *heddle_support_table(void) {
  static const std::string table = onnx::supportTable();
  return table.c_str();
}

} // extern "C"
