// Integers: products through instructions that take 2 or 4 elements of the reduction at once: those
// of 8-bit integers, whose sums are exact in i32, and of floats rounded to bf16, whose sums are
// f32.
//
// Quads multiply u8 by i8 (vpdpbusd, usdot) or i8 by i8 (sdot). An A of the other sign is copied
// with its highest bit turned over, which adds 128 to a signed element and takes 128 from an
// unsigned one, and the sums begin with -128 or 128 times the sum of the column of B. All other
// mixes go in pairs of i16 (vpmaddwd, smull): A is copied as i16, B is packed as i16. vpmaddubsw
// saturates, so it has no place here.
#ifndef HEDDLE_LOWER_CONTRACTION_INTEGERS_H
#define HEDDLE_LOWER_CONTRACTION_INTEGERS_H

#include "compiler/lower/contraction/Layout.h"
#include "compiler/lower/contraction/Microkernel.h"

namespace heddle::lower {

/// Initial accumulator per unit of a column's sum: the opposite of the number added to A.
inline int64_t shiftOfSums(const program::Machine &machine) {
  return machine.dot == program::Dot::Bytes ? -128 : 128;
}

/// The bits of the bf16 that is next to the number, of two the even one. NaNs are quiet.
int64_t shortBitsOf(float number);

/// Appends one matrix of a constant right operand.
void packIntegers(const ProductLayout &layout, const PanelSource &source,
                  std::vector<char> &packed);
/// For each of the columns of packed panels, shiftOfSums() times its sum.
std::vector<char> startsOf(const ProductLayout &layout, llvm::ArrayRef<char> packed,
                           int64_t columns);
/// The accumulators of a tile at panel `panelNumber`, from starts at `pointer`.
llvm::SmallVector<Value> startAt(const ProductLayout &layout, Value pointer, Value panelNumber,
                                 int64_t rows);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_CONTRACTION_INTEGERS_H
