// Sites: where a plan may decide otherwise than the compiler does by itself.
#ifndef HEDDLE_TUNER_PLANS_SITES_H
#define HEDDLE_TUNER_PLANS_SITES_H

#include "compiler/graph/Graph.h"
#include "compiler/plan/Plan.h"

namespace heddle::tuner {

/// The section of a plan that has the decision (docs/spec/plan.md).
enum class Section { Layouts, Fusion, Split };
llvm::StringRef nameOf(Section section);

/// One decision about all places of a model that are alike.
struct Site {
  Section section;
  std::string value;              // "first", "apart", or the step that is not taken
  std::vector<std::string> names; // nodes', groups' for Split: in the order of the graph
  double seconds = 0;             // of a run, in the groups that the decision is about

  bool operator==(const Site &other) const {
    return section == other.section && value == other.value && names == other.names;
  }
};

/// Decisions open to change in the groups below `module`, which were made by a plan of these
/// layouts. Places are alike if their groups have equal keys (records/GroupKey.h), so layers that
/// repeat are one site. `secondsOf` returns a group's share of a run.
std::vector<Site> sitesOf(mlir::ModuleOp module, const std::map<std::string, std::string> &layouts,
                          llvm::function_ref<double(graph::GroupOp)> secondsOf);

/// Sites by their numbers.
using Decisions = std::set<size_t>;

/// Whether two of the decisions are about one thing.
bool contradicts(llvm::ArrayRef<Site> sites, const Decisions &decisions);

/// The plan that takes these decisions, and leaves everything else to the compiler.
plan::Plan planOf(llvm::ArrayRef<Site> sites, const Decisions &decisions);

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_PLANS_SITES_H
