// Epilogue: what follows a product in its group, element by element, on the sums in registers.
#ifndef HEDDLE_LOWER_CONTRACTION_EPILOGUE_H
#define HEDDLE_LOWER_CONTRACTION_EPILOGUE_H

#include "compiler/lower/contraction/Layout.h"

namespace heddle::lower {

class Epilogue {
public:
  explicit Epilogue(const ProductLayout &layout) : layout(layout), kernel(layout.kernel) {}

  /// Takes the lane values of results, which are at `row` of the innermost run and from `column`
  /// on, in place of their memory, if set.
  using Store =
      std::function<void(Elements &e, Value result, Value value, Value row, Value column)>;
  Store store;

  /// The results of a tile from its sums, row by row. `outer` are the indices outside of the tile;
  /// that of the column is the first one of the group.
  void emit(Elements &e, llvm::ArrayRef<Value> sums, const Indices &outer,
            llvm::ArrayRef<Value> rowNumbers, Value firstColumn);

private:
  void emitTile(Elements &e, llvm::ArrayRef<Value> sums, const Indices &outer,
                llvm::ArrayRef<Value> rowNumbers, Value firstColumn, bool isMasked);

  const ProductLayout &layout;
  KernelBuilder &kernel;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_CONTRACTION_EPILOGUE_H
