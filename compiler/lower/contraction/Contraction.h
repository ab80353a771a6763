// Contraction: matmul and channels-last convolution through one register tile, with the epilogue in
// registers.
//
// What tiles and panels are is in Layout, how operands are read in Left and Right, what follows the
// product in Epilogue, and what sums leave out in Cut; here are the tasks and the tiles of each.
#ifndef HEDDLE_LOWER_CONTRACTION_CONTRACTION_H
#define HEDDLE_LOWER_CONTRACTION_CONTRACTION_H

#include "compiler/lower/contraction/Epilogue.h"
#include "compiler/lower/contraction/Left.h"
#include "compiler/lower/contraction/MatrixTile.h"
#include "compiler/lower/contraction/Right.h"

namespace heddle::lower {

class Contraction {
public:
  Contraction(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule)
      : layout(kernel, group, schedule), epilogue(layout), matrices(layout, left), kernel(kernel),
        shape(layout.shape), left(layout), band(layout) {}

  /// As of the layout. Writes no code.
  mlir::LogicalResult prepare(mlir::ValueRange results) { return layout.prepare(results); }
  /// The phases before the products: constants packed, images bordered, other right operands
  /// packed, unless emitProducts follows and its tasks can do that.
  void emitOperands(bool mayPackInTasks = false);
  /// Emits the operands with a right one that is read in another way.
  void emitOperands(std::unique_ptr<RightOperand> operand);
  /// Lets a tile have scratch that begins after so many bytes; where it ends.
  Dim scratchOfTile(const Dim &bytes);
  /// Writes what `emit` does, tiles [first, end) by these panels; before several tiles, the panels
  /// are put into the scratch.
  void emitShared(Value first, Value end, Value firstPanel, Value endPanel,
                  llvm::function_ref<Values()> emit);
  Dim panelBytes() const; // at most, in the scratch
  /// Whether panels are codes that tiles decode, or tasks for several tiles; or tasks alone.
  bool isCoded() const { return right->scratch() == RightOperand::Scratch::Shared; }
  bool decodesAlways() const { return isCoded() && layout.isShort(); }
  /// The phase that computes and stores the results.
  void emitProducts();
  /// Tiles [first, end) by panels [firstPanel, endPanel).
  void emitTiles(Elements &e, const ProductLayout::Tiling &tiling, Value first, Value end,
                 Value firstPanel, Value endPanel);

  ProductLayout layout; // what is changed in it holds from emitOperands on
  Epilogue epilogue;
  MatrixTile matrices;

private:
  using Tiling = ProductLayout::Tiling;
  /// Elements of a pointer, `step` of them for each step of the reduction.
  struct Ahead {
    Value from, at, step;
  };

  std::optional<Ahead> ahead(Value a, Value b, Value firstRow, Value chunk, int64_t rows);
  bool hasIdleTaps(const Taps &taps) const;
  ReductionPiece pieceOf(const Taps &taps, const Indices &place, llvm::ArrayRef<Value> rowNumbers);
  void emitTileAt(Elements &e, const Tiling &tiling, Value outer, Value tile, Value firstPanel,
                  Value endPanel);
  /// Places of the rows of the run that is walked for the `outer`-th time.
  struct Place {
    Indices indices; // outside of tiles
    Value matrix;    // of the right operand
    Value a;         // the first element of the left one
  };
  Place placeOf(Elements &e, Value outer);
  void emitMatrixTile(Elements &e, Value outer, Value firstRow, Value count, Value firstPanel,
                      Value endPanel);
  void emitTile(Elements &e, Value outer, Value tileNumber, Value firstRow, int64_t tileRows,
                bool clamp, Value firstPanel, Value endPanel);
  Values emitRest(const Tiling &tiling, Value firstRow,
                  llvm::function_ref<Values(int64_t rows, bool clamp)> emitOne);
  void emitPackedTasks(const Tiling &tiles, const Dim &chunk);
  Value dealtTile(Value number, Value count);

  KernelBuilder &kernel;
  const ProductShape &shape;
  LeftOperand left;
  Band band;
  std::unique_ptr<RightOperand> right;
};

/// The only phase of a product of one row (mechanism::Product::isOneRow).
void emitOneRow(ProductLayout &layout);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_CONTRACTION_CONTRACTION_H
