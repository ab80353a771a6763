// Group: the ops of one kernel while a block is split, and what an op is in a group.
#ifndef HEDDLE_PARTITION_GROUP_H
#define HEDDLE_PARTITION_GROUP_H

#include "compiler/mechanism/Mechanism.h"

namespace heddle::partition {

using mechanism::Mechanism;
using OpSet = llvm::SetVector<mlir::Operation *>;

/// Ops of a group, at most, however it came about: some searches take quadratic time in it.
inline constexpr size_t kMostOps = 256;

/// The mechanism that a group is made for when it is built around the op.
const Mechanism *mechanismOf(mlir::Operation *op);
/// Whether no kernel computes it: the program around the kernels does, or it is a view.
bool isHost(mlir::Operation *op);
/// Whether it must stand alone: others neither join it nor does it join others.
bool isAlone(mlir::Operation *op);
/// Whether it is a cast to a float of more bits, so that its operand is the cheaper one to store.
bool isWidening(mlir::Operation *op);

struct Group {
  const Mechanism *mechanism = nullptr;
  graph::DimVector domain;                      // of the root's result
  llvm::SmallVector<mlir::Operation *> members; // last to first
  llvm::SmallVector<mlir::Value> alsoRead;      // besides the root's results, by others
  bool onlyElementwise = true;                  // besides broadcasts and constants
  bool onlySlices = true;                       // besides these, and elementwise ops
  bool isClaimed = false;                       // by a card: nothing joins it
  bool isGates = false;                         // a product and its readers in parts

  bool is(const Mechanism &wanted) const { return mechanism == &wanted; }
  mlir::Operation *root() const { return members.front(); }
};

/// Tensors that the members read and do not make themselves, but for constants.
llvm::SetVector<mlir::Value> inputsOf(llvm::ArrayRef<mlir::Operation *> members);
/// The dimensions of the elements that a group walks: of what it reduces, if it does.
graph::DimVector walkedBy(const Group &group);

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_GROUP_H
