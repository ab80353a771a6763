// Schedules: what the rows of the table hold the schedules of groups to. The verifier of
// graph.group knows no mechanisms; whoever takes a planned graph asks here.
//
// SK1: `mechanism`, of a group and of its schedule, is the name of a mechanism.
// SK2: each other name is a knob of the mechanism; of a kernel any name is, beside `source` and
//      `code`.
// SK3: a knob is an i64 from 1 to 2^31 - 1, and to 256 where it is `m` or `n`, the sizes of a
//      register tile; one that is left out leaves the number to lower. A kernel takes any i64.
// SK4: `versions` is a list of schedules of the same mechanism, each with the bounds of some sizes
//      under `when`, and perhaps a `precision` of its own.
#ifndef HEDDLE_MECHANISM_SCHEDULES_H
#define HEDDLE_MECHANISM_SCHEDULES_H

#include "compiler/graph/Graph.h"

namespace heddle::mechanism {

/// The most that a knob of a schedule may be, but for those of kernels: `m` and `n` are sizes of a
/// register tile, and the code of a kernel is as long as its tile is large.
int64_t mostOf(llvm::StringRef knob);

/// Refuses schedules that no mechanism can read, each with a message at its group.
mlir::LogicalResult verifySchedules(mlir::Operation *root);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_SCHEDULES_H
