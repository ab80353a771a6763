// Check: the proof of a card: what it makes of its example, against the reference interpreter.
#ifndef HEDDLE_CARDS_CHECK_H
#define HEDDLE_CARDS_CHECK_H

#include "compiler/cards/Trial.h"
#include "compiler/plan/Plan.h"

namespace heddle::cards {

struct CheckOptions {
  int64_t count = 24; // cases: sizes and knobs
  uint32_t seed = 1;
  int64_t seconds = 30;    // limit of one run of a kernel
  std::string oneDnn = ""; // as CompileOptions has it
};

/// The first case whose numbers are wrong.
struct Difference {
  std::string group, what;
  Sizes sizes;
  warehouse::KnobValues knobs;
  std::vector<plan::Version> versions;
  bool isFixed = false; // compiled for these sizes alone
};

struct Proof {
  std::string card, path, mechanism;
  std::vector<std::string> groups;
  int64_t cases = 0, kernels = 0, carriedOut = 0;
  std::string caught;              // the mutation that was noticed
  std::vector<std::string> missed; // those that were not, tried before it
  std::optional<Difference> difference;
  double seconds = 0;

  std::string json() const;
};

/// An error when the card is refused, or when its example proves nothing. Numbers that differ are
/// in the proof.
llvm::Expected<Proof> check(llvm::StringRef path, const CheckOptions &options);
/// Proves a card that is no file; `path` is in messages, and the input is sought beside it.
llvm::Expected<Proof> checkText(llvm::StringRef text, llvm::StringRef path,
                                const CheckOptions &options);

} // namespace heddle::cards

#endif // HEDDLE_CARDS_CHECK_H
