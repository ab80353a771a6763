// Contraction: matmul and channels-last convolution through one register tile, with the epilogue in
// registers.
//
// The result is seen as rows (all dimensions but the last) times columns. Rows are walked in tiles
// of the innermost row dimension; dimensions coalesce where both A and the epilogue let them.
// Columns come in panels of the packed right operand: constants are packed at compile time; others
// in a phase of their own, or by the tasks that multiply by them where no two need the same; what
// memory has as one panel already is read there. Constants in fewer bits stay so (stored/Panels.h).
// A padded image is copied once into a buffer with borders. Products of 8-bit integers are prepared
// in Integers.cpp.
#ifndef HEDDLE_LOWER_CONTRACTION_CONTRACTION_H
#define HEDDLE_LOWER_CONTRACTION_CONTRACTION_H

#include "compiler/estimate/Sharing.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/contraction/Microkernel.h"
#include "compiler/lower/contraction/ProductShape.h"
#include "compiler/lower/elements/Elements.h"
#include "compiler/lower/stored/Panels.h"

namespace heddle::lower {

class Contraction {
public:
  Contraction(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule) {}
  virtual ~Contraction() = default;

  /// Fails where register tiles cannot serve the product and what lies between it and `results`,
  /// which have its shape. Writes no code.
  mlir::LogicalResult prepare(mlir::ValueRange results);
  /// The phases before the products: constants packed, images bordered, other right operands
  /// packed, unless emitProducts follows and its tasks can do that.
  void emitOperands(bool mayPackInTasks = false);
  /// The phase that computes and stores the results.
  void emitProducts();
  /// The only phase of a product of one row (mechanism::Product::isOneRow).
  void emitOneRow();

  /// Tiles of the innermost run of rows. Sizes that are known: tiles of `base` rows, the first
  /// `larger` of them one row more. Else full tiles and a clamped last one.
  struct Tiling {
    Dim rows, count;
    bool isExact;
    int64_t base, larger;
    Dim outer; // how often the run is walked
    int64_t mostRows() const { return base + (larger > 0 ? 1 : 0); }
  };
  Tiling tiling();
  Value firstRowOf(const Tiling &tiling, Value tile);
  /// Tiles [first, end) by panels [firstPanel, endPanel).
  void emitTiles(Elements &e, const Tiling &tiling, Value first, Value end, Value firstPanel,
                 Value endPanel);
  /// As many panels as the L2 holds with room to spare, in chunks that are about equal.
  estimate::Sharer sharer() const;
  int64_t panelsOfChunk() const;

  /// Where set, it takes the lane values of results, which are at `row` of the innermost run and
  /// from `column` on, instead of their memory.
  using Store =
      std::function<void(Elements &e, Value result, Value value, Value row, Value column)>;
  Store store;

  mlir::Operation *product() const { return shape.root; }
  bool isOneRow() const { return hasOneRow; }
  const Dim &columns() const { return shape.columns; }
  const Dim &panelCount() const { return panels; }
  int64_t panelWidth() const { return vectors * kernel.machine.lanes; }
  Dim work() const;
  Dim operandBytes() const; // of the right operand

protected:
  /// What emitSums wants of a constant right operand.
  virtual void packConstant();
  /// The same of one known only at run time, in a phase of its own.
  virtual void emitPacking();
  /// Of a product with a band, and the number of its panel.
  llvm::SmallVector<Value> emitBandSums(const RegisterTile &tile, const TileProduct &product,
                                        llvm::ArrayRef<Value> rowNumbers, Value panelNumber);
  /// The vectors of the result's columns, row by row.
  virtual llvm::SmallVector<Value> emitSums(const RegisterTile &tile, const TileProduct &product);

  KernelBuilder &kernel;
  mlir::Block *group;
  const Schedule &schedule;
  ProductShape shape;
  Type element, accumulator; // what the tile reads and sums
  int64_t tileRows = 8, vectors = 3, packedData = -1, packedTemporary = -1;
  int64_t parts = 1; // of a panel, as `slices` say
  Dim panels;

private:
  /// Elements of a pointer, `step` of them for each step of the reduction.
  struct Ahead {
    Value from, at, step;
  };

  mlir::LogicalResult readTypes();
  /// Columns of each part that a panel has.
  int64_t partWidth() const { return vectors / parts * kernel.machine.lanes; }
  llvm::SmallVector<int64_t> placedColumns() const;
  void packIntegers(const PanelSource &source, std::vector<char> &packed);
  void addConstantShift(llvm::ArrayRef<char> packed);
  void emitCopy();
  void emitBorderCopy();
  void packFilters(Elements &e, Value groupNumber, llvm::ArrayRef<Value> columns, Value target);
  Indices placeInRight(Elements &e, const Indices &matrix, Value row, Value column);
  void packColumns(Elements &e, const Indices &matrix, Value column, Value target, int64_t shift);
  void packDots(Elements &e, const Indices &matrix, Value column, Value target, Value panelNumber,
                int64_t vector);
  Value packDotPiece(Elements &e, const Indices &matrix, Value column, Value firstRow, Value target,
                     Value sum);
  Value converted(Value lanes);
  void noteWhole(Value target, Value panelNumber);
  void packTransposed(Elements &e, Value rows, const Indices &matrix, Value column, Value target,
                      int64_t shift);
  void decodePanels(Value firstPanel, Value endPanel);
  void coalesceRows();
  bool epilogueCoalesces(size_t dimension) const;
  bool hasIdleTaps(const Taps &taps) const;
  ReductionPiece pieceOf(const Taps &taps, const Indices &place, llvm::ArrayRef<Value> rowNumbers);
  std::optional<Ahead> ahead(Value a, Value b, Value firstRow, Value chunk, int64_t rows);
  void emitTileAt(Elements &e, const Tiling &tiling, Value outer, Value tile, Value firstPanel,
                  Value endPanel);
  // A left operand whose steps are apart in memory (Left.cpp).
  bool copiesLeft() const { return !shape.aStep.isConstant(1); }
  Dim copiedTileSize();
  Value copiedTile(Value outer, Value tile);
  void emitLeftCopy();
  std::pair<Value, Value> placeOutside(Elements &e, Value outer, Indices &place);
  void emitTile(Elements &e, Value outer, Value tileNumber, Value firstRow, int64_t tileRows,
                bool clamp, Value firstPanel, Value endPanel);
  Value dealtTile(Value number, Value count);
  Value limitAt(Elements &e, Value limit, llvm::ArrayRef<Index> batch, const Dim &most);
  Value depthOf(Elements &e, llvm::ArrayRef<Index> batch, Value column);
  Values emitRest(const Tiling &tiling, Value firstRow,
                  llvm::function_ref<Values(int64_t rows, bool clamp)> emitOne);
  void finishTile(Elements &e, llvm::ArrayRef<Value> sums, const Indices &place,
                  llvm::ArrayRef<Value> rowNumbers, Value firstColumn);
  void storeTile(Elements &e, llvm::ArrayRef<Value> sums, const Indices &place,
                 llvm::ArrayRef<Value> rowNumbers, Value firstColumn, bool isMasked);
  llvm::SmallVector<Value> startOf(Value panelNumber, int64_t rows);
  Dim panelRows() const; // of the packed right operand
  bool isOnePanel() const;
  bool canPackInTasks();
  bool isInvariant(Value operand) const;
  void packPanel(Elements &e, Value batch, Value panel, Value target, Value task);
  void packChunk(Value batch, Value firstPanel, Value endPanel);
  void emitPackedTasks(const Tiling &tiles, const Dim &chunk);
  bool isShifted() const {
    bool wantsUnsigned = kernel.machine.dot == program::Dot::Bytes;
    return depth == 4 && graph::elementOf(shape.a).isUnsignedInteger() != wantsUnsigned;
  }
  /// What the sums begin with, for each unit of a column's sum: the opposite of what was added to
  /// A.
  int64_t shiftOfSums() const { return kernel.machine.dot == program::Dot::Bytes ? -128 : 128; }
  /// What is packed in the run.
  Value packedPointer() {
    return packsInTasks ? kernel.scratch() : kernel.temporary(packedTemporary);
  }
  /// The panels of a right operand that is not decoded.
  Value bPointer() {
    if (isInPlace)
      return kernel.pointer(shape.b);
    return packedData >= 0 ? kernel.data(packedData) : packedPointer();
  }
  Value aPointer() {
    if (leftTemporary >= 0)
      return kernel.temporary(leftTemporary);
    return border >= 0 ? kernel.temporary(border) : kernel.pointer(shape.a);
  }

  llvm::SmallVector<Value> results;
  llvm::SetVector<mlir::Operation *> members; // what the results follow from, in the group
  /// Slices of the last dimension that are between the product and all results; a panel then has
  /// columns of each part side by side. Else there is one part, the whole.
  llvm::SmallVector<graph::SliceOp> slices;
  Dim partColumns;
  bool hasOneRow = false;
  int64_t border = -1, leftTemporary = -1;      // copies of the left operand
  bool isInPlace = false, packsInTasks = false; // the right operand
  std::optional<StoredPanels> stored;           // of a constant in fewer bits
  Value decodedFrom; // the first panel that is in the scratch, if any are
  /// Of a band: for each panel, whether it has numbers that are not finite, of which 0 times are
  /// NaN; and whether a constant has any.
  int64_t wholeTemporary = -1;
  bool isWhole = false;
  /// Of the instruction, as TileProduct says; above 1 for integers of 8 bits.
  int64_t depth = 1;
  /// An A whose sign instructions of depth 4 do not take is read plus or minus 128; the sums begin
  /// with what this adds.
  int64_t startData = -1, startTemporary = -1;
  /// Runs of row dimensions; the last one is tiled. Each is indexed by its last dimension.
  struct Run {
    Dim extent, aStride;
    int64_t dimension;
  };
  llvm::SmallVector<Run> runs;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_CONTRACTION_CONTRACTION_H
