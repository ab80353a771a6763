// Transform: the matrices of Winograd's convolution F(m x m, 3 x 3), as code and as numbers.
//
// Toom and Cook's points are 0, infinity and pairs +-p, one pair for m = 2 and two for m = 4. A row
// of the input's matrix at +-p is x (x +- p) R(x^2), so the two rows of a pair share their even and
// their odd half. With pairs 3/4 and 3/2 the errors of m = 4 are a fifth of those of the usual 1
// and 2, and all coefficients are exact (bench/notes/2026-11-21-winograd.md).
#ifndef HEDDLE_LOWER_WINOGRAD_TRANSFORM_H
#define HEDDLE_LOWER_WINOGRAD_TRANSFORM_H

#include "compiler/program/build/Code.h"

namespace heddle::lower {

using mlir::Value;
using program::Code;
using program::Values;

class WinogradTransform {
public:
  /// `outputs`: m, 2 or 4.
  explicit WinogradTransform(int64_t outputs);

  int64_t outputs() const { return 2 * static_cast<int64_t>(pairs.size()); }
  int64_t inputs() const { return outputs() + 2; }

  /// One column of a tile of the image, `inputs` values, and what it becomes.
  Values input(Code &code, llvm::ArrayRef<Value> pixels) const;
  /// One column of products, `inputs` values, and the `outputs` results.
  Values output(Code &code, llvm::ArrayRef<Value> products) const;
  /// One column of a filter, 3 values, and the `inputs` values that it becomes.
  Values filter(Code &code, llvm::ArrayRef<Value> taps) const;
  /// The inputs x inputs numbers, row by row, of a filter of 3 x 3 numbers.
  llvm::SmallVector<double> filter(llvm::ArrayRef<double> taps) const;

private:
  /// Coefficients of the product of x - q^2 over all pairs but `left`, lowest first.
  llvm::SmallVector<double> product(size_t left) const;
  std::vector<double> pairs;
  std::vector<std::array<double, 3>> filterRows;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_WINOGRAD_TRANSFORM_H
