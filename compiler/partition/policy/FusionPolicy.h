// FusionPolicy: which of the kernels that are possible pay. The partitioner asks it after the table
// of mechanisms and the cards have said that ops may be one kernel, so an answer changes what is
// fast and never what is right. A plan overrides each answer.
#ifndef HEDDLE_PARTITION_POLICY_FUSIONPOLICY_H
#define HEDDLE_PARTITION_POLICY_FUSIONPOLICY_H

#include "compiler/estimate/Stitching.h"
#include "compiler/partition/Group.h"
#include "compiler/program/Machine.h"

namespace heddle::partition {

/// Questions that a policy may ask about the block while it is split, last op to first.
struct Surroundings {
  /// Whether the op is in some group already.
  llvm::function_ref<bool(mlir::Operation *)> isGrouped;
  /// Whether the op, of which the policy was not asked, would join the group that it was asked
  /// about.
  llvm::function_ref<bool(mlir::Operation *)> joins;
};

/// Two groups that may be one kernel with several results.
struct SiblingPair {
  const Group &earlier, &later;
  const Mechanism &mechanism; // of both together
  size_t streams;             // tensors that the kernel would read and write
};

class FusionPolicy {
public:
  virtual ~FusionPolicy() = default;

  /// Whether a subgraph that a card takes as a whole is one kernel.
  virtual bool claims(llvm::ArrayRef<mlir::Operation *> ops, const Mechanism &mechanism) const = 0;
  /// Whether an op of a claim is better outside of it, if the rest is still a match. `isOpen`: ops
  /// that no claim has.
  virtual bool givesBack(mlir::Operation *op, llvm::ArrayRef<mlir::Operation *> claim,
                         llvm::function_ref<bool(mlir::Operation *)> isOpen) const = 0;
  /// Whether each reader of a cast to more bits computes it, so that the fewer bits are stored.
  virtual bool widensAtReaders() const = 0;
  /// Whether each product that reads a transpose reads through it.
  virtual bool readsThroughTransposes() const = 0;
  /// Whether the op, computed in the group of all its readers, costs no more than stored and read.
  virtual bool pays(mlir::Operation *op, const Group &group, const Surroundings &around) const = 0;
  /// Whether each of at most `mostReaders` groups that read the group's result computes it again.
  virtual bool recomputes(const Group &group, const Surroundings &around) const = 0;
  virtual size_t mostReaders() const = 0;
  /// Whether a product whose result is read in so many equal parts takes in what reads these.
  virtual bool joinsParts(const Group &product, int64_t parts) const = 0;
  /// Whether a product and the reductions over the rows of its result are one kernel.
  virtual bool stitches(const Group &product, const Group &rows) const = 0;
  /// Why two kernels are better than the one that `stitches` asked for, or "" if they are not.
  /// Asked once the kernel's tiles are known.
  virtual std::string whyApart(const estimate::Stitching &kernel,
                               const program::Machine &machine) const = 0;
  virtual bool joins(const SiblingPair &pair) const = 0;
  /// Groups that are launched at once, at most.
  virtual size_t mostAtOnce() const = 0;
};

/// The policy for processors with vector registers and caches.
const FusionPolicy &lanes();
/// The two ends, to test what a policy decides and to compare: each op alone, and whatever may be
/// one kernel.
const FusionPolicy &fuseNothing();
const FusionPolicy &fuseAll();
/// "lanes", "nothing" or "all"; null for another name.
const FusionPolicy *findPolicy(llvm::StringRef name);

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_POLICY_FUSIONPOLICY_H
