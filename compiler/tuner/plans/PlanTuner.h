// PlanTuner: searches over whole plans: fusion, splits and layouts, and the cards and knobs of the
// groups that these make (XTAT, Phothilimthana et al., PACT 2021).
//
// A plan is held against the best one so far in the way that takes less time. Either the whole
// model is compiled and run by turns; or the groups in which the two differ are measured with their
// default choices, each once, however many plans have it, and a plan that seems faster has to be
// faster as a whole, too.
#ifndef HEDDLE_TUNER_PLANS_PLANTUNER_H
#define HEDDLE_TUNER_PLANS_PLANTUNER_H

#include "compiler/tuner/Tuning.h"
#include "compiler/tuner/plans/Strategy.h"

namespace heddle::tuner {

class PlanTuner {
public:
  PlanTuner(Tuner &tuner, mlir::OwningOpRef<mlir::ModuleOp> imported);

  /// Until the time is over. The tuner's groups are then those of the best plan.
  llvm::Error run();
  /// The best plan's decisions and what is expected of them.
  Json report() const;

private:
  /// The groups of a plan, by which it is judged.
  struct Costed {
    std::shared_ptr<Compiled> planned;
    std::map<GroupTuning *, std::vector<std::string>> groups; // names of equal ones
    mlir::ModuleOp module() const { return planned->graph.get(); }
  };
  /// Outcome of a trial.
  struct Judgement {
    /// Seconds of a run, on the scale of `defaultSeconds`; infinite if the plan cannot be carried
    /// out.
    double seconds = std::numeric_limits<double>::infinity();
    bool isFaster = false;
    double measured = 0; // seconds by the clock, if the whole model ran
  };
  llvm::Expected<std::unique_ptr<Compiled>> plan(const Decisions &decisions);
  llvm::Expected<std::unique_ptr<Costed>> costOf(const Decisions &decisions);
  double estimated(const GroupTuning &work) const;
  llvm::Error findGroups(Costed &costed);
  llvm::Error measure(GroupTuning &work);
  double secondsOf(const Costed &costed) const;
  llvm::Error measureAgain(const Costed &costed);
  llvm::Expected<bool> isClearlyFaster(Costed &costed);
  void drawInputs();
  llvm::Expected<std::unique_ptr<trial::Program>> programOf(const Costed &costed);
  bool runsWhole();
  std::optional<trial::Timing> timeWhole(const Costed &costed, const trial::Effort &effort);
  llvm::Error recall();
  std::optional<Judgement> remembered(const std::string &decisions) const;
  llvm::Error keep(const Costed &costed, const std::string &decisions, const Judgement &judgement);
  bool isWholeCheaper(const Costed &costed);
  Judgement judgeWhole(const Costed &costed);
  llvm::Expected<Judgement> judgeByGroups(Costed &costed);
  llvm::Error take(std::shared_ptr<Costed> costed, const Decisions &decisions, double seconds);
  llvm::Error step(Strategy &strategy);
  llvm::Error tuneKnobs();
  void keepBest();

  Tuner &tuner;
  mlir::OwningOpRef<mlir::ModuleOp> imported;
  std::vector<Site> sites;
  std::map<std::string, GroupTuning *> byKey;
  std::map<GroupTuning *, double> spent; // seconds on its knobs
  std::shared_ptr<Costed> first, best;   // the default plan, and the fastest one
  std::set<GroupTuning *> measured;
  Decisions decided;
  std::vector<std::shared_ptr<Compiled>> kept;      // modules that have groups of works
  reference::Tensors inputs;                        // the whole model's
  records::PlanRecord blank;                        // fields shared by all records of plans
  std::map<std::string, records::PlanRecord> known; // keyed by decisions
  std::string whyNotWhole, lastFailure;        // why it is not run; of the last trial that failed
  std::unique_ptr<trial::Program> bestProgram; // null until it is needed
  int64_t steps = 0, refused = 0, confirmed = 0, refuted = 0;
  double defaultSeconds = 0;           // rough time of the first plan
  double bestSeconds = 0;              // the best plan's, by its measured speed-up over the first
  double ofWhole = 1.0, ofGroup = 0.6; // seconds that trials took so far, each later one by a third
  bool isExhausted = false;            // there are no more plans to try
  bool isTuned = false;                // nor knobs of the best one
};

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_PLANS_PLANTUNER_H
