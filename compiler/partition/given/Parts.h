// Parts: which of the ops that a node of the model has become an op is. Copies of an op are the
// same part.
#ifndef HEDDLE_PARTITION_GIVEN_PARTS_H
#define HEDDLE_PARTITION_GIVEN_PARTS_H

#include "compiler/partition/Partition.h"

namespace heddle::partition {

/// Notes the part that each op below the function is, but for constants.
void numberParts(mlir::func::FuncOp function);
/// The noted part: the name of the op's node, and the op's number among all of that name.
std::pair<std::string, int64_t> partOf(mlir::Operation *op);
/// The parts of each group by its name; they are no longer noted.
std::map<std::string, Parts> takeParts(mlir::func::FuncOp function);

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_GIVEN_PARTS_H
