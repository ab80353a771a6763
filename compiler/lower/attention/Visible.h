// Visible: the keys that some query of a slab sees, found as the kernel runs.
//
// Masks are added to the scaled scores, or selected instead of them: causal ones, those of padding,
// constant or computed. With s the scale and |score| <= depth * max |query| * max |key| = l, a
// query that has a mask of v somewhere gives no weight to keys with a mask below v - 2 s l - 88, as
// exp of less than -87.34 is 0 here. So panels of such keys before the first and after the last
// visible one are left out, and nothing changes. A row that is hidden as a whole has no such keys;
// numbers that are not finite, in keys, queries or values, make all keys visible.
#ifndef HEDDLE_LOWER_ATTENTION_VISIBLE_H
#define HEDDLE_LOWER_ATTENTION_VISIBLE_H

#include "compiler/graph/edit/Band.h"
#include "compiler/lower/attention/Layout.h"

namespace heddle::lower {

/// Steps from scores to logits: a factor, and masks that are added or taken instead.
struct ScoreMasks {
  struct Step {
    mlir::Operation *op;
    unsigned scores; // the operand that the scores come through
  };
  double scale = 1;
  llvm::SmallVector<Step> steps; // in order
};

/// Masks that hide one side of a diagonal of the scores: there each is `hidden`, elsewhere 0.
struct SideMask {
  graph::Band seen;
  double hidden;
  graph::SelectOp choice; // by the diagonal
};

/// Masks that hide the keys from a place on, of which each row has its own: there each is `hidden`,
/// elsewhere 0.
struct EdgeMask {
  graph::RowEnds ends;
  double hidden;
  Value condition; // of the shape of the masks: the comparison, perhaps broadcast
};

class Visibility {
public:
  explicit Visibility(AttentionLayout &layout)
      : layout(layout), kernel(layout.kernel), number(layout.number) {}

  /// Finds the masks, once the layout is read.
  void findMasks();
  bool hasMasks() const { return masks.has_value(); }
  /// Whether keys after a diagonal are hidden, and no others.
  bool endsAtDiagonal() const { return side && side->seen.isLower; }
  /// Makes choices by side or edge with a count of lanes in place of row and column numbers.
  void bindSide(Elements &e);
  void unbindSide(Elements &e);
  /// Whether each row sees the first keys, up to one of its own.
  bool areFirstSeen() const;
  /// Lets masks leave scores as they are, as they do before Keys::clear.
  void bindSeen(Elements &e);
  void unbindSeen(Elements &e);

  /// The largest key, NaN where no key may be left out, and the largest mask of a query, where all
  /// have the same.
  struct Bounds {
    Value keys, masks;
  };
  /// Bounds of the head in the scratch. Masks that all queries share are read once.
  Bounds boundsOfTask(Elements &e, Value firstRow);
  Keys visibleKeys(Elements &e, const Slab &slab, const Bounds &bounds);

private:
  void findSide();
  void findEdge();
  std::pair<Value, Value> seenBy(Elements &e, const Slab &slab);
  Keys lastKeys(const Slab &slab);
  Value seenBefore(Elements &e, llvm::ArrayRef<Index> place);
  Keys panelsOf(Value low, Value high);
  bool areMasksOfKeys() const;
  Value maskOfScore(Elements &e, llvm::ArrayRef<Index> place);
  Value largestMagnitude(Elements &e, const Panels &panels, const Dim &offset);
  Value magnitudesAt(Value pointer, Value index, Value mask);
  Value largestOfLanes(Value magnitudes);
  Value boundOfQueries(Elements &e, const Slab &slab);
  Value readMasks(Elements &e, Value firstRow, Value rows);

  AttentionLayout &layout;
  KernelBuilder &kernel;
  const Type &number;
  Value masked;                    // the scores with all masks
  std::optional<ScoreMasks> masks; // that may hide keys
  std::optional<SideMask> side;    // what the masks are, if they are that alone
  std::optional<EdgeMask> edge;    // the same
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_ATTENTION_VISIBLE_H
