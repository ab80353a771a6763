// Operands: elements of a product's operands, and places of its result, by the numbers of rows,
// columns and steps of the reduction.
#ifndef HEDDLE_LOWER_THREADS_OPERANDS_H
#define HEDDLE_LOWER_THREADS_OPERANDS_H

#include "compiler/lower/elements/Elements.h"
#include "compiler/mechanism/Product.h"

namespace heddle::lower {

/// A matmul or channels-last convolution as matrices of rows by columns: those of a batch that has
/// right operands of its own, or of the groups of a convolution.
class ProductOperands {
public:
  ProductOperands(KernelBuilder &kernel, const mechanism::Product &product);

  Dim matrices, rows, columns; // of a part
  /// Steps of the reduction: `length` for each of `taps` positions of a window.
  Dim length, taps = Dim(1);
  /// Whether neighbours in memory are along the reduction.
  bool isLeftAlongDepth, isRightAlongDepth;

  Type leftType() const;
  Type rightType() const;
  /// Indices of a row among the dimensions of the rows of a matrix.
  Indices rowOf(Elements &e, Value row) const;
  size_t rowRank() const { return inner.size(); }
  /// The place of a row in the result; its last index is that of the matrix's first column.
  Indices placeOf(Elements &e, Value matrix, llvm::ArrayRef<Index> row) const;

  /// The position of the window that comes `tap`-th.
  Indices tapOf(Elements &e, Value tap) const;
  /// Elements at step `k` of a position; those of rows and columns that there are.
  Value left(Elements &e, llvm::ArrayRef<Index> place, llvm::ArrayRef<Index> tap, Value k) const;
  Value right(Elements &e, llvm::ArrayRef<Index> place, llvm::ArrayRef<Index> tap, Value k,
              Value column) const;

  /// The tensor of such elements in memory that the left operand is of, where `together` steps are
  /// neighbours there that begin at a multiple of so many; null if there is none.
  Value shortLeft(mlir::Block *group, int64_t together, Type element) const;
  /// The address in it of what `left` gives, and whether that is there: null if it always is.
  std::pair<Value, Value> shortLeftAt(Elements &e, Value tensor, llvm::ArrayRef<Index> place,
                                      llvm::ArrayRef<Index> tap, Value k) const;
  /// Numbers of a constant right operand of known sizes, as such elements: for each matrix and each
  /// of the `columnOf` (-1: none) one position of the window after the other, whose steps are
  /// filled up to a multiple of `depth` with zeros.
  std::vector<char> constantRight(llvm::ArrayRef<int64_t> columnOf, int64_t depth,
                                  Type element) const;
  /// Whether it is such a constant, of these elements or of f32 that are rounded to them.
  bool hasConstantRight(Type element) const;

private:
  Indices leftPlace(Elements &e, llvm::ArrayRef<Index> place, llvm::ArrayRef<Index> tap, Value k,
                    Value &isInside) const;
  void readMatmul(graph::MatmulOp op);
  void readConv(graph::ConvOp op);

  KernelBuilder &kernel;
  mlir::Operation *root;
  DimVector window; // sizes of it
  /// Dimensions of the result that number the matrices, and those that number the rows of each.
  DimVector outer, inner;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_THREADS_OPERANDS_H
