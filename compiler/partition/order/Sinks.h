// Sinks: groups whose results nobody else in the model reads, such as updates of weights.
#ifndef HEDDLE_PARTITION_ORDER_SINKS_H
#define HEDDLE_PARTITION_ORDER_SINKS_H

#include "compiler/graph/Graph.h"

namespace heddle::partition {

/// An order of the function's groups, by their names, in which each sink, and the few groups that
/// only it waits for, runs as soon as that leaves less in memory than waiting does. Models have the
/// derivatives of their weights in the reverse order of their nodes, which may be last of all.
std::map<std::string, int64_t> orderOfSinks(mlir::func::FuncOp function);

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_ORDER_SINKS_H
