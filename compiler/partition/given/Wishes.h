// Wishes: what a plan says of the groups of a block.
#ifndef HEDDLE_PARTITION_GIVEN_WISHES_H
#define HEDDLE_PARTITION_GIVEN_WISHES_H

#include "compiler/partition/Group.h"
#include "compiler/partition/Partition.h"

namespace heddle::partition {

class Wishes {
public:
  Wishes(mlir::Block &block, const Options &options) : block(block), options(options) {}

  /// Whether the plan, where it names the group of this root, has the op in it, and does not want
  /// the op's node apart from it.
  bool allows(mlir::Operation *op, mlir::Operation *root) const;
  bool allows(llvm::ArrayRef<mlir::Operation *> ops, mlir::Operation *root) const;
  /// Whether the plan has the op in the group of this root and in no other, so that it says it of
  /// all that the name stands for, or wants its node joined to what reads it.
  bool asksFor(mlir::Operation *op, mlir::Operation *root) const;
  bool asksFor(llvm::ArrayRef<mlir::Operation *> ops, mlir::Operation *root) const;
  /// Whether the group of this root shall not be made by this step.
  bool refuses(mlir::Operation *root, llvm::StringRef step) const;
  /// Whether the plan, where it has a line for one of the two, has all ops of the earlier group in
  /// the later one, or those of both in one line: that of a group which takes both, by steps.
  bool allowsJoin(const Group &earlier, const Group &later) const;
  /// Whether the plan wants the group's node joined to all that read it, or has no line for the
  /// group, but has its ops in those of others. Where a node of the model stands for more ops than
  /// these, its name does not say that of them.
  bool wantsCopies(const Group &group) const;

private:
  mlir::Block &block;
  const Options &options;
};

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_GIVEN_WISHES_H
