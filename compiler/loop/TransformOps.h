// TransformOps: the transform ops `transform.loop.*` that a card calls to say how its group is
// carried out.
//
// They write the attribute `loop.schedule` onto the group and rewrite nothing: strategy is data,
// mechanism is code. lower reads the attribute.
#ifndef HEDDLE_LOOP_TRANSFORMOPS_H
#define HEDDLE_LOOP_TRANSFORMOPS_H

#include "compiler/Prelude.h"

#include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.h"

#define GET_OP_CLASSES
#include "compiler/loop/TransformOps.h.inc"

namespace heddle::loop {

/// Of a graph.group: a dictionary of `form` (a string) and of knobs (i64).
inline constexpr llvm::StringLiteral kScheduleAttr = "loop.schedule";

/// The form that a transform op asks for; "" when it is none of these.
llvm::StringRef formOf(mlir::Operation *op);

/// What a card is that calls the op: "schedule", "call" or "kernel".
llvm::StringRef cardKindOf(mlir::Operation *op);

/// Makes the ops known to the transform dialect of contexts that take this registry.
void registerTransformOps(mlir::DialectRegistry &registry);

} // namespace heddle::loop

#endif // HEDDLE_LOOP_TRANSFORMOPS_H
