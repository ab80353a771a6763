// ProductShape: a matmul or channels-last convolution as rows times columns.
#ifndef HEDDLE_LOWER_CONTRACTION_PRODUCTSHAPE_H
#define HEDDLE_LOWER_CONTRACTION_PRODUCTSHAPE_H

#include "compiler/lower/Kernel.h"
#include "compiler/mechanism/Product.h"

namespace heddle::lower {

/// One dimension of the rows: how far it moves in A.
struct RowDim {
  Dim extent;
  Dim aStride;        // elements of A
  bool joins = false; // walks A contiguously with the dimension before it
};

/// Taps of a window along one spatial dimension: how many, and how far apart in A.
struct Taps {
  Dim count, aStep;
  int64_t dimension; // of the spatial ones
};

/// The root of the group as a product.
struct ProductShape {
  mlir::Operation *root = nullptr;
  Value a, b;
  llvm::SmallVector<RowDim> rows;
  Dim columns, reduction, groups = Dim(1);
  Dim taps = Dim(1);                 // of a window, in all
  Dim aGroupStride = Dim(0);         // elements of A from one group to the next
  Dim aStep = Dim(1);                // and from one step of the reduction to the next
  llvm::SmallVector<Taps, 2> pieces; // of the reduction, outside of the contiguous
  Dim length;
  llvm::SmallVector<int64_t> batches;      // row dimensions that B has too
  DimVector bBatch;                        // sizes of B's leading dimensions
  std::optional<graph::Band> band;         // of A's matrices, outside of which elements count as 0
  std::optional<mechanism::Limits> limits; // beyond which nothing counts
  bool isCut() const { return band || limits; }
  bool needsBorder = false;
  llvm::SmallVector<int64_t> low, high; // borders of the spatial dimensions
};

ProductShape readShape(const mechanism::Product &product);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_CONTRACTION_PRODUCTSHAPE_H
