// Filters: a convolution of few filters with the reduction in lanes.
//
// A tile of filters in lanes leaves those idle that have no filter. Here vectors are pieces of a
// row of the image, whose pixels lie side by side, and of a filter's row, filled up with zeros. A
// register tile has an accumulator per pixel and filter; the sums over their lanes make vectors of
// filters again, so borders, tiles and epilogue are those of Contraction.
#ifndef HEDDLE_LOWER_NARROW_FILTERS_H
#define HEDDLE_LOWER_NARROW_FILTERS_H

#include "compiler/lower/contraction/Contraction.h"

namespace heddle::lower {

class NarrowConv : public Contraction {
public:
  using Contraction::Contraction;

  mlir::LogicalResult prepare();
  void emit();

private:
  void packConstant() override;
  void emitPacking() override;
  llvm::SmallVector<Value> emitSums(const RegisterTile &tile, const TileProduct &product) override;
  Values sumPieces(const TileProduct &product, size_t depth, Value aShift, Value piece,
                   mlir::ValueRange sums);
  Values sumRun(const TileProduct &product, Value aShift, Value piece, mlir::ValueRange sums);
  Values step(llvm::ArrayRef<Value> pixels, Value panel, Value place, Value mask,
              mlir::ValueRange sums);
  int64_t vectorsOfRun() const { return llvm::divideCeil(run, kernel.machine.lanes); }

  int64_t filters = 0, run = 0; // elements that are contiguous in the image and in a filter's row
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_NARROW_FILTERS_H
