// FilterGradientRule: the register tile and the tasks of a gradient of filters.
#ifndef HEDDLE_PLAN_FILTERGRADIENTRULE_H
#define HEDDLE_PLAN_FILTERGRADIENTRULE_H

#include "compiler/graph/Graph.h"
#include "compiler/program/Machine.h"
#include "compiler/warehouse/Card.h"

namespace heddle::plan {

/// Sets the knobs of the card, if it has all that there are.
void chooseFilterGradient(graph::ConvFilterGradientOp op, const warehouse::Card &card,
                          const program::Machine &machine, warehouse::KnobValues &knobs);

} // namespace heddle::plan

#endif // HEDDLE_PLAN_FILTERGRADIENTRULE_H
