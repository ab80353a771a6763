// Filters: a convolution of few filters with the reduction in lanes.
//
// A tile of filters in lanes leaves those idle that have no filter. Here vectors are pieces of a
// row of the image, whose pixels lie side by side, and of a filter's row, filled up with zeros. A
// register tile has an accumulator per pixel and filter; the sums over their lanes make vectors of
// filters again, so borders, tiles and epilogue are those of Contraction.
#ifndef HEDDLE_LOWER_NARROW_FILTERS_H
#define HEDDLE_LOWER_NARROW_FILTERS_H

#include "compiler/lower/contraction/Right.h"

namespace heddle::lower {

/// Few filters as the right operand of a product of one panel.
class NarrowFilters : public RightOperand {
public:
  explicit NarrowFilters(const ProductLayout &layout);

  void prepare() override;
  Value pointer() override;
  Value constant() override;
  llvm::SmallVector<Value> sums(const RegisterTile &tile, const TileProduct &product,
                                Value panel) override;

private:
  void packConstant(graph::ConstantOp constant);
  void emitPacking();
  Values sumPieces(const TileProduct &product, size_t depth, Value aShift, Value piece,
                   mlir::ValueRange sums);
  Values sumRun(const TileProduct &product, Value aShift, Value piece, mlir::ValueRange sums);
  Values step(llvm::ArrayRef<Value> pixels, Value panel, Value place, Value mask,
              mlir::ValueRange sums);
  int64_t vectorsOfRun() const { return llvm::divideCeil(run, kernel.machine.lanes); }

  const ProductShape &shape;
  Type element;
  int64_t filters, run;           // elements that are contiguous in the image and in a filter's row
  int64_t data = -1, packed = -1; // of a constant; of others, a temporary
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_NARROW_FILTERS_H
