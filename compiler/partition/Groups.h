// Groups: those of one block while it is split. Steps.h has what makes them.
#ifndef HEDDLE_PARTITION_GROUPS_H
#define HEDDLE_PARTITION_GROUPS_H

#include "compiler/partition/given/Wishes.h"
#include "compiler/partition/policy/FusionPolicy.h"

namespace heddle::partition {

class Groups {
public:
  Groups(mlir::Block &block, const Options &options)
      : block(block), options(options), policy(*options.policy), wishes(block, options) {}

  mlir::Block &block;
  const Options &options;
  const FusionPolicy &policy;
  const Wishes wishes;

  /// The number of groups; those without members have become part of others.
  size_t size() const { return all.size(); }
  Group &operator[](size_t index) { return all[index]; }
  std::vector<Group>::iterator begin() { return all.begin(); }
  std::vector<Group>::iterator end() { return all.end(); }

  bool has(mlir::Operation *op) const { return indices.contains(op); }
  std::optional<size_t> indexOf(mlir::Operation *op) const;
  /// The group of an op; null if it is in none.
  Group *of(mlir::Operation *op);
  /// The root of the group that the op of the block, or the one that it is in, belongs to, or that
  /// op; null if it is in another block.
  mlir::Operation *headOf(mlir::Operation *op) const;

  /// Adds a group of these members; its index.
  size_t add(Group group);
  /// Adds a last member, which nothing in the group reads.
  void put(mlir::Operation *op, size_t index);
  /// Makes the op one of the group, whose members the caller changes.
  void move(mlir::Operation *op, size_t index) { indices[op] = index; }
  /// Erases the group's ops, which nothing reads any more.
  void erase(Group &group);

  /// Notes the order of the block's ops, which `placeOf` and `sort` know from then on.
  void notePlaces();
  size_t placeOf(mlir::Operation *op) const { return places.at(op); }
  /// Sorts members, last to first.
  void sort(llvm::MutableArrayRef<mlir::Operation *> members) const;

  /// Whether the mechanism serves these ops and, where there are cards, one of them is for them.
  bool serves(const Mechanism &mechanism, OpSet ops) const;
  /// Says so of ops that are in order, operands first.
  bool servesInOrder(const Mechanism &mechanism, llvm::ArrayRef<mlir::Operation *> ordered) const;

  /// Makes a graph.group of each.
  void wrap();

private:
  std::vector<Group> all;
  llvm::DenseMap<mlir::Operation *, size_t> indices; // of their groups
  llvm::DenseMap<mlir::Operation *, size_t> places;  // in the block
};

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_GROUPS_H
