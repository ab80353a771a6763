// FilterGradient: the gradient of a convolution's filters, without windows laid out as columns.
//
// For each place of the window it is a product over positions, dw[c, o] = sum over p of
// x[p + place, c] * dy[p, o]. With both images channels last a step of a register tile is a vector
// of dy per column and an element of the image per row. Positions come in lines, rows of dy or
// pieces of them; borders are bounds of a line's columns, and lines that are left out, for each
// place. So nothing is padded and nothing outside of the image is read.
//
// A task has a chunk of channels. It takes so many lines at a time that copies of what they meet
// stay in the L2: the image in strips of a tile's rows, for all panels of columns, and each panel
// of dy, for all places and channels. So a tile reads both side by side, whatever the strides are.
// A long sum is divided into parts, which a second phase adds up.
//
// Where each group has one channel and one filter, channels are in lanes (Depthwise.cpp).
#ifndef HEDDLE_LOWER_GRADIENT_FILTERGRADIENT_H
#define HEDDLE_LOWER_GRADIENT_FILTERGRADIENT_H

#include "compiler/lower/Schedule.h"

namespace heddle::lower {

class FilterGradient {
public:
  FilterGradient(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule) {}

  mlir::LogicalResult prepare();
  void emit();

private:
  using Ints = llvm::SmallVector<int64_t, 3>;

  /// A line as the table in a worker's scratch has it.
  struct Line {
    Value image;      // offset of its image's first element
    Values tops;      // of each outer dimension: where place 0 of the window is in the image
    Value begin, end; // columns
    Value start;      // offset of its first element of dy
  };
  /// A place of the window.
  struct Place {
    Values outer;     // shifts of rows
    Value column;     // of the image at column 0 of dy
    Value first, end; // columns whose element of the image is inside
  };
  /// A row of the image: its first element, and whether it is inside; null: it is.
  struct ImageRow {
    Value first, isInside;
    Value among(Code &code, Value count) const; // `count`, 0 outside
  };
  /// Columns of one line at one place that count, and where the image is there.
  struct Span {
    Value first, count, image;
  };
  /// The share of a task: channels [low, high) of a group, by a panel of its filters at a time.
  struct Block {
    Value group, panel, low, high;
    Value sums; // pointer to [panels][high - low][places][n], or to those of a panel
  };
  /// Channels from one on at one place of the window.
  struct Tile {
    Value channel, place;
    int64_t rows;
  };

  // Lines.cpp
  int64_t fields() const { return 4 + outerCount(); }
  int64_t outerCount() const { return window.size() - 1; }
  Dim lines() const;
  Value lineWidth(); // columns of a line, at most
  Value linesAtOnce();
  void emitTable(Value first, Value count);
  Line lineAt(Value number);
  Place placeAt(Value number);
  ImageRow imageRow(const Line &line, const Place &place);
  Span spanOf(const Line &line, const Place &place);
  /// Runs `body` for as many lines at a time as the caches hold; the table has them.
  void forEachLines(Value first, Value end, llvm::function_ref<void(Value count)> body);
  std::pair<Value, Value> linesOfPart(Value part);
  int64_t positions() const; // of these lines at most
  // A worker's scratch: the table, the panel of dy, the image, then sums.
  int64_t tableBytes() const;
  int64_t panelBytes() const { return copiesSlopes ? positions() * n * (int64_t)sizeof(float) : 0; }
  int64_t imageBytes() const;
  Value panelOfSlopes() { return scratchAt(tableBytes()); }
  Value stripsOfImage() { return scratchAt(tableBytes() + panelBytes()); }
  int64_t sumsAt() const { return tableBytes() + panelBytes() + imageBytes(); }
  Value scratchAt(int64_t bytes);

  // Strips.cpp
  int64_t outerPlaces() const { return places / window.back(); }
  /// Columns of dy are as many pixels apart in a strip.
  int64_t slotStep() const { return window.back() == 1 ? 1 : strides.back(); }
  int64_t reach() const { return (window.back() - 1) * dilations.back(); }
  int64_t imageSlots() const;
  Value slotsOf(Value columns);
  Value slotAt(Value line, Value outerPlace);
  Value stripSize();
  int64_t strips() const { return llvm::divideCeil(chunk(), m); }
  /// Elements of a strip for each position at most.
  int64_t copiesOfImage() const { return copiesImage ? outerPlaces() * slotStep() : 1; }
  struct Column {
    Value line, number; // counted from the line's first
  };
  Value pixelsInStrip(const Block &block, const Tile &tile, const Column &column);
  void copyImage(const Block &block, Value count);
  void copyRow(const Block &block, const Line &line, const ImageRow &row, Value firstSlot);
  /// Operands of a pixel's copy: pointers, its first element in both, and the distance of strips.
  struct Copy {
    Value from, source, to, target, apart;
  };
  void copyPixel(const Copy &copy, Value channels);

  // FilterGradient.cpp
  void flatten();
  int64_t vectors() const { return n / kernel.machine.lanes; }
  int64_t panels() const { return llvm::divideCeil(filters, n); }
  int64_t chunk() const;
  int64_t chunks() const { return llvm::divideCeil(channels, chunk()); }
  void emitSums();
  Value partialAt(Value part, const Block &block);
  void emitTask(const Block &block, Value part);
  void forEachPanel(const Block &block, llvm::function_ref<void(const Block &)> body);
  Value vectorsOf(const Block &block);
  Values masksOf(const Block &block);
  Value firstColumn(const Block &block);
  void copyPanel(const Block &block, Value count);
  void emitTiles(const Block &block, Value count);
  void emitTile(const Block &block, const Tile &tile, Value count);
  Value pixelsInImage(const Block &block, const Tile &tile, const Span &span);
  Value slopesInPanel(const Column &column);
  Value slopesInImage(const Block &block, const Line &line, const Column &column);
  /// Columns of a line, from pointers to the first one's on; masks of the vectors of dy.
  struct Meeting {
    Value pixels, slopes, count;
    int64_t rows;
    Values masks;
  };
  Values sumSpan(const Meeting &meeting, mlir::ValueRange sums);
  void storeResult(const Block &block, Value vector);
  void storeTurned(const Block &block, Value vector);
  Values sumOfParts(const Block &block, llvm::ArrayRef<Value> places);
  void emitAddition();

  // Depthwise.cpp
  bool isDepthwise() const { return channels == 1 && filters == 1 && groups > 1; }
  int64_t blocks() const { return llvm::divideCeil(groups, kernel.machine.lanes); }
  void emitDepthwise();
  void emitRow(const Line &line, Value outerPlace, Value sums);
  void sumRow(const Line &line, llvm::ArrayRef<Span> spans, Value block, Value sums);
  Values sumColumns(const Line &line, llvm::ArrayRef<Span> spans, Span columns, Value block,
                    mlir::ValueRange sums);
  void emitDepthwiseAddition();

  KernelBuilder &kernel;
  mlir::Block *group;
  const Schedule &schedule;
  graph::ConvFilterGradientOp op;
  Type element;
  Value image, slopes;                  // x and dy; the other way round where the product is turned
  DimVector x, dy;                      // [n, spatial..., c]
  Ints window, strides, dilations, low; // of each spatial dimension, the columns last
  int64_t groups = 1, places = 1;
  int64_t channels = 0, filters = 0; // of a group
  int64_t m = 0, n = 0, parts = 1;
  bool copiesImage = false, copiesSlopes = false, isTurned = false;
  int64_t partial = -1; // the sums of parts
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_GRADIENT_FILTERGRADIENT_H
