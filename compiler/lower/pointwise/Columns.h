// Columns: reductions over leading dimensions that the loops of Pointwise.cpp serve badly: few
// columns, or several reductions of the same ones.
#ifndef HEDDLE_LOWER_POINTWISE_COLUMNS_H
#define HEDDLE_LOWER_POINTWISE_COLUMNS_H

#include "compiler/lower/Schedule.h"

namespace heddle::lower {

/// Emits all of the group, or nothing if it is no such one.
bool emitColumns(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_POINTWISE_COLUMNS_H
