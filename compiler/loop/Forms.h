// Forms: which subgraphs a mechanism can carry out as one kernel, whatever a card says.
//
// A card that names a mechanism for other loops makes no group: it is refused with what is said
// here, so that a wrong card costs speed at most.
#ifndef HEDDLE_LOOP_FORMS_H
#define HEDDLE_LOOP_FORMS_H

#include "compiler/graph/Graph.h"
#include "compiler/loop/Fit.h"

namespace heddle::loop {

/// Of ops of one block, operands first, of which only the last one's result is read elsewhere.
/// `why` is set where the answer is No.
Fit fitsForm(llvm::StringRef form, llvm::ArrayRef<mlir::Operation *> ops, std::string &why);

/// Whether a form serves only some of the ops that have its loops, of which a key says nothing:
/// strides, or what else a concat reads.
bool readsParameters(llvm::StringRef form);

/// The axes that a fold folds; none for other ops.
llvm::ArrayRef<int64_t> foldedAxes(mlir::Operation *op);
/// A reshape that only adds or drops sizes of 1, so that indices carry over.
bool keepsIndices(graph::ReshapeOp op);
/// One element a row: [kept..., 1...] or [kept...], of rows that fold their last `axes` dimensions.
bool isRowShape(llvm::ArrayRef<graph::Dim> dims, llvm::ArrayRef<graph::Dim> rows, size_t axes);
/// Whether what is made of one value a row is read at that row only: a broadcast of [n] to [n, n]
/// gives all of them to each row.
bool staysInRow(mlir::Value value, llvm::ArrayRef<graph::Dim> rows, size_t axes);

/// How slices read the last dimension of what they slice: in parts of one size, each whole.
struct Parts {
  int64_t count, columns; // of each
};
/// Of slices of values of these dimensions, at least one; nullopt for other slices.
std::optional<Parts> partsOf(llvm::ArrayRef<mlir::Operation *> slices,
                             llvm::ArrayRef<graph::Dim> dims);
/// The number of the part that a slice, one of partsOf, reads.
int64_t partOf(graph::SliceOp slice);

} // namespace heddle::loop

#endif // HEDDLE_LOOP_FORMS_H
