// Ragged: sizes that are a function of the index of dimension 0 (CoRa, Fegade et al., MLSys 2022,
// section 4: variable dimensions).
//
// The symbol `seq(batch)` is the size of the row whose index along `batch` it is asked for, and
// `total(seq(batch))` is the sum over all rows. A tensor with sizes of rows has a multiple of
// `batch` as its dimension 0; its rows lie one after the other, each row-major, without padding.
#ifndef HEDDLE_GRAPH_RAGGED_H
#define HEDDLE_GRAPH_RAGGED_H

#include "compiler/graph/Graph.h"

#include "llvm/ADT/StringSet.h"

namespace heddle::graph {

/// Attribute of a function (unit): no row of its inputs has to do with another row.
inline constexpr llvm::StringLiteral kRowsApart = "graph.rows_apart";

/// The symbol of a size of rows, `size(of)`.
Dim rowSize(llvm::StringRef size, llvm::StringRef of);
/// The "of" of `size(of)`; "" for any other symbol.
llvm::StringRef rowsOf(llvm::StringRef symbol);
/// The "of" of the first size of rows that an expression, a type, or an op's types and attributes
/// name; "" if there is none.
std::string rowsOf(const Dim &dim);
std::string rowsOf(mlir::Type tensor);
std::string rowsOf(mlir::Operation *op);
/// The symbols that sizes of tensors name.
llvm::StringSet<> symbolsOf(mlir::TypeRange types);
/// A view of rows as one long row, or back.
bool joinsRows(mlir::Operation *op);

/// The sum over all rows of an expression in sizes of rows: sums of products become symbols.
Dim overRows(const Dim &ofRow, llvm::StringRef of);
/// The product whose sum over rows the symbol `total(...)` is; nullopt for any other symbol.
std::optional<Dim> summedBy(llvm::StringRef symbol);
/// The sizes of one row of a tensor: `of` is 1.
Dim inRow(const Dim &dim, llvm::StringRef of);
DimVector inRow(llvm::ArrayRef<Dim> dims, llvm::StringRef of);
/// Whether each row of the tensor is contiguous: dimension 0 is a multiple of `of`, no other
/// dimension names it.
bool hasRows(llvm::ArrayRef<Dim> dims, llvm::StringRef of);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_RAGGED_H
