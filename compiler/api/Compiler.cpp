// Compiler: include/heddle/compiler.h over the pipeline. No exception and no LLVM error crosses it.

#include "compiler/api/CachedArtefact.h"
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

/// A compiled model, or one found in the cache. Parts that the cache does not hold are compiled on
/// demand.
struct heddle_compiled {
  CompileOptions options;
  std::optional<ModelKey> key; // key of the artefact in the cache, now or later
  mutable std::optional<CachedArtefact> cached;
  mutable std::atomic<bool> isCached{false};  // there is `cached`
  mutable std::atomic<bool> isDamaged{false}; // the cached artefact is: compile anew
  mutable bool isSound = false;               // all of what was cached has been read
  mutable std::mutex mutex;
  mutable std::unique_ptr<Compiled> compiled; // null if it was cached and nobody asked for more
  mutable std::map<std::string, std::string> explanations; // by the requested run
  pid_t process = getpid();

  ~heddle_compiled() { letGo(); }
  /// Drops the model; leaks it in a child by fork, which lacks LLVM's threads that it would wait
  /// for.
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

  /// The cached artefact, unless damaged.
  const CachedArtefact *fromCache() const { return isCached && !isDamaged ? &*cached : nullptr; }
  /// Keeps the artefact of a model compiled for a run in this process: then its weights are mapped
  /// and shared between processes, and all memory of the compilation is let go.
  void settle() const;
  void dropCached() const {
    options.cache->remove(key->digest);
    isDamaged = true;
  }
  /// The cached artefact if its bytes are as stored; else null, and it is dropped.
  const CachedArtefact *soundCached() const {
    std::lock_guard<std::mutex> lock(mutex);
    const CachedArtefact *found = fromCache();
    if (!found || isSound || (isSound = found->entry.isSound()))
      return found;
    dropCached();
    return nullptr;
  }
  /// Text of `heddle_compiled_report` and `heddle_compiled_plan`.
  const std::string &told(std::string CachedArtefact::*ofCached,
                          std::string Compiled::*ofCompiled) const {
    std::lock_guard<std::mutex> lock(mutex);
    const CachedArtefact *found = fromCache();
    return found ? found->*ofCached : compiled.get()->*ofCompiled;
  }

  /// True if the cache has this form of the model, which is written then.
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

/// The error that the runtime reports of a program that it was given.
static llvm::Error errorOf(heddle_status_t *status) {
  std::string message = heddle_status_message(status);
  heddle_code_t code = heddle_status_code(status);
  heddle_status_destroy(status);
  return makeError(code == HEDDLE_USAGE     ? ErrorCode::Usage
                   : code == HEDDLE_REFUSED ? ErrorCode::Refused
                   : code == HEDDLE_LIMIT   ? ErrorCode::Limit
                                            : ErrorCode::Internal,
                   message);
}

namespace {
/// The devices that a form needs, as the runtime asks for them before there is an executable.
struct DevicesOf {
  explicit DevicesOf(const Compiled *form) {
    for (const program::Device &device : form->program.devices) {
      std::vector<heddle_device_image_t> &all = images.emplace_back();
      for (const program::DeviceImage &image : device.images)
        all.push_back({image.chip.c_str(), image.bytes.c_str(),
                       static_cast<int64_t>(image.bytes.size()), image.isText});
      heddle_device_t described{};
      described.space = device.space.c_str();
      described.images = all.data();
      described.image_count = all.size();
      devices.push_back(described);
    }
    executable.devices = devices.data();
    executable.device_count = devices.size();
  }

  std::vector<std::vector<heddle_device_image_t>> images;
  std::vector<heddle_device_t> devices;
  heddle_executable_t executable{};
};
} // namespace

/// The variant of the model that this machine runs.
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
  std::vector<DevicesOf> devices(forms.begin(), forms.end());
  std::vector<heddle_variant_t> variants;
  for (size_t i = 0; i < forms.size(); ++i)
    variants.push_back(
        {forms[i]->target->name.c_str(), features[i].c_str(), &devices[i].executable});
  int64_t chosen = 0;
  heddle_status_t *status = heddle_variants_choose(variants.data(), variants.size(),
                                                   compiled.program.model.c_str(), &chosen);
  if (!status)
    return forms[chosen];
  return errorOf(status);
}

void heddle_compiled::settle() const {
  std::lock_guard<std::mutex> lock(mutex);
  if (!key || cached || !compiled)
    return;
  // Errors are reported by the caller that loads it.
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
    if (made->key && !showsStages) // cached models have none
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
    return errorOf(status);
  });
}

heddle_status_t *heddle_compiled_kept(const heddle_compiled_t *compiled, heddle_text_t **json) {
  return textOf(json, [&]() -> llvm::Expected<std::string> {
    compiled->settle();
    Json kept;
    if (const CachedArtefact *found = compiled->soundCached())
      kept = {{"path", compiled->options.cache->pathOf(compiled->key->digest)},
              {"files", found->files}};
    else if (auto whole = compiled->whole(); !whole) // recompiles a damaged one
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
