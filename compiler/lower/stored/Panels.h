// Panels: a constant right operand that is kept in fewer bits (graph::StoredAttr), packed for
// register tiles.
//
// One tile of rows turns codes into floats in registers, as it meets them: what takes the time of
// few rows is reading the operand. Where several tiles share a panel, it is made floats once, in
// the worker's scratch (bench/notes/2026-11-22-stored-weights.md).
#ifndef HEDDLE_LOWER_STORED_PANELS_H
#define HEDDLE_LOWER_STORED_PANELS_H

#include "compiler/lower/Kernel.h"
#include "compiler/lower/contraction/Microkernel.h"

namespace heddle::lower {

class StoredPanels {
public:
  /// `columns` are those of the panels' places, one panel after the other; -1 where there is none.
  /// A panel has `vectors` vectors. Its bytes are fetched `ahead` of where they are read.
  StoredPanels(KernelBuilder &kernel, graph::StoredAttr stored, llvm::ArrayRef<int64_t> columns,
               int64_t vectors, int64_t ahead);

  /// The accumulators of a tile at a panel, row by row. Of the product, only the rows are read.
  llvm::SmallVector<Value> sums(const RegisterTile &tile, const TileProduct &product, Value panel);
  /// Writes the panel as f32 rows of `width` to `target`, from element `at` on.
  void decode(Value panel, Value target, Value at);

private:
  void pack(llvm::ArrayRef<int64_t> columns);
  int64_t packParameters(mlir::ElementsAttr values, llvm::ArrayRef<int64_t> columns, double less);
  Values codesAt(Value row, mlir::ValueRange zero);
  Value floatsOf(Value raw);
  Values parametersAt(int64_t data, Value panel, Value block);
  /// Bytes of a row of a panel.
  int64_t rowBytes() const {
    return (bits == 4 ? (vectors + 1) / 2 * lanes() : vectors * lanes() * bits / 8);
  }
  int64_t lanes() const { return kernel.machine.lanes; }
  int64_t width() const { return vectors * lanes(); }

  KernelBuilder &kernel;
  graph::StoredAttr stored;
  int64_t vectors, rows, block, ahead;
  int64_t bits = 16;                           // of a packed code: 4, 8 or 16
  double offset = 0;                           // of all codes, to be added
  int64_t codes = -1, scales = -1, zeros = -1; // data; zeros and scales may be missing
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_STORED_PANELS_H
