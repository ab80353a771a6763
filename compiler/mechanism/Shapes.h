// Shapes: questions about the shapes of ops around a reduction or a product.
#ifndef HEDDLE_MECHANISM_SHAPES_H
#define HEDDLE_MECHANISM_SHAPES_H

#include "compiler/graph/Graph.h"

namespace heddle::mechanism {

/// One element a row: [kept..., 1...] or [kept...], of rows that reduce their last `axes`
/// dimensions.
bool isRowShape(llvm::ArrayRef<graph::Dim> dims, llvm::ArrayRef<graph::Dim> rows, size_t axes);
/// Whether what is made of one value per row is read at that row only: a broadcast of [n] to [n, n]
/// gives all of them to each row.
bool staysInRow(mlir::Value value, llvm::ArrayRef<graph::Dim> rows, size_t axes);

/// The reductions of a group over its rows.
struct Rows {
  graph::DimVector full; // operand's dimensions of each
  size_t kept = 0;       // dimensions before those that are reduced
  llvm::SmallVector<mlir::Operation *> reductions;
};
/// Nullopt, with the reason, if there are no reductions, or they reduce other dimensions than the
/// last ones of one shape, or a result is neither a row nor a number for each.
std::optional<Rows> readRows(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results,
                             std::string &why);

/// The reductions of a group over leading dimensions, none of which follows from another one.
struct Columns {
  graph::DimVector full; // operand's dimensions of each; the last one is that of the columns
  llvm::SmallVector<mlir::Operation *> reductions;
};
/// Nullopt, with the reason, if there are none, or they reduce others than all dimensions but the
/// last of one shape, or what else there is is not elementwise, or a result is no row of columns.
std::optional<Columns> readColumns(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results,
                                   std::string &why);

/// Slices that read the last dimension of their operands in parts of one size, each whole.
struct Parts {
  int64_t count, columns; // columns of each part
};
/// Parts that slices, at least one, of values of these dimensions read; nullopt for other slices.
std::optional<Parts> partsOf(llvm::ArrayRef<mlir::Operation *> slices,
                             llvm::ArrayRef<graph::Dim> dims);
/// The number of the part that a slice, one of partsOf, reads.
int64_t partOf(graph::SliceOp slice);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_SHAPES_H
