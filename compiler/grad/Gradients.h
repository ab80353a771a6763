// Gradients: reverse-mode differentiation of the graph dialect: the adjoints of some values are
// made as further ops of the same dialect, so that they can be simplified, compiled and
// differentiated again.
//
// A fixed rule chooses at the corners of a function: min(x, y) and max(x, y) give all to y where
// both are equal, so max(x, 0) has slope 0 at 0; a reduction to the largest or smallest element
// shares evenly among equals; |x| has slope 0 at 0. Ops that are flat between their steps (floor,
// sign, comparisons, casts to integers) stop the flow.
#ifndef HEDDLE_GRAD_GRADIENTS_H
#define HEDDLE_GRAD_GRADIENTS_H

#include "compiler/graph/Graph.h"
#include "compiler/support/Error.h"

namespace heddle::grad {

/// The sum over y's elements of seed * dy/dx for each x, of x's type, built at the builder's place,
/// where y must be visible. The xs are independent variables: adjoints stop at them. Zeros for an x
/// that y does not depend on. A null seed is all ones. Refuses y, or an x, that is not of a
/// floating-point type, and an op in between that has no derivative.
llvm::Expected<llvm::SmallVector<mlir::Value>> gradients(mlir::OpBuilder &builder,
                                                         mlir::Location location, mlir::Value y,
                                                         llvm::ArrayRef<mlir::Value> xs,
                                                         mlir::Value seed = nullptr);

/// As above for several ys, each with a seed of its type: the sum over all of them.
llvm::Expected<llvm::SmallVector<mlir::Value>>
gradients(mlir::OpBuilder &builder, mlir::Location location, llvm::ArrayRef<mlir::Value> ys,
          llvm::ArrayRef<mlir::Value> xs, llvm::ArrayRef<mlir::Value> seeds);

/// As above, but null for an x that the ys do not depend on.
llvm::Expected<llvm::SmallVector<mlir::Value>>
gradientsOrNull(mlir::OpBuilder &builder, mlir::Location location, llvm::ArrayRef<mlir::Value> ys,
                llvm::ArrayRef<mlir::Value> xs, llvm::ArrayRef<mlir::Value> seeds);

struct Substituted {
  mlir::Value y;
  llvm::SmallVector<mlir::Value> variables; // values that `y` follows from, one for each of `from`
};
/// y with `to[i]` in place of `from[i]`: the ops in between are cloned at the builder's place.
/// Element types and ranks must agree. The variables are copies of `to`, so that each is a value of
/// its own.
llvm::Expected<Substituted> substitute(mlir::OpBuilder &builder, mlir::Location location,
                                       mlir::Value y, llvm::ArrayRef<mlir::Value> from,
                                       llvm::ArrayRef<mlir::Value> to);

} // namespace heddle::grad

#endif // HEDDLE_GRAD_GRADIENTS_H
