// PanelWriter: panels of a right operand known only at run time, packed from where it lies.
#ifndef HEDDLE_LOWER_CONTRACTION_PANELWRITER_H
#define HEDDLE_LOWER_CONTRACTION_PANELWRITER_H

#include "compiler/lower/contraction/Cut.h"

namespace heddle::lower {

/// The lanes from `column` on in a row of one of the right operand's matrices.
Indices placeInRight(Elements &e, const ProductShape &shape, const Indices &matrix, Value row,
                     Value column);

class PanelWriter {
public:
  /// Writes to `memory`, a pointer; with `starts`, a temporary, also what the sums of each column
  /// begin with (ProductLayout::isShifted).
  PanelWriter(const ProductLayout &layout, Band &band, std::function<Value()> memory,
              int64_t starts = -1)
      : layout(layout), kernel(layout.kernel), shape(layout.shape), element(layout.element),
        depth(layout.depth), band(band), memory(std::move(memory)), starts(starts) {}

  /// A panel of matrix `batch` to the element `target`; it is number `number` of those at `starts`.
  void write(Elements &e, Value batch, Value panel, Value target, Value number);

private:
  void writeColumns(Elements &e, const Indices &matrix, Value column, Value target, int64_t shift);
  void writeTransposed(Elements &e, Value rows, const Indices &matrix, Value column, Value target,
                       int64_t shift);
  void writeFilters(Elements &e, Value groupNumber, llvm::ArrayRef<Value> columns, Value target);
  void writeDots(Elements &e, const Indices &matrix, Value column, Value target, Value number,
                 int64_t vector);
  Value writeDotPiece(Elements &e, const Indices &matrix, Value column, Value firstRow,
                      Value target, Value sum);

  const ProductLayout &layout;
  KernelBuilder &kernel;
  const ProductShape &shape;
  const Type element;
  const int64_t depth;
  Band &band;
  std::function<Value()> memory;
  int64_t starts;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_CONTRACTION_PANELWRITER_H
