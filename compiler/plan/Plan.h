// Plan: every decision about a model's groups, as a file that a heuristic, a search or a person
// writes and that the compiler only carries out (docs/spec/plan.md).
#ifndef HEDDLE_PLAN_PLAN_H
#define HEDDLE_PLAN_PLAN_H

#include "compiler/plan/Recompute.h"
#include "compiler/warehouse/Warehouse.h"

namespace heddle::plan {

/// Other knobs of the group's card, for sizes up to some.
struct Version {
  std::map<std::string, int64_t> when; // the most that sizes of the group are, by their texts
  warehouse::KnobValues knobs;
  std::optional<bool> isShort = {}; // as of a group; none: that of this group
};

struct GroupPlan {
  std::string name;
  std::vector<std::string> ops; // names in the model, each once
  /// The ops themselves, by the names of their nodes: their numbers among all ops of that name.
  /// With the mechanism that the group is made for they say all of it; none: the names do.
  std::map<std::string, std::set<int64_t>> parts;
  std::string mechanism;
  std::string key;      // the group's loop nest
  std::string card;     // "": the group's mechanism finds its numbers
  std::string cardHash; // "" when any text of the card will do
  warehouse::KnobValues knobs;
  std::vector<Version> versions; // a run takes the first that is for its sizes, else `knobs`
  std::optional<int64_t> order;
  int64_t device = 0;
  bool isShort = false;                   // factors of its products are rounded to bf16
  std::string whyPrecision;               // its chooser's word, which no file has
  std::map<std::string, double> measured; // what led to the precision, for the reader
  int64_t region = -1;                    // groups of one number are launched at once
  /// Set for a group that computes results of another one again; its name is the line's.
  std::optional<Recomputation> again;
  int64_t line = 0; // the file's, for messages
};

struct Plan {
  std::string path;          // the file's, for messages
  std::string model, target; // the backend that it was made for, for the reader
  /// Places of channels in images: "last" or "first", for convolutions and pools by their names in
  /// the model.
  std::map<std::string, std::string> layouts;
  /// Nodes whose products of floats are computed with integers of 8 bits; none: as options say.
  std::optional<std::set<std::string>> integers;
  /// Thresholds by their names, in place of their defaults (estimate/Thresholds.h).
  std::map<std::string, int64_t> thresholds;
  /// Fusion of nodes, by their names in the model: "apart" from their readers, or "joined" to them.
  std::map<std::string, std::string> fusion;
  /// Groups that feedback has split, by their names: the steps that shall not be taken again.
  std::map<std::string, std::vector<std::string>> split;
  std::vector<GroupPlan> groups;

  const GroupPlan *find(llvm::StringRef group) const;
  std::vector<Recomputation> recomputations() const;
  /// Deterministic, one group a line.
  std::string str() const;
};

/// Reads what `str` prints; `path` is in messages.
llvm::Expected<Plan> parsePlan(llvm::StringRef text, llvm::StringRef path);

/// Whether all that the plan gives a layout has one in the model, where `made` says what they are.
llvm::Error checkLayouts(const Plan &given, const std::map<std::string, std::string> &made);

/// Whether all nodes whose products the plan computes with integers are so, as `made` says.
llvm::Error checkIntegers(const Plan &given, const std::map<std::string, bool> &made);

/// Whether all nodes whose fusion the plan says are in the model, which has `nodes`.
llvm::Error checkFusion(const Plan &given, const std::set<std::string> &nodes);

/// "sha256:..." of the function's text; large constants count by type and name only.
std::string fingerprint(mlir::func::FuncOp function);

} // namespace heddle::plan

#endif // HEDDLE_PLAN_PLAN_H
