// Sequence: the order in which the groups of a block and the ops outside of groups can run, while
// groups become one.
#ifndef HEDDLE_PARTITION_ORDER_SEQUENCE_H
#define HEDDLE_PARTITION_ORDER_SEQUENCE_H

#include "compiler/graph/Graph.h"

namespace heddle::partition {

/// Each unit is known by one op, its head: the root of a group, or an op that is in none. The ops
/// of a unit stand next to each other in the block.
class Sequence {
public:
  using MembersOf = std::function<llvm::SmallVector<mlir::Operation *>(mlir::Operation *head)>;
  using HeadOf = std::function<mlir::Operation *(mlir::Operation *op)>;

  /// The functions say what a unit holds, last to first, and whose an op is: null for one of
  /// another block. They are asked again after each `join`, of which they then know.
  Sequence(mlir::Block &block, MembersOf membersOf, HeadOf headOf);

  /// Whether the two can become one that stands where `later` does, with what is read from
  /// `earlier` in between moved after it. They cannot where a path leads from one to the other
  /// through others, past an op that binds sizes, or if they are too far apart.
  bool mayJoin(mlir::Operation *earlier, mlir::Operation *later) const;
  /// Says so of units in their order, however far apart.
  bool mayJoin(llvm::ArrayRef<mlir::Operation *> heads) const;
  /// Makes the order that of the joined unit, whose head is the last one.
  void join(llvm::ArrayRef<mlir::Operation *> heads);

  bool isBefore(mlir::Operation *head, mlir::Operation *other) const {
    return seats.at(head) < seats.at(other);
  }
  size_t size() const { return order.size(); }
  /// The head at a seat; null if its unit has become part of another one.
  mlir::Operation *at(size_t seat) const { return order[seat]; }

private:
  bool isFixed(mlir::Operation *head) const;
  /// The units between the first and the last that read one of `heads` or each other; nullopt if
  /// one of `heads` reads one of them, or one of all cannot move.
  std::optional<llvm::SetVector<mlir::Operation *>>
  followers(llvm::ArrayRef<mlir::Operation *> heads) const;
  void moveBefore(mlir::Operation *head, mlir::Operation *place) const;
  bool reads(mlir::Operation *head, llvm::function_ref<bool(mlir::Operation *)> isAsked) const;

  MembersOf membersOf;
  HeadOf headOf;
  std::vector<mlir::Operation *> order;
  llvm::DenseMap<mlir::Operation *, size_t> seats;
};

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_ORDER_SEQUENCE_H
