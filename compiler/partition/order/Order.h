// Order: the order in which a plan wants the groups of a block.
#ifndef HEDDLE_PARTITION_ORDER_ORDER_H
#define HEDDLE_PARTITION_ORDER_ORDER_H

#include "compiler/graph/Graph.h"

namespace heddle::partition {

/// Whether others may not change sides with the op: types name sizes that it binds, or that an op
/// in it does, or it has code of its own.
bool isBarrier(mlir::Operation &op);

/// Moves groups so that their numbers grow, as far as each stays after what it reads, and no op
/// that binds sizes or has a region of its own is passed. Groups without a number, and what else
/// there is, come right before the next one that has one, or before the first of their readers.
void orderGroups(mlir::Block &block, const std::map<std::string, int64_t> &order);

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_ORDER_ORDER_H
