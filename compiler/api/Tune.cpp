// Tune: heddle_tune over compiler/tuner.

#include "compiler/api/Options.h"
#include "compiler/api/Text.h"
#include "compiler/tuner/Tuner.h"

using namespace heddle;

/// "batch=4" of each.
static llvm::Error readSizes(const heddle_tune_options_t &given, tuner::TuneOptions &options) {
  for (size_t i = 0; i < given.size_count; ++i) {
    auto [name, size] = llvm::StringRef(given.sizes[i]).split('=');
    int64_t number = 0;
    if (name.empty() || size.getAsInteger(10, number) || number < 1)
      return makeError(ErrorCode::Usage, "error: '" + llvm::Twine(given.sizes[i]) +
                                             "' gives no size to measure at; write NAME=SIZE as in "
                                             "batch=4");
    options.sizes[name.str()] = number;
  }
  return llvm::Error::success();
}

/// `what` as a message about the option calls it.
static llvm::Error checkOneOf(llvm::StringRef what, llvm::StringRef value,
                              llvm::ArrayRef<llvm::StringRef> known) {
  if (llvm::is_contained(known, value))
    return llvm::Error::success();
  return makeError(ErrorCode::Usage, "error: there is no " + what + " '" + value +
                                         "'; there are: " + llvm::join(known, ", "));
}

static llvm::Error readPlans(const heddle_tune_options_t &given, tuner::PlanOptions &plans) {
  plans.areTuned = given.plans;
  if (given.strategy)
    plans.strategy = given.strategy;
  llvm::StringRef schedule = given.schedule ? given.schedule : "joint";
  plans.isSequential = schedule == "sequential";
  if (llvm::Error error = checkOneOf("strategy", plans.strategy, {"annealing", "evolution"}))
    return error;
  if (llvm::Error error = checkOneOf("schedule", schedule, {"joint", "sequential"}))
    return error;
  llvm::SmallVector<llvm::StringRef> decided;
  llvm::StringRef(given.decide ? given.decide : "").split(decided, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef each : decided) {
    if (llvm::Error error = checkOneOf("decision", each, {"layouts", "fusion", "split", "knobs"}))
      return error;
    plans.decided.insert(each.str());
  }
  return llvm::Error::success();
}

static llvm::Expected<tuner::TuneOptions> tuneOptionsOf(const heddle_tune_options_t *given) {
  tuner::TuneOptions options;
  if (!given)
    return options;
  if (given->size < sizeof *given)
    return makeError(ErrorCode::Usage, "error: heddle_tune_options_t.size is " +
                                           llvm::Twine(given->size) + ", this library needs " +
                                           llvm::Twine(sizeof *given));
  options.trials = given->trials;
  if (given->seconds > 0)
    options.seconds = given->seconds;
  if (given->trial_seconds > 0)
    options.trialSeconds = given->trial_seconds;
  options.seed = given->seed;
  options.collected = given->collected;
  if (llvm::Error error = readPlans(*given, options.plans))
    return std::move(error);
  if (given->candidates < 0)
    return makeError(ErrorCode::Usage, "error: candidates is " + llvm::Twine(given->candidates) +
                                           ", but must be positive, or 0 for 8");
  if (given->candidates)
    options.candidates = given->candidates;
  if (given->progress)
    options.progress = [report = given->progress, data = given->progress_data](llvm::StringRef what,
                                                                               double fraction) {
      return report(data, what.str().c_str(), fraction) != 0;
    };
  if (llvm::Error error = readSizes(*given, options))
    return std::move(error);
  for (size_t i = 0; i < given->over_count; ++i)
    if (llvm::Error error = tuner::addOver(given->over[i], options.over))
      return std::move(error);
  return options;
}

heddle_status_t *heddle_tune(const char *path, const heddle_compile_options_t *given,
                             const heddle_tune_options_t *tune, heddle_text_t **json) {
  return textOf(json, [&]() -> llvm::Expected<std::string> {
    auto options = optionsOf(given);
    if (!options)
      return options.takeError();
    if (!options->ragged.empty())
      return makeError(ErrorCode::Usage,
                       "error: '--ragged " + options->ragged.front() +
                           "': groups of rows are not tuned yet; tune the model without it: its "
                           "records serve the groups of tokens as well");
    if (options->shortFloats == program::ShortFloats::Emulated)
      return makeError(ErrorCode::Usage,
                       "error: --math bf16-emulated: tuning measures time, and that of emulated "
                       "products says nothing of a machine that has them\nnote: tune without "
                       "--math, or on such a machine with '--math bf16'");
    options->jobs = std::min(options->jobs, 1); // a pool of threads would not survive a fork
    options->cache = nullptr; // a candidate is compiled once, in a process that ends without notice
    if (options->recordsPath.empty())
      return makeError(ErrorCode::Usage, "error: there is no file to keep what is found in"
                                         "\nnote: heddle_compile_options_t.records or "
                                         "HEDDLE_RECORDS names one");
    auto tuneOptions = tuneOptionsOf(tune);
    if (!tuneOptions)
      return tuneOptions.takeError();
    return tuner::tune({path, std::nullopt}, *options, *tuneOptions);
  });
}
