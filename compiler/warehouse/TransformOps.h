// TransformOps: the transform ops `transform.heddle.*` that a card calls to say how its group is
// carried out.
//
// They write the attribute `schedule` onto the group and rewrite nothing: strategy is data,
// mechanism is code. lower reads the attribute.
#ifndef HEDDLE_WAREHOUSE_TRANSFORMOPS_H
#define HEDDLE_WAREHOUSE_TRANSFORMOPS_H

#include "compiler/mechanism/Mechanism.h"

#include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.h"

#define GET_OP_CLASSES
#include "compiler/warehouse/TransformOps.h.inc"

namespace heddle::warehouse {

/// The mechanism that a transform op names; null when it is none of these.
const mechanism::Mechanism *mechanismOf(mlir::Operation *op);

/// Makes the ops known to the transform dialect of contexts that take this registry.
void registerTransformOps(mlir::DialectRegistry &registry);

} // namespace heddle::warehouse

#endif // HEDDLE_WAREHOUSE_TRANSFORMOPS_H
