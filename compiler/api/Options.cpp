// Options: heddle_compile_options_t as the pipeline takes them: each row of
// heddle/compile_options.def by its kind, then those that are read by hand.

#include "compiler/api/Options.h"

#include "compiler/api/CostModelFile.h"
#include "compiler/support/Files.h"

#include "llvm/Support/FileSystem.h"

#include <climits>
#include <cstring>

using namespace heddle;

namespace {
/// The values that an option may have.
struct Domain {
  llvm::SmallVector<llvm::StringRef> words = {};
  llvm::StringRef noun = ""; // for one of the words
  int64_t least = 0, most = INT64_MAX;
  const char *variable = nullptr;
};

const Domain any;
Domain range(int64_t least, int64_t most) { return {{}, "", least, most}; }
Domain atLeast(int64_t) { return any; } // 0 is the default, too
Domain variable(const char *name) { return {{}, "", 0, 0, name}; }
template <typename... Words> Domain oneOf(Words... words) { return {{words...}}; }
template <typename... Words> Domain someOf(const char *noun, Words... words) {
  return {{words...}, noun};
}

using Given = heddle_compile_options_t;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

Error checkWord(StringRef noun, StringRef word, const Domain &domain, StringRef list) {
  if (llvm::is_contained(domain.words, word))
    return Error::success();
  return makeError(ErrorCode::Usage, "error: there is no " + noun + " '" + word + "'; " + list +
                                         ": " + llvm::join(domain.words, ", "));
}

Error checkChoice(StringRef field, StringRef given, const Domain &domain) {
  return given.empty() ? Error::success() : checkWord(field, given, domain, "known");
}

Error checkNumber(StringRef field, int64_t given, const Domain &domain) {
  if (given >= domain.least && given <= domain.most)
    return Error::success();
  return makeError(ErrorCode::Usage,
                   "error: " + field + " is " + Twine(given) + ", but must be " +
                       (domain.most == INT64_MAX
                            ? "positive, or 0 for the default"
                            : "from " + Twine(domain.least) + " to " + Twine(domain.most)));
}

StringRef textOr(const char *given, StringRef other = "") { return given ? given : other; }

Error readText(StringRef, const char *given, const Domain &, std::string &option) {
  option = textOr(given, option).str();
  return Error::success();
}
constexpr auto readPath = readText;

Error readChoice(StringRef field, const char *given, const Domain &domain, bool &option) {
  option = textOr(given) == domain.words.back();
  return checkChoice(field, textOr(given), domain);
}

Error readWords(StringRef, const char *given, const Domain &domain, std::set<std::string> &option) {
  llvm::SmallVector<StringRef> words;
  textOr(given).split(words, ',', -1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    if (Error error = checkWord(domain.noun, word, domain, (domain.noun + "s").str()))
      return error;
    option.insert(word.str());
  }
  return Error::success();
}

template <typename Number>
Error readNumber(StringRef field, Number given, const Domain &domain, Number &option) {
  if (given)
    option = given;
  return checkNumber(field, given, domain);
}
constexpr auto readBytes = readNumber<int64_t>;

Error readFlag(StringRef, int given, const Domain &, bool &option) {
  option |= given != 0;
  return Error::success();
}

const Domain &domainOf(StringRef field) {
  static const std::map<StringRef, Domain> domains = {
#define HEDDLE_OPTION(kind, field, member, value, domain, ...) {#field, domain},
#define HEDDLE_OPTION_BY_HAND(kind, field, domain, ...) {#field, domain},
#include "heddle/compile_options.def"
  };
  return domains.at(field);
}

/// Reads the environment for the whole compiler.
std::optional<std::string> environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

/// The value of the variable that stands in for an option.
std::optional<std::string> variableOf(StringRef field) {
  return environment(domainOf(field).variable);
}

/// The options whose members follow from their kinds.
Error readRows(const Given &given, CompileOptions &options) {
#define HEDDLE_OPTION(kind, field, member, ...)                                                    \
  if (Error error = read##kind(#field, given.field, domainOf(#field), options.member))             \
    return error;
#define HEDDLE_LIST(field, count, member, ...)                                                     \
  options.member.assign(given.field, given.field + given.count);
#include "heddle/compile_options.def"
  return Error::success();
}

Error readFiles(const Given &given, CompileOptions &options) {
  if (given.plan) {
    auto buffer = support::readFile("plan", given.plan, support::kMaxTextBytes);
    if (!buffer)
      return buffer.takeError();
    if ((*buffer)->getBuffer().trim().empty())
      return makeError(ErrorCode::Usage, "error: plan '" + Twine(given.plan) +
                                             "' is empty\nnote: 'heddle plan MODEL -o PLAN' "
                                             "writes one");
    options.planText = (*buffer)->getBuffer().str();
  }
  for (const std::string &path : options.functionPaths) {
    auto buffer = support::readFile("functions", path, INT32_MAX);
    if (!buffer)
      return buffer.takeError();
    options.functions.emplace_back(path, (*buffer)->getBuffer().str());
  }
  options.scheduleFolders = foldersOf(given.schedules);
  options.oneDnn = oneDnnFile();
  return Error::success();
}

/// A file that is no cost model of this heddle is a reason to do without, which the report tells.
void useCostModel(CompileOptions &options) {
  const std::string &path = options.costModelPath;
  auto refuse = [&](const Twine &why) {
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

/// Reads who chooses where the plan does not. The environment is a hint: it is left aside if the
/// caller says who is to choose, and a cost model that is not there is no mistake.
Error readChooser(const Given &given, CompileOptions &options) {
  StringRef chooser = textOr(given.chooser);
  if (!chooser.empty() && given.records)
    return makeError(ErrorCode::Usage, "error: chooser '" + chooser +
                                           "' goes by no measurement, but records '" +
                                           given.records + "' are given\nnote: leave one out");
  if (chooser == "rules" && given.cost_model)
    return makeError(ErrorCode::Usage, "error: chooser 'rules' asks no cost model, but '" +
                                           Twine(given.cost_model) +
                                           "' is given\nnote: leave one out");
  if (given.cost_model && !llvm::sys::fs::exists(given.cost_model))
    return makeError(ErrorCode::Usage, "error: cannot read cost model '" + Twine(given.cost_model) +
                                           "': there is no such file");
  if (!given.records && chooser.empty())
    options.recordsPath = variableOf("records").value_or("");
  if (!given.cost_model && chooser != "rules")
    options.costModelPath = variableOf("cost_model").value_or("");
  if (!options.costModelPath.empty())
    useCostModel(options);
  else if (chooser == "learned")
    return makeError(
        ErrorCode::Usage,
        "error: chooser 'learned' needs a cost model"
        "\nnote: --cost-model or HEDDLE_COST_MODEL names its file; 'heddle cost train' "
        "makes one, and 'heddle compile' an artefact of it");
  return Error::success();
}

void readCallbacks(const Given &given, CompileOptions &options) {
  if (given.progress)
    options.progress = [report = given.progress, data = given.progress_data](StringRef stage,
                                                                             double fraction) {
      report(data, stage.str().c_str(), fraction);
    };
  if (given.print)
    options.print = [print = given.print, data = given.print_data](StringRef stage,
                                                                   StringRef text) {
      print(data, stage.str().c_str(), text.str().c_str());
    };
  else
    options.printAfter.clear();
}

Error readByHand(const Given &given, CompileOptions &options) {
  if (given.opt_level != HEDDLE_OPT_NONE)
    if (Error error = checkNumber("opt_level", given.opt_level, domainOf("opt_level")))
      return error;
  if (given.opt_level)
    options.optLevel = std::max(given.opt_level, 0);
  if (Error error = checkChoice("chooser", textOr(given.chooser), domainOf("chooser")))
    return error;
  StringRef math = textOr(given.math);
  if (Error error = checkChoice("math", math, domainOf("math")))
    return error;
  options.isStrict = math == "strict";
  options.areIntegers = math == "int8";
  if (options.areIntegers && !textOr(given.training).empty())
    return makeError(ErrorCode::Usage,
                     "error: '--math int8' takes products with constant weights, but a step of "
                     "training changes its weights; 'bf16' is for both, and 'heddle quantize "
                     "--finetune' trains a model of 8 bits");
  options.shortFloats = math == "bf16"            ? program::ShortFloats::Native
                        : math == "bf16-emulated" ? program::ShortFloats::Emulated
                                                  : program::ShortFloats::None;
  if (Error error = checkChoice("subnormals", textOr(given.subnormals), domainOf("subnormals")))
    return error;
  options.keepsSubnormals = textOr(given.subnormals, options.isStrict ? "keep" : "") == "keep";
  if (options.packsRows && options.ragged.empty())
    return makeError(ErrorCode::Usage, "error: packed outputs are those of rows with lengths of "
                                       "their own, which '--ragged' declares");
  options.kvCacheType = textOr(given.kv_cache_type).str();
  if (Error error = checkChoice("kv_cache_type", options.kvCacheType, domainOf("kv_cache_type")))
    return error;
  if (!options.kvCacheType.empty() && !options.kvCache)
    return makeError(ErrorCode::Usage,
                     "error: '--kv-cache-type' is for buffers of keys and values, "
                     "for which '--kv-cache' makes room");
  options.cache = cacheOf(given.cache, given.cache_limit_bytes);
  readCallbacks(given, options);
  return Error::success();
}
} // namespace

std::vector<std::string> heddle::foldersOf(const char *schedules) {
  std::string listed = variableOf("schedules").value_or("");
  llvm::SmallVector<StringRef> folders;
  StringRef(listed).split(folders, ':', -1, /*KeepEmpty=*/false);
  std::vector<std::string> all(folders.begin(), folders.end());
  if (schedules)
    all.push_back(schedules);
  return all;
}

std::string heddle::oneDnnFile() { return environment("HEDDLE_ONEDNN").value_or(""); }

std::shared_ptr<cache::Cache> heddle::cacheOf(const char *folder, int64_t limitBytes) {
  std::optional<std::string> named = folder ? folder : variableOf("cache");
  std::string path = named ? *named : cache::defaultFolder();
  return path.empty() ? nullptr
                      : std::make_shared<cache::Cache>(
                            path, limitBytes > 0 ? limitBytes : cache::kDefaultLimitBytes);
}

llvm::Expected<CompileOptions> heddle::optionsOf(const heddle_compile_options_t *caller) {
  // A caller of an earlier version knows fewer fields, one of a later version more.
  constexpr size_t oldest = offsetof(Given, without);
  Given given = {};
  if (caller && caller->size < oldest)
    return makeError(ErrorCode::Usage, "error: heddle_compile_options_t.size is " +
                                           Twine(caller->size) + ", but must be at least " +
                                           Twine(oldest));
  if (caller)
    std::memcpy(&given, caller, std::min(caller->size, sizeof given));
  CompileOptions options;
  for (auto read : {readRows, readByHand, readFiles, readChooser})
    if (llvm::Error error = read(given, options))
      return std::move(error);
  return options;
}
