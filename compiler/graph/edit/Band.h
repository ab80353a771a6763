// Band: masks that are one side of a diagonal, as those of triangular matrices and of causal
// attention are.
#ifndef HEDDLE_GRAPH_EDIT_BAND_H
#define HEDDLE_GRAPH_EDIT_BAND_H

#include "compiler/graph/edit/Build.h"

namespace heddle::graph {

/// The elements of a matrix on one side of a diagonal, which belongs to it: with `isLower` those of
/// row + shift >= column, else those of row + shift <= column.
struct Band {
  bool isLower;
  Dim shift;

  /// All other elements.
  Band complement() const { return {!isLower, isLower ? shift + Dim(1) : shift - Dim(1)}; }
  bool operator==(const Band &other) const {
    return isLower == other.isLower && shift == other.shift;
  }
};

/// The band on which a mask holds, in the last two dimensions and alike in all others; nullopt for
/// other masks. Those that compare row numbers with column numbers are found, constants, and parts
/// of both.
std::optional<Band> bandOf(mlir::Value mask);

/// A mask of the elements before a place that each row has: a comparison of column numbers with it.
struct RowEnds {
  mlir::Operation *compares;
  unsigned places; // the operand that is a place for each row, broadcast
  bool isIncluded; // whether the element at the place belongs to the mask, too
};

/// The ends of the rows of a mask, perhaps broadcast to more matrices; nullopt for other masks.
std::optional<RowEnds> rowEndsOf(mlir::Value mask);

/// The mask of these dimensions, from row and column numbers.
mlir::Value maskOf(Build &build, llvm::ArrayRef<Dim> dims, const Band &band);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_EDIT_BAND_H
