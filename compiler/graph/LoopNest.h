// LoopNest: an op, or a group of ops, seen as loops. A view that is computed, never kept.
//
// Text: `m:p { n:s(max) { k:s(dot) } n:s(sub,exp,sum) n:p(div) }`. A loop is a letter, its kind (p parallel,
// s reduction, w window), the ops that decide a schedule, and its children. This is PluS's +Graph
// (Wu et al., USENIX ATC 2025), the key by which cards are found.
#ifndef HEDDLE_GRAPH_LOOPNEST_H
#define HEDDLE_GRAPH_LOOPNEST_H

#include "compiler/graph/Graph.h"

namespace heddle::graph {

struct Loop {
  enum class Kind { Parallel, Reduction, Window };

  Dim extent;
  Kind kind = Kind::Parallel;
  std::vector<std::string> ops;
  std::vector<Loop> children;

  bool operator==(const Loop &other) const {
    return extent == other.extent && kind == other.kind && ops == other.ops &&
           children == other.children;
  }
};

struct LoopNest {
  std::vector<Loop> loops;             // one after the other
  std::vector<std::string> ops;        // of an op without loops

  /// Letters are given by extent: one extent has one letter within a nest. With `extents`, a loop
  /// shows its size: `m=2*h:p`.
  std::string str(bool extents = false) const;
};

/// The loops of one op. Those of a group are its ops' one after the other, merged where a result
/// flows from one to the next and the outer loops have equal extents.
LoopNest loopNestOf(mlir::Operation *op);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_LOOPNEST_H
