// Forms: how a tensor of the padded model lies in the ragged one, and which ops keep that.
#ifndef HEDDLE_RAGGED_FORMS_H
#define HEDDLE_RAGGED_FORMS_H

#include "compiler/graph/Graph.h"

namespace heddle::ragged {

using graph::Dim;
using graph::DimVector;

/// The two sizes of a ragged model, `size(of)`.
struct Names {
  std::string of, size;

  bool isOf(const Dim &dim) const { return llvm::is_contained(dim.symbolNames(), of); }
  bool isSize(const Dim &dim) const { return llvm::is_contained(dim.symbolNames(), size); }
  bool hasOf(llvm::ArrayRef<Dim> dims) const {
    return llvm::any_of(dims, [&](const Dim &dim) { return isOf(dim); });
  }
  bool hasSize(llvm::ArrayRef<Dim> dims) const {
    return llvm::any_of(dims, [&](const Dim &dim) { return isSize(dim); });
  }
  bool hasBoth(llvm::ArrayRef<Dim> dims) const { return hasOf(dims) && hasSize(dims); }
};

/// Sizes as those of rows: `size` is `size(of)`.
DimVector rowDims(llvm::ArrayRef<Dim> dims, const Names &names);
/// All rows as one: `of` is 1, and `size` the sum.
DimVector tokenDims(llvm::ArrayRef<Dim> dims, const Names &names);

/// Position of the elements of one index along `of` and `size`, if they lie together: one dimension
/// after the other, or both in one, after dimensions of 1.
struct Tokens {
  int64_t of, size; // dimensions; equal where both are in one
  bool isFused() const { return of == size; }
  bool isTimeMajor() const { return size < of; }
};
std::optional<Tokens> tokensOf(llvm::ArrayRef<Dim> dims, const Names &names);

/// Whether the op treats the elements along both dimensions alike, each for itself.
bool isOfTokens(mlir::Operation *op, const Names &names);
/// Whether each row of the results follows from the same row of the operands.
bool isOfRows(mlir::Operation *op, const Names &names);
/// Whether the op moves elements, or computes each for itself, and leaves the dimension `size`, one
/// of each of these operands and results, as it is.
bool keepsDimension(mlir::Operation *op, llvm::ArrayRef<mlir::Value> values, const Dim &size);
/// Whether no row of the results follows from another row of the operands.
bool keepsRowsApart(mlir::Operation *op, const Names &names);
/// Whether, of all operands cut along `size`, results are those of the whole operands, cut.
bool keepsPrefix(mlir::Operation *op, const Names &names);

} // namespace heddle::ragged

#endif // HEDDLE_RAGGED_FORMS_H
