// NarrowRule: whether a convolution has so few filters that lanes are better given to its
// reduction.
#ifndef HEDDLE_PLAN_NARROWRULE_H
#define HEDDLE_PLAN_NARROWRULE_H

#include "compiler/graph/Graph.h"
#include "compiler/program/Machine.h"

namespace heddle::plan {

/// Cost of a pixel of all filters, in multiply-adds of a vector; nullopt if filters in lanes are
/// faster.
std::optional<double> narrowCost(graph::ConvOp conv, const program::Machine &machine);

/// Pixels of a register tile of all filters; 0 if filters in lanes are faster.
int64_t narrowPixels(graph::ConvOp conv, const program::Machine &machine);

} // namespace heddle::plan

#endif // HEDDLE_PLAN_NARROWRULE_H
