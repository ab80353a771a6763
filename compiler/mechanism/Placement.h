// Placement: results that are written where a concat wants them, so that nothing copies them there.
#ifndef HEDDLE_MECHANISM_PLACEMENT_H
#define HEDDLE_MECHANISM_PLACEMENT_H

#include "compiler/graph/Graph.h"

#include "llvm/ADT/DenseMap.h"

namespace heddle::mechanism {

/// A tensor inside of a larger one, which owns the memory: at `offset` along `axis`.
struct Placement {
  mlir::Value whole;
  int64_t axis;
  graph::Dim offset;
};
using Placements = llvm::DenseMap<mlir::Value, Placement>;

/// Operands of the concat that ends a group that can lie inside of its result: results of groups of
/// the same block whose mechanism stores element by element, and that only this concat reads. None
/// if the size of the whole is not known when a run begins.
Placements placementsOf(graph::GroupOp group);
/// Placements of all groups whose schedule names the mechanism "place".
Placements placementsOf(mlir::func::FuncOp model);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_PLACEMENT_H
