// Cost: heddle_cost_features over compiler/learn.

#include "compiler/api/Text.h"
#include "compiler/learn/Corpus.h"
#include "compiler/target/Backend.h"

using namespace heddle;

/// Targets by name; any other text is the identity that records have, of a machine whose name is
/// not known here.
static llvm::Expected<learn::Measured> measuredOf(llvm::StringRef target, int threads) {
  learn::Measured measured;
  if (threads < 0)
    return makeError(ErrorCode::Usage, "error: " + llvm::Twine(threads) + " threads");
  if (threads > 0)
    measured.threads = threads;
  auto named = target::targetFor(target.empty() ? "host" : target);
  if (!named) {
    llvm::consumeError(named.takeError());
    measured.target = target.str();
    return measured;
  }
  measured.target = (*named)->identity;
  if ((*named)->whyNotHere().empty())
    measured.machine = (*named)->machine(std::max(1, threads));
  return measured;
}

heddle_status_t *heddle_cost_features(const char *records, const char *target, int threads,
                                      heddle_text_t **json) {
  return textOf(json, [&]() -> llvm::Expected<std::string> {
    auto measured = measuredOf(target ? target : "", threads);
    if (!measured)
      return measured.takeError();
    return learn::featuresJson(records, *measured);
  });
}
