// Extents: a group with constant sizes in numbers: so many matrices of rows by columns, each
// element of which is a sum over the depth.
#ifndef HEDDLE_ESTIMATE_EXTENTS_H
#define HEDDLE_ESTIMATE_EXTENTS_H

#include "compiler/graph/Graph.h"

namespace heddle::estimate {

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

/// Extents of a group with constant sizes: of its product (mechanism/Extents.h), else a reduction,
/// whose rows are what it keeps, else any other op, whose rows are all dimensions but the last.
Extents extentsOf(graph::GroupOp group);

/// Value of a constant size; 0 for any other.
double countOf(const graph::Dim &size);
/// Product of such values.
double countOf(llvm::ArrayRef<graph::Dim> dims);

} // namespace heddle::estimate

#endif // HEDDLE_ESTIMATE_EXTENTS_H
