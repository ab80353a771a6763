// LoopNest: an op, or a group of ops, seen as loops. A view that is computed, never kept.
//
// Text: `m:p { n:s(max) { k:s(dot) } n:s(sub,exp,sum) n:p(div) }`. A loop is a letter, its kind (p
// parallel, s reduction, w window), the ops that decide a schedule, and its children. This is
// PluS's +Graph (Wu et al., USENIX ATC 2025), the key by which cards are found.
#ifndef HEDDLE_GRAPH_LOOPNEST_H
#define HEDDLE_GRAPH_LOOPNEST_H

#include "compiler/graph/Graph.h"

#include <set>

namespace heddle::graph {

/// A tensor that a loop moves in, and the dimension that it moves less the loop's depth: equal in
/// a loop and its child where both walk neighbouring dimensions of the same tensors.
using Walk = std::pair<void *, int64_t>;

struct Loop {
  enum class Kind { Parallel, Reduction, Window };

  Dim extent;
  Kind kind = Kind::Parallel;
  std::vector<std::string> ops = {};
  std::vector<Loop> children = {};
  std::set<Walk> walks = {}; // no part of a nest's identity

  bool operator==(const Loop &other) const {
    return extent == other.extent && kind == other.kind && ops == other.ops &&
           children == other.children;
  }
};

struct LoopNest {
  std::vector<Loop> loops;      // one after the other
  std::vector<std::string> ops; // outside of all loops
  /// How many of the outer loops walk the first operand's outer dimensions.
  int64_t shared = 0;

  /// A loop takes the letter of an earlier sibling of equal extent, else a new one, so the text
  /// does not depend on sizes. With `extents` the size is before the kind: `m=2*h:p`.
  std::string str(bool extents = false) const;
};

/// The loops of one op; a group's are `nestOf` its ops.
LoopNest loopNestOf(mlir::Operation *op);

/// The key of a subgraph: the loops of its ops, in an order in which operands come first, one after
/// the other, merged by PluS's rules P1 to P4. All such orders of chains give the same key; sizes
/// and names of nodes do not enter it.
LoopNest nestOf(llvm::ArrayRef<mlir::Operation *> ops);

/// `next` after `nest`. While both outer loops have one extent, up to next.shared loops deep:
/// P1 two parallel loops become one; P2 a parallel loop before a reduction becomes that
/// reduction; P3 after a reduction stands a new sibling.
void append(LoopNest &nest, const LoopNest &next);

/// P4: a loop and its only child become one where both are of one kind and walk the same tensors
/// together, as the two batch dimensions of a product do.
void coalesce(LoopNest &nest);

/// Whether the value comes from a product, directly or through elementwise ops that nobody else
/// reads: what follows can be computed while the product is in registers.
bool followsProduct(mlir::Value value);

/// Whether ops of this name decide no schedule: they are computed wherever their operands are.
bool isTrivial(llvm::StringRef op);
/// A parallel loop in which nothing else is done, such as one that prepares a mask.
bool isTrivialLoop(const Loop &loop);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_LOOPNEST_H
