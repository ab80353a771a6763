// Cut: sums of products parts of which are 0.
//
// Where the left operand is 0 on one side of a diagonal, what all rows of a tile have is summed up
// as ever; around the diagonal the elements that do not count are 0; the rest is left out. A panel
// with numbers that are not finite is not cut, as 0 times these is NaN. Where matrices of a batch
// have sizes of their own, a tile outside of them has no terms, and the others as many as count.
#ifndef HEDDLE_LOWER_CONTRACTION_CUT_H
#define HEDDLE_LOWER_CONTRACTION_CUT_H

#include "compiler/lower/contraction/Layout.h"
#include "compiler/lower/contraction/Microkernel.h"

namespace heddle::lower {

/// The limit of a matrix, from 0 to `most`.
Value limitAt(Elements &e, Value limit, llvm::ArrayRef<Index> batch, const Dim &most);
/// How many terms the elements of a panel have that begins at this column.
Value depthOf(Elements &e, const ProductShape &shape, llvm::ArrayRef<Index> batch, Value column);

/// The diagonal of a product's left operand, if it has one.
class Band {
public:
  explicit Band(const ProductLayout &layout) : layout(layout), kernel(layout.kernel) {}

  /// Before panels are packed at run time.
  void prepareNotes();
  /// Notes whether a packed panel has to be multiplied as a whole.
  void note(Value memory, Value target, Value panelNumber);
  /// Notes a constant, for all panels.
  void noteConstant(llvm::ArrayRef<char> bytes, int64_t count);

  using Sums = llvm::function_ref<llvm::SmallVector<Value>(const TileProduct &product)>;
  /// Sums of a tile, from those of products of its parts.
  llvm::SmallVector<Value> sums(const TileProduct &product, llvm::ArrayRef<Value> rowNumbers,
                                Value panelNumber, Sums sumsOf);

private:
  const ProductLayout &layout;
  KernelBuilder &kernel;
  int64_t wholes = -1;  // a temporary: of each panel, whether it has numbers that are not finite
  bool isWhole = false; // whether a constant has any
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_CONTRACTION_CUT_H
