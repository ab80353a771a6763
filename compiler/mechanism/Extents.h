// Extents: a product as the loops that a register tile cuts. Whoever chooses tiles, estimates tasks
// or emits them asks here how many rows and columns there are.
#ifndef HEDDLE_MECHANISM_EXTENTS_H
#define HEDDLE_MECHANISM_EXTENTS_H

#include "compiler/graph/Graph.h"

namespace heddle::mechanism {

/// Matrices of rows by columns, each element of which is a sum over the depth.
struct Extents {
  graph::Dim batches = 1, rows = 1, columns = 1, depth = 1;
  graph::Dim taps = 1; // positions of a convolution's window, a factor of the depth
};

/// Reads a matmul, whose batches with one right operand are rows of one matrix; a convolution,
/// whose rows are the pixels of one line, or of all images if it reads each pixel once, and whose
/// columns are the filters of a group; or the gradient of a convolution's filters, whose rows are
/// the weights of one filter, and whose sum is over the pixels of all images.
Extents extentsOfProduct(mlir::Operation *op);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_EXTENTS_H
