// Squares: elements that are read along one axis of the results and stored along another. Lanes go
// along the axis of reading; a square of registers is turned before it is stored.
#ifndef HEDDLE_LOWER_POINTWISE_SQUARES_H
#define HEDDLE_LOWER_POINTWISE_SQUARES_H

#include "compiler/lower/Schedule.h"

namespace heddle::lower {

struct Squares {
  size_t lanesAxis; // what is computed has its lanes along this axis of the results,
  size_t rowAxis;   // what is stored along this one,
  Dim rowExtent;    // which has this size.
  /// Rows are a few elements, and lie one after the other: vectors of them are interleaved.
  bool isInterleaved = false;
  /// Places of this axis after each place along rowAxis: a square for each of them is turned, and
  /// their columns are interleaved.
  int64_t parts = 1;
  size_t partAxis = 0;
};

/// The columns of the square whose rows are `lanes` lane values of any one type.
Values columnsOf(Code &code, Values rows);

/// Places from low to high, without it.
struct Span {
  Value low, high;
};

/// Stores the values at `place`, at these of the axis of lanes and of the other one: all of them
/// where rows are interleaved.
void storeSquares(Elements &elements, llvm::ArrayRef<Value> values, const Squares &squares,
                  llvm::ArrayRef<Index> place, Span lanes, Span rows);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_POINTWISE_SQUARES_H
