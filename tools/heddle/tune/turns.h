// Turns: a whole model before and after tuning, timed by turns.
#ifndef HEDDLE_TOOLS_HEDDLE_TUNE_TURNS_H
#define HEDDLE_TOOLS_HEDDLE_TUNE_TURNS_H

#include "tools/heddle/model.h"

#include <functional>

namespace heddle::cli {

/// {"default_seconds", "tuned_seconds", "ratio", "turns"}, or null when it was stopped at once.
/// It ends after `seconds`, of a fast model after some thousand turns.
Json compareModels(const Module &before, const Module &after, int threads, const Feeds &feeds,
                   double seconds, const std::function<bool()> &shouldStop);

} // namespace heddle::cli

#endif
