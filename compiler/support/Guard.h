// Guard: work in a process of its own, which may crash or never end without harm.
#ifndef HEDDLE_SUPPORT_GUARD_H
#define HEDDLE_SUPPORT_GUARD_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <string>

namespace heddle::support {

struct Outcome {
  std::string result;  // the work's result
  std::string failure; // why it returned nothing
  bool isTimeout = false, isStopped = false;
  bool hasDied = false; // without an answer, and not since it was killed
};

/// Forks, and calls `work` in the child; what it knows it has from this process's memory. Killed
/// after `seconds`, or when `shouldStop` says so, which is asked ten times a second. The caller has
/// no other threads: one that held a lock would leave it held in the child for ever.
Outcome guarded(llvm::function_ref<llvm::Expected<std::string>()> work, double seconds,
                llvm::function_ref<bool()> shouldStop);

/// Number of threads of this process.
int64_t countThreads();

} // namespace heddle::support

#endif // HEDDLE_SUPPORT_GUARD_H
