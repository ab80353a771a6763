// Tuner: tries cards and knobs for the groups of a model, and keeps what it finds in records.
//
// Each distinct group is cut out, and each candidate for it is compiled, compared and timed beside
// the default choice in a process of its own. compiler/records uses what was found.
#ifndef HEDDLE_TUNER_TUNER_H
#define HEDDLE_TUNER_TUNER_H

#include "compiler/pipeline/Pipeline.h"
#include "compiler/tuner/joint/Instances.h"

namespace heddle::tuner {

/// Options of a search over whole plans (plans/PlanTuner.h).
struct PlanOptions {
  bool areTuned = false;
  std::string strategy = "annealing"; // or "evolution"
  bool isSequential = false;          // plans first and then knobs, instead of by turns
  std::set<std::string> decided;      // sections of plans, and "knobs"; all if empty

  bool decides(llvm::StringRef what) const { return decided.empty() || decided.count(what.str()); }
};

struct TuneOptions {
  int64_t trials = 0;       // candidates and plans to try at most; 0: as many as the time allows
  double seconds = 300;     // for all
  int64_t collected = 0;    // if not 0, no search: so many drawn candidates of each group are timed
  double trialSeconds = 20; // limit of one candidate
  uint64_t seed = 0;
  int64_t candidates = 8;               // most measured in each group that a cost model judges
  std::map<std::string, int64_t> sizes; // measured sizes of symbols, else typical ones
  Over over;                            // symbols to measure at all of these sizes instead
  PlanOptions plans;
  std::string model; // the file's name, which records keep
  /// Told what goes on and how much of the whole is done; true ends the tuning.
  std::function<bool(llvm::StringRef what, double fraction)> progress;
};

/// Tunes the model and returns the findings as JSON (docs/guide/tune.md). `compile.recordsPath` is
/// the file of records, and `compile.costModel` says which candidates are worth a measurement, or
/// is null. The process must have no other threads.
llvm::Expected<std::string> tune(const ModelSource &source, const CompileOptions &compile,
                                 const TuneOptions &options);

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_TUNER_H
