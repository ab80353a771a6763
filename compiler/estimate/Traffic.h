// Traffic: the bytes that a group has to move and the floating point operations that it has to do,
// as expressions of the symbols: what a roofline is drawn from.
#ifndef HEDDLE_ESTIMATE_TRAFFIC_H
#define HEDDLE_ESTIMATE_TRAFFIC_H

#include "compiler/graph/Graph.h"

namespace heddle::estimate {

/// A tensor that a group reads and does not compute.
struct GroupInput {
  mlir::Value value;
  graph::Dim bytes; // that are read: all, or what gathers and slices take of it
};

/// Each tensor once, in the order in which the group's ops name them. Weights of a group whose
/// factors are bf16 are kept as such.
std::vector<GroupInput> inputsOf(graph::GroupOp group);

graph::Dim bytesOf(mlir::Value tensor);
/// The weights of f32 that a product takes as its right factor, and keeps as bf16 if it rounds its
/// factors; null if there are none.
mlir::Value weightsOf(mlir::Operation *product);

/// Floating point operations: a product and its addition are two; any other op is one per element
/// of its result, a reduction one per element of its operand. Moving elements is none.
graph::Dim flopsOf(mlir::Operation *op);
graph::Dim flopsOf(graph::GroupOp group);
/// Scalar operations that one element of a group's results takes, roughly: a function of the
/// mathematical library counts 17, an op that computes an index 4, any other 1.
int64_t opsPerElement(mlir::Block *group);
/// Operations of all convolutions and products below `root` whose sizes are constant; those in
/// branches and loops count once.
double productFlops(mlir::Operation *root);

} // namespace heddle::estimate

#endif // HEDDLE_ESTIMATE_TRAFFIC_H
