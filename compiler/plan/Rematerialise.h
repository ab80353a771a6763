// Rematerialise: what is computed twice so that memory suffices.
#ifndef HEDDLE_PLAN_REMATERIALISE_H
#define HEDDLE_PLAN_REMATERIALISE_H

#include "compiler/plan/Recompute.h"
#include "compiler/program/Machine.h"

namespace heddle::plan {

struct Rematerialisation {
  std::vector<Recomputation> all; // in the order in which they run
  int64_t bytes = 0; // the most that is alive between and in the groups, with typical sizes
  double share = 0;  // the estimated time of what is computed again, over that of all groups
};

/// Chooses what the groups of the function's block compute again, so that at most `bytes` are alive
/// between them, if that is possible, and the least otherwise. `temporaries`: bytes that a group
/// needs while it runs, by its name. `machine`: whose rates estimate what it costs.
///
/// One walk over the schedule, as in Dynamic Tensor Rematerialization (Kirisame et al., ICLR 2021,
/// section 2), with the future known: where memory does not suffice, the tensor goes that has the
/// most bytes times the distance to its next reader over the cost of computing it again, its
/// ancestors that are gone included; a reader of one that is gone computes it again. Several
/// weights of size, distance and cost are tried, and the cheapest result is taken.
Rematerialisation rematerialise(mlir::func::FuncOp function, int64_t bytes,
                                const std::map<std::string, int64_t> &temporaries,
                                const program::Machine &machine);

/// Rematerialises to the fewest bytes for which recomputation takes at most `share` of the
/// estimated time of all groups.
Rematerialisation rematerialiseWithin(mlir::func::FuncOp function, double share,
                                      const std::map<std::string, int64_t> &temporaries,
                                      const program::Machine &machine);

} // namespace heddle::plan

#endif // HEDDLE_PLAN_REMATERIALISE_H
