// CachedArtefact: the key of a model, and the note that is beside its artefact.

#include "compiler/api/CachedArtefact.h"

#include "compiler/onnx/Importer.h"
#include "compiler/support/Files.h"
#include "compiler/support/Json.h"
#include "runtime/library/custom.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <sys/stat.h>
#include <thread>

namespace heddle {
namespace {

std::optional<cache::Digest> digestOfFile(const llvm::Twine &path) {
  if (!support::irregularity(path.str()).empty())
    return std::nullopt;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return std::nullopt;
  llvm::StringRef bytes = (*buffer)->getBuffer();
  bool isMapped = (*buffer)->getBufferKind() == llvm::MemoryBuffer::MemoryBuffer_MMap;
  return isMapped ? cache::digestOfMapped(bytes) : cache::digestOf(bytes);
}

/// State of the file that changes when somebody writes to it; "" if there is none.
std::string stateOf(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) || !S_ISREG(status.st_mode))
    return "";
  return (llvm::Twine(status.st_dev) + " " + llvm::Twine(status.st_ino) + " " +
          llvm::Twine(status.st_size) + " " + llvm::Twine(status.st_mtim.tv_sec) + " " +
          llvm::Twine(status.st_mtim.tv_nsec))
      .str();
}

std::string besideModel(const std::string &path, llvm::StringRef location) {
  llvm::SmallString<256> joined(llvm::sys::path::parent_path(path));
  llvm::sys::path::append(joined, location);
  return joined.str().str();
}

template <typename Option> void add(cache::Key &key, const Option &option) {
  if constexpr (requires { key.add(option); }) {
    key.add(option);
  } else {
    key.add(int64_t(option.size()));
    for (const std::string &text : option)
      key.add(text);
  }
}

/// Adds all options but those that change no artefact, and names of files: their bytes count.
void addOptions(cache::Key &key, const CompileOptions &options) {
  const std::set<llvm::StringRef> leftOut = {"plan", "records",   "cost_model",  "functions",
                                             "jobs", "plan_only", "print_after", "verify_stages"};
#define HEDDLE_OPTION(kind, field, member, ...)                                                    \
  if (!leftOut.count(#field))                                                                      \
    add(key, options.member);
#define HEDDLE_LIST(field, count, member, ...) HEDDLE_OPTION(Texts, field, member, )
#include "heddle/compile_options.def"
  key.add(options.optLevel).add(options.keepsSubnormals).add(options.planText);
  key.add(options.kvCacheType);
  key.add(options.isStrict).add(options.areIntegers).add(int64_t(options.shortFloats));
  key.add(int64_t(options.functions.size()));
  for (const auto &[name, bytes] : options.functions)
    key.add(bytes);
  heddle_text_t ops = {};
  heddle_custom_describe(&ops);
  key.add(std::string(ops.data ? ops.data : ""));
  heddle_text_free(&ops);
}

/// The machine decides what "host" and all threads mean. False if there is no such target.
bool addTargets(cache::Key &key, const CompileOptions &options) {
  auto targets = target::targetsFor(options.target, {options.threads, options.isProfiled,
                                                     options.isSanitized, options.keepsSubnormals});
  if (!targets) {
    llvm::consumeError(targets.takeError()); // the pipeline says why
    return false;
  }
  for (const auto &target : *targets)
    key.add(target->fingerprint());
  key.add(int64_t(std::thread::hardware_concurrency()));
  return true;
}

/// SQLite keeps what is new beside the file for a while.
void addRecords(cache::Key &key, const std::string &path) {
  for (const char *suffix : {"", "-wal"})
    if (auto digest = path.empty() ? std::nullopt : digestOfFile(path + suffix))
      key.add(*digest);
    else
      key.add("none");
}

/// Both its content and whether it is used: another version of the compiler may refuse it.
void addCostModel(cache::Key &key, const CompileOptions &options) {
  const std::string &path = options.costModelPath;
  auto digest = path.empty() ? std::nullopt : digestOfFile(path);
  if (digest)
    key.add(*digest);
  else
    key.add("none");
  key.add(options.costModelProblem);
}

} // namespace

std::optional<ModelKey> keyOfModel(const std::string &path, const CompileOptions &options) {
  if (!options.cache || options.plansOnly || !options.scheduleFolders.empty())
    return std::nullopt;
  int64_t now = std::time(nullptr);
  std::string state = stateOf(path);
  auto model = state.empty() ? std::nullopt : digestOfFile(path);
  if (!model)
    return std::nullopt; // the importer says why
  cache::Key key("artefact");
  key.add(*model).add(llvm::sys::path::filename(path));
  addOptions(key, options);
  addRecords(key, options.recordsPath);
  addCostModel(key, options);
  if (!addTargets(key, options))
    return std::nullopt;
  return ModelKey{key.digest(), path, state, now};
}

std::optional<CachedArtefact> findCached(const ModelKey &key, const CompileOptions &options) {
  auto begin = std::chrono::steady_clock::now();
  auto entry = options.cache->open(key.digest);
  if (!entry)
    return std::nullopt;
  Json note = parseJson(entry->note().str());
  if (!note.is_object())
    return std::nullopt;
  std::vector<std::string> files;
  for (const auto &[location, digest] : note.at("files").items()) {
    auto now = digestOfFile(files.emplace_back(besideModel(key.path, location)));
    if (!now || cache::hexOf(*now) != digest.get<std::string>())
      return std::nullopt;
  }
  Json report = note.at("report");
  report["model"] = key.path;
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  report["seconds"] = {{"cache", seconds.count()}};
  report["from_cache"] = true;
  return CachedArtefact{std::move(*entry), note.at("plan").get<std::string>(),
                        report.dump(2, ' ', false, Json::error_handler_t::replace),
                        note.at("header").get<std::string>(), std::move(files)};
}

void keep(const ModelKey &key, const Compiled &compiled, const CompileOptions &options,
          const std::string &artefact) {
  // Kernels in C are what the machine's clang makes of them.
  if (!compiled.program.sources.empty() || stateOf(key.path) != key.state)
    return;
  Json files = Json::object();
  mlir::ModuleOp graph = *compiled.graph;
  if (auto names = graph->getAttrOfType<mlir::ArrayAttr>(onnx::kExternalFiles))
    for (auto location : names.getAsValueRange<mlir::StringAttr>()) {
      std::string file = besideModel(key.path, location);
      struct stat status;
      if (stat(file.c_str(), &status) || status.st_mtim.tv_sec >= key.begun)
        return;
      auto digest = digestOfFile(file);
      if (!digest)
        return;
      files[location.str()] = cache::hexOf(*digest);
    }
  Json note = {{"files", files},
               {"plan", compiled.planJson},
               {"report", parseJson(compiled.reportJson)},
               {"header", compiled.target->backend.header(compiled.program)}};
  options.cache->storeFile(key.digest, artefact,
                           note.dump(-1, ' ', false, Json::error_handler_t::replace));
}

} // namespace heddle
