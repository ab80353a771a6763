// Partitioner: the groups of one block while they are made. Partition.cpp walks the block,
// Joining.cpp says which ops join a group, Recompute.cpp gives what is cheap to each reader,
// Gates.cpp joins products with what reads them in parts, Stitches.cpp products and reductions,
// Siblings.cpp what walks the same elements.
#ifndef HEDDLE_PARTITION_PARTITIONER_H
#define HEDDLE_PARTITION_PARTITIONER_H

#include "compiler/partition/Growth.h"
#include "compiler/partition/Partition.h"
#include "compiler/partition/Sequence.h"

namespace heddle::partition {

using mechanism::Mechanism;

/// The mechanism that a group is made for when it is built around the op.
const Mechanism *mechanismOf(mlir::Operation *op);
/// No kernel computes it: the program around the kernels does, or it is a view.
bool isHost(mlir::Operation *op);
/// Must stand alone: others neither join it nor does it join others.
bool isAlone(mlir::Operation *op);
/// A cast to a float of more bits, so that its operand is the cheaper one to store.
bool isWidening(mlir::Operation *op);
/// Elementwise or not, it takes many instructions an element.
bool isExpensive(mlir::Operation *op);
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

class Partitioner {
public:
  Partitioner(mlir::Block &block, const Options &options) : block(block), options(options) {}
  void run();

private:
  using Ops = llvm::SetVector<mlir::Operation *>;
  /// Whether the mechanism serves these ops and, where there are cards, one of them is for them.
  bool serves(const Mechanism &mechanism, Ops ops) const;
  /// The same of ops that are in order, operands first.
  bool servesInOrder(const Mechanism &mechanism, llvm::ArrayRef<mlir::Operation *> ordered) const;
  bool isWanted(mlir::Operation *op, mlir::Operation *root) const;
  bool isAskedFor(mlir::Operation *op, mlir::Operation *root) const;
  bool isRefused(mlir::Operation *root, llvm::StringRef step) const;

  // Layer I.
  void takeClaims();
  void giveFreeOpsToEachUser();
  void giveTransposesToProducts();
  std::optional<size_t> groupOfUsers(mlir::Operation *op);
  bool isRepeated(mlir::Operation *op, Group &group);
  bool mayGrow(const Mechanism &mechanism, mlir::Operation *op, const Group &group) const;
  bool mayJoin(mlir::Operation *op, Group &group);
  bool pays(mlir::Operation *op, Group &group);
  bool readOnlyElementwise(mlir::Operation *op, Group &group);
  void assign(mlir::Operation *op);
  void wrap();

  // Recompute.
  void giveToReaders(Group &group);
  bool isCheap(const Group &group) const;
  bool isWantedByReaders(const Group &group) const;
  bool findReaders(mlir::Operation *root, std::set<size_t> &readers);
  bool takesCopies(Group &reader, const Group &group);
  void addCopies(Group &reader, size_t index, const Group &group);

  // Products that are read in parts.
  void joinGates();
  void joinReaders(Group &product);
  Group *openGroupOf(mlir::Operation *op);
  Ops readersOf(llvm::ArrayRef<mlir::Operation *> slices);
  Ops followersOf(llvm::ArrayRef<mlir::Operation *> slices);
  bool addOperands(mlir::Operation *op, Group &group, Ops &taken);
  bool joinIfFits(Group &product, Ops taken);
  void join(Group &product, const Ops &taken, mlir::Operation *last);

  // Layer II.
  void stitchAll();
  Group *productBefore(mlir::Operation *fold, Group &rows);
  bool isReadRight(mlir::Operation *user, Group &rows);
  void stitch(Group &product, Group &rows);

  // Groups with several results.
  void joinSiblings();
  bool joinOneSibling(mlir::Operation *later, Sequence &sequence);
  llvm::SetVector<mlir::Operation *> siblingsBefore(mlir::Operation *later, Sequence &sequence);
  bool areSiblings(const Group &earlier, const Group &later);
  /// Null if they are none.
  const Mechanism *mechanismOfSiblings(const Group &earlier, const Group &later) const;
  bool areJoinsWanted(const Group &earlier, const Group &later) const;
  bool isJoinAskedFor(const Group &earlier, const Group &later) const;
  void joinSibling(Group &earlier, Group &later, const Mechanism &mechanism);
  mlir::Operation *headOf(mlir::Operation *op);

  mlir::Block &block;
  const Options &options;
  std::vector<Group> groups;
  llvm::DenseMap<mlir::Operation *, size_t> groupOf;
  llvm::DenseMap<mlir::Operation *, size_t> places; // in the block
};

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_PARTITIONER_H
