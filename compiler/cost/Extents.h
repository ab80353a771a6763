// Extents: a group as the loops that a tile cuts: so many matrices of rows by columns, each element
// of which is a sum over the depth.
#ifndef HEDDLE_COST_EXTENTS_H
#define HEDDLE_COST_EXTENTS_H

#include "compiler/graph/Graph.h"

namespace heddle::cost {

/// Doubles, since products of sizes may leave int64.
struct Extents {
  mlir::Operation *root = nullptr; // the product, reduction or other op with most arithmetic
  bool isProduct = false;
  double batches = 1, rows = 1, columns = 1;
  double depth = 1;        // 1 for other than products
  double taps = 1;         // positions of a convolution's window, a factor of the depth
  double elementBytes = 4; // of the left operand
};

/// Whether all sizes in the group are constant.
bool hasConstantSizes(graph::GroupOp group);

/// Of a group with constant sizes. An element of a product's result is in row and column of a
/// matrix as register tiles see it: pixels, or those of one line, are rows, and filters columns.
/// For a reduction, rows are what it keeps; for any other op, all dimensions but the last.
Extents extentsOf(graph::GroupOp group);

/// The product of the sizes, which are constant.
double countOf(llvm::ArrayRef<graph::Dim> dims);

} // namespace heddle::cost

#endif // HEDDLE_COST_EXTENTS_H
