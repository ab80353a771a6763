// Winograd: a 3x3 convolution of stride 1 as products of transformed tiles, F(m x m, 3 x 3).
//
// Tiles of m x m pixels of all images are one list. A task takes a block of them: it transforms
// what they read of the image into the worker's scratch, V[run][place][tile][channel], then for
// each panel of output channels multiplies with the filters to M[tile][place][column], transforms
// that back and stores it with the elementwise epilogue. Image borders are masked loads, so there
// is no copy with borders.
//
// A dilated convolution is one of each d x d pixels of the image that lie a dilation apart: tiles
// are of such pixels.
//
// Filters are transformed when the model is compiled or, with the knob `late`, by each task, a run
// of channels at a time: they then take the memory of plain ones.
//
// Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, sections 4.1 and 4.2; here V
// and M of a block stay in the L2 instead of passing through memory.
#ifndef HEDDLE_LOWER_WINOGRAD_WINOGRAD_H
#define HEDDLE_LOWER_WINOGRAD_WINOGRAD_H

#include "compiler/lower/Schedule.h"
#include "compiler/lower/contraction/Microkernel.h"
#include "compiler/lower/winograd/Transform.h"

namespace heddle::lower {

class Winograd {
public:
  Winograd(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule), transform(schedule.knob("tile", 2)) {}

  mlir::LogicalResult prepare();
  void emit();

private:
  static constexpr int64_t kTaps = 9;

  /// A tile of the result: its image, and its first row and column.
  struct Place {
    Value image, row, column;
  };

  /// A register tile of the products: which of V's and M's places, and of the panel's filters.
  struct Strip {
    Value panel, place, run, length; // so many channels of that run
    Value first, count;              // its first tile, and how many the block has
    bool isFirst;                    // run
  };

  void chooseBlocks();
  void layOut();
  void packFilters();
  void copyFilters(Value panel, Value channel, Value length);
  Place placeOf(Value tile);
  void emitBlock(Elements &e, Value block, Value firstPanel, Value endPanel);
  void emitInput(Elements &e, Value number, Value tile);
  void transformInput(Elements &e, Value source, Value target, llvm::ArrayRef<Value> rows,
                      llvm::ArrayRef<Value> columns);
  void emitFilters(Value panel, Value channel, Value length);
  void emitStrip(const Strip &strip);
  std::pair<Value, Value> filtersOf(const Strip &strip);
  void fetchFilters(const Strip &strip, TileProduct &product);
  void emitProducts(Value panel, Value count);
  void emitOutput(Elements &e, Value number, Value tile, Value panel);
  void transformOutput(Elements &e, Value source, Value column, const Place &place);
  void storePixel(Elements &e, const Place &place, Value i, Value j, Value value, Value column);

  bool areFiltersKnown() { return conv.getW().getDefiningOp<graph::ConstantOp>() != nullptr; }
  /// Distance from one row of a tile to the next, and from one column.
  int64_t step(size_t axis) { return conv.getDilations()[axis]; }
  Dim tilesAlong(size_t axis);
  Value pixelOf(Value tile, size_t axis);
  int64_t outputs() const { return transform.outputs(); }
  int64_t inputs() const { return transform.inputs(); }
  int64_t places() const { return inputs() * inputs(); }
  int64_t panelWidth() const { return vectors * kernel.machine.lanes; }
  int64_t panelCount() const { return llvm::divideCeil(filters, panelWidth()); }
  Dim work() const;

  KernelBuilder &kernel;
  mlir::Block *group;
  const Schedule &schedule;
  WinogradTransform transform;
  graph::ConvOp conv;
  Type element;
  DimVector x, y; // sizes
  int64_t channels = 0, filters = 0, tileRows = 8, vectors = 3, filterData = -1;
  bool isLate = false;       // are filters transformed by each task?
  int64_t run = 0, runs = 0; // channels of a run, a multiple of the lanes; how many runs
  Dim tilesDown, tilesAcross, tileCount;
  int64_t tilesOfBlock = 1; // a multiple of tileRows
  Dim blocks, chunks;       // of tiles and of panels; a task is one of each
  /// Distances in elements, none a power of 2: of places of V, of those of a run's filters and of
  /// tiles of M; and where M and the filters begin in the scratch.
  int64_t inputStride = 0, filterStride = 0, productStride = 0, productsAt = 0, filtersAt = 0;
  int64_t copyAt = 0; // of a run's filters known only at run time, as they are
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_WINOGRAD_WINOGRAD_H
