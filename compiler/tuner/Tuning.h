// Tuning: what is known while a model is tuned, and the steps of it. Tuner.cpp walks over the
// groups and tunes one for one size; Jointly.cpp tunes one for all its sizes together.
#ifndef HEDDLE_TUNER_TUNING_H
#define HEDDLE_TUNER_TUNING_H

#include "compiler/pipeline/Planning.h"
#include "compiler/support/Guard.h"
#include "compiler/trial/Comparison.h"
#include "compiler/tuner/AtSizes.h"
#include "compiler/tuner/Report.h"
#include "compiler/tuner/Tuner.h"
#include "compiler/tuner/joint/Sizes.h"

#include <chrono>

namespace heddle::tuner {

/// Name of this machine, for the reader of records: "znver4, 2 threads".
std::string machineName();

class Tuner {
  using Clock = std::chrono::steady_clock;

public:
  Tuner(Compiled &planned, const CompileOptions &compile, const TuneOptions &options,
        records::Records &records, learn::Model *model)
      : planned(planned), compile(compile), options(options), records(records), model(model),
        threads(records::threadsOf(compile.threads)) {}

  /// `imported`: the model as it was imported, for a search over plans.
  llvm::Error run(mlir::OwningOpRef<mlir::ModuleOp> imported = {});
  Json report() const;

  // The search over plans shares the time, the steps and what is known.
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }
  double left() const { return options.seconds - elapsed(); }
  /// Share of the whole that is done, by time or by trials.
  double done() const {
    double ofTrials = options.trials > 0 ? double(trials) / double(options.trials) : 0;
    return std::min(1.0, std::max(elapsed() / options.seconds, ofTrials));
  }
  bool shouldStop();
  bool isOver() { return shouldStop() || (options.trials > 0 && trials >= options.trials); }

  /// Whether factors of products may be bf16.
  bool mayRound() const { return compile.shortFloats != program::ShortFloats::None; }
  void setSizes(GroupTuning &work) const;
  llvm::Error prepare(GroupTuning &work, trial::Program *ready = nullptr);
  llvm::Error measureBase(GroupTuning &work, ExtractedGroup &subject, trial::Program *ready);
  llvm::Error tuneFor(GroupTuning &work, double seconds);
  llvm::Error follow(GroupTuning &work, double whole);
  llvm::Expected<std::unique_ptr<ExtractedGroup>> extractedGroupOf(GroupTuning &work);

  Compiled &planned;
  const CompileOptions &compile;
  const TuneOptions &options;
  records::Records &records;
  learn::Model *model; // null: the search is a local one
  int64_t threads;
  std::optional<warehouse::Warehouse> cards;
  std::vector<std::unique_ptr<GroupTuning>> works;
  std::string doing = "planning"; // for who asks how it goes
  int64_t trials = 0;

private:
  llvm::Error keepExtracted(GroupTuning &work);
  llvm::Error tune(GroupTuning &work, double seconds);
  struct Beside {
    std::unique_ptr<ExtractedGroup> subject;
    std::unique_ptr<trial::Program> base;
  };
  llvm::Expected<Beside> besideBase(GroupTuning &work);
  llvm::Error search();
  llvm::Error collect();
  llvm::Error collect(GroupTuning &work, int64_t count);
  llvm::Error tuneJointly(GroupTuning &work, double seconds);
  llvm::Expected<double> measure(GroupTuning &work, ExtractedGroup &subject, trial::Program &base,
                                 const plan::Choice &choice, const trial::Effort &effort);
  llvm::Expected<double> speedupAt(GroupTuning &work, AtSize &size, const plan::Choice &choice,
                                   const trial::Effort &effort);
  struct Faster {
    plan::Choice choice;
    double speedup;
  };
  llvm::Expected<std::vector<Faster>> fasterCards(GroupTuning &work, AtSizes &sizes, size_t count);
  llvm::Error refine(GroupTuning &work, AtSizes &sizes, const Joint &joint,
                     llvm::ArrayRef<warehouse::KnobValues> wanted, double end);
  llvm::Error confirmCards(GroupTuning &work, AtSizes &sizes, llvm::ArrayRef<Faster> others,
                           const trial::Effort &effort);
  llvm::Error confirmKnobs(GroupTuning &work, AtSizes &sizes,
                           llvm::ArrayRef<warehouse::KnobValues> wanted,
                           llvm::ArrayRef<JointPoint> points, const trial::Effort &effort);
  llvm::Error explore(GroupTuning &work, ExtractedGroup &subject, trial::Program &base,
                      const plan::Choice &choice);
  llvm::Error keepBase(GroupTuning &work, double seconds);
  llvm::Error keep(GroupTuning &work, const plan::Choice &choice, const support::Outcome &outcome,
                   bool isConfirmed);
  bool isSettled(const records::Record *record) const;
  uint64_t seedOf(const GroupTuning &work) const;

  Clock::time_point begin = Clock::now();
  std::string ended = "done";
  Json plans; // findings of a search over plans
};

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_TUNING_H
