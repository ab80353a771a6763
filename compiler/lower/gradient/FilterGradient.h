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
// Where each group has one channel and one filter, channels are in lanes (Depthwise.h).
#ifndef HEDDLE_LOWER_GRADIENT_FILTERGRADIENT_H
#define HEDDLE_LOWER_GRADIENT_FILTERGRADIENT_H

#include "compiler/lower/gradient/Slopes.h"
#include "compiler/lower/gradient/Strips.h"

namespace heddle::lower {

class FilterGradient {
public:
  FilterGradient(KernelBuilder &kernel, const GradientShape &shape)
      : kernel(kernel), shape(shape), element(shape.element), lines(kernel, shape),
        strips(kernel, shape, lines), slopes(kernel, shape, lines) {}

  void emit();

private:
  using Block = GradientBlock;
  using Tile = GradientTile;

  int64_t vectors() const { return shape.n / kernel.machine.lanes; }
  void emitSums();
  Value partialAt(Value part, const Block &block);
  void emitTask(const Block &block, Value part);
  void forEachPanel(const Block &block, llvm::function_ref<void(const Block &)> body);
  Value vectorsOf(const Block &block);
  void emitTiles(const Block &block, Value count);
  void emitTile(const Block &block, const Tile &tile, Value count);
  Value pixelsInImage(const Block &block, const Tile &tile, const Span &span);
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

  KernelBuilder &kernel;
  const GradientShape &shape;
  const Type element;
  Lines lines;
  ImageStrips strips;
  SlopePanels slopes;
  int64_t partial = -1; // the sums of parts
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_GRADIENT_FILTERGRADIENT_H
