// Comparison: how fast a program is beside another one that does the same, run by turns, so that a
// machine that slows down slows down both.
#ifndef HEDDLE_TRIAL_COMPARISON_H
#define HEDDLE_TRIAL_COMPARISON_H

#include "compiler/trial/Program.h"

namespace heddle::trial {

struct Timing {
  double seconds = 0;     // median of one run in a round's quiet turns; the least of all rounds
  double baseSeconds = 0; // the other program's
  double speedup = 1;     // the median of those turns' base by own; of rounds the median
};

struct Effort {
  double seconds; // limit of timing, in each of
  int64_t rounds; // with the programs in other memory
  int64_t turns;  // least number in a round
  bool isFinal;   // else what is hopelessly slow is given up after three turns
};

/// Enough to tell what is worth a closer look, enough for a search to follow, enough to decide.
constexpr Effort kLook = {0.15, 1, 7, false};
constexpr Effort kCloserLook = {0.2, 3, 7, false};
constexpr Effort kDecide = {0.4, 5, 9, true};
/// Effort to decide one of several neighbouring sizes.
constexpr Effort kDecideSize = {0.2, 5, 9, true};
/// Effort to decide `count` sizes in `seconds`, as far as that can be.
Effort decideSizeWithin(double seconds, size_t count);

/// The first result of the program that is another than the expected one; "" when all are equal.
/// `slack` as in Numbers.h; `whose` are expected.
llvm::Expected<std::string> differenceOf(llvm::ArrayRef<reference::Tensor> expected,
                                         Program &program, llvm::ArrayRef<reference::Tensor> inputs,
                                         llvm::ArrayRef<mlir::Type> resultElements,
                                         llvm::StringRef whose, double slack = 0);
/// Compares with the base's results.
llvm::Expected<std::string> differenceOf(Program &base, Program &program,
                                         llvm::ArrayRef<reference::Tensor> inputs,
                                         llvm::ArrayRef<mlir::Type> resultElements);

/// State of the caches when a run begins: for a group, data that its neighbours in a model would
/// leave there; for a whole model, the data of its last run.
enum class Extent { Group, Model };

/// Times the program alone (`base` null), or beside `base`.
llvm::Expected<Timing> compareSpeed(Program *base, Program &program,
                                    llvm::ArrayRef<reference::Tensor> inputs, int threads,
                                    const Effort &effort, Extent extent = Extent::Group);

} // namespace heddle::trial

#endif // HEDDLE_TRIAL_COMPARISON_H
