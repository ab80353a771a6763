// Static: the static form of ops whose shapes are operands, once these operands are known.
#ifndef HEDDLE_SIMPLIFY_STATIC_H
#define HEDDLE_SIMPLIFY_STATIC_H

#include "compiler/simplify/Rewriting.h"

namespace heddle::simplify {

/// The static form of a dynamic_reshape, dynamic_broadcast, dynamic_slice or range, or null. The
/// symbols that the op binds are noted in `refinement`; operands may still have their former types.
mlir::Value makeStatic(mlir::OpBuilder &builder, mlir::Operation *op, Refinement &refinement);

} // namespace heddle::simplify

#endif // HEDDLE_SIMPLIFY_STATIC_H
