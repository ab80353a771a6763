// Stitch: what lies between the product of a group and the reductions over its rows.
#ifndef HEDDLE_MECHANISM_STITCH_H
#define HEDDLE_MECHANISM_STITCH_H

#include "compiler/mechanism/Mechanism.h"

namespace heddle::mechanism {

/// The last value through which all reductions reach the product: of the product's shape, and
/// following from no reduction. Null if there is none.
mlir::Value betweenOf(Ops ops);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_STITCH_H
