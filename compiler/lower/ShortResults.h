// ShortResults: results of groups that are stored as bf16 or f16.
//
// Where nothing but products that round their factors reads a result, it is rounded by the kernel
// that makes it: half of the bytes are written and read, and products find their left operand
// ready. Ops between that keep the order of numbers (maxima, what moves elements) give the same
// numbers either way, so no result of the model changes.
#ifndef HEDDLE_LOWER_SHORTRESULTS_H
#define HEDDLE_LOWER_SHORTRESULTS_H

#include "compiler/graph/Graph.h"
#include "compiler/program/Machine.h"

namespace heddle::lower {

/// Makes such results 16 bits wide, as far as the schedules of the groups that make and read them
/// can be carried out so.
void storeShortResults(mlir::func::FuncOp model, const program::Machine &machine);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_SHORTRESULTS_H
