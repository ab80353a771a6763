// Layout: a product as tiles of rows by panels of columns: what all parts of its kernel agree on.
//
// The result is seen as rows (all dimensions but the last) times columns. Rows are walked in tiles
// of the innermost row dimension; dimensions coalesce where both A and the epilogue let them.
// Columns come in panels of the right operand.
#ifndef HEDDLE_LOWER_CONTRACTION_LAYOUT_H
#define HEDDLE_LOWER_CONTRACTION_LAYOUT_H

#include "compiler/estimate/Sharing.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/contraction/ProductShape.h"
#include "compiler/lower/elements/Elements.h"

namespace heddle::lower {

class ProductLayout {
public:
  ProductLayout(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule) {}

  /// Fails where register tiles cannot serve the product and what lies between it and `results`,
  /// which have its shape.
  mlir::LogicalResult prepare(mlir::ValueRange results);

  /// Tiles of the innermost run of rows. Sizes that are known: tiles of `base` rows, the first
  /// `larger` of them one row more. Else full tiles and a clamped last one.
  struct Tiling {
    Dim rows, count;
    bool isExact;
    int64_t base, larger;
    Dim outer; // how often the run is walked
    int64_t mostRows() const { return base + (larger > 0 ? 1 : 0); }
  };
  Tiling tiling() const;
  Value firstRowOf(const Tiling &tiling, Value tile) const;
  /// The number of the group, and where A begins there; adds the indices of the dimensions outside
  /// of the tiles.
  std::pair<Value, Value> placeOutside(Elements &e, Value outer, Indices &place) const;

  int64_t panelWidth() const { return vectors * kernel.machine.lanes; }
  /// Columns of each part that a panel has.
  int64_t partWidth() const { return vectors / parts * kernel.machine.lanes; }
  /// Whether no panel has places without a column.
  bool arePanelsFull() const { return partColumns.mod(Dim(partWidth())).isConstant(0); }
  /// Rows of the packed right operand, those included that fill up its pieces.
  Dim panelRows() const;
  /// Shares tiles and panels among tasks.
  estimate::Sharer sharer() const;
  /// The panels that meet rows which stay in the L2 at a time, and those that a task takes at most.
  int64_t panelsOfChunk() const;
  Dim panelsOfTask() const;
  Dim work() const;
  Dim operandBytes() const; // of the right one
  int64_t elementBytes() const { return graph::bytesOf(element); }

  /// Whether A is read plus or minus 128, since instructions of vectors of depth 4 do not take its
  /// sign; the sums begin with what this adds.
  bool isShifted() const;

  KernelBuilder &kernel;
  mlir::Block *const group;
  const Schedule &schedule;
  ProductShape shape;
  Type element, accumulator; // what the tile reads and sums
  int64_t tileRows = 8, vectors = 3;
  int64_t parts = 1; // of a panel, as `slices` say
  Dim panels, partColumns;
  bool isOneRow = false;
  /// Depth of the instruction, as TileProduct says; above 1 for integers of 8 bits and bf16.
  int64_t depth = 1;
  /// Whether factors are rounded to bf16, whose bits `element` then is.
  bool isShort() const { return depth > 1 && mlir::isa<mlir::FloatType>(accumulator); }
  /// Whether the left operand has been rounded by what makes it.
  bool isStoredShort() const { return isShort() && graph::storageOf(shape.a).isBF16(); }
  bool mayHaveMatrices = false; // set by kernels that keep scratch for a MatrixTile
  /// Whether tiles are products of packed matrices (MatrixTile.h).
  bool hasMatrices = false;
  /// Whether such registers read rows of the left operand, or of its copy, where they lie: what
  /// follows a piece there meets the zeros that fill up panels, which a NaN would outlive.
  bool readsMatrices() const {
    return hasMatrices && shape.aStep.isConstant(1) && shape.pieces.size() <= 1 &&
           (!isShort() || shape.length.mod(graph::Dim(stepLength())).isConstant(0));
  }
  /// Elements of a piece, filled up to whole steps.
  Dim filledLength() const {
    return shape.length.ceilDiv(graph::Dim(stepLength())) * Dim(stepLength());
  }
  /// Elements that a piece of the reduction is filled up to a multiple of, with zeros.
  int64_t stepLength() const { return hasMatrices ? 16 * depth : depth; }
  llvm::SmallVector<Value> results;
  /// Slices of the last dimension that are between the product and all results; a panel then has
  /// columns of each part side by side. Else there is one part, the whole.
  llvm::SmallVector<graph::SliceOp> slices;
  /// Runs of row dimensions; the last one is tiled. Each is indexed by its last dimension.
  struct Run {
    Dim extent, aStride;
    int64_t dimension;
  };
  llvm::SmallVector<Run> runs;

private:
  int64_t typicalPanelBytes() const;
  mlir::LogicalResult readTypes();
  void coalesceRows(const mechanism::Product &product);
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_CONTRACTION_LAYOUT_H
