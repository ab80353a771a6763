// Slopes: dy, as tiles of channels by filters read it: panels of its columns, or where it lies.
#ifndef HEDDLE_LOWER_GRADIENT_SLOPES_H
#define HEDDLE_LOWER_GRADIENT_SLOPES_H

#include "compiler/lower/gradient/Block.h"

namespace heddle::lower {

class SlopePanels {
public:
  SlopePanels(KernelBuilder &kernel, const GradientShape &shape, Lines &lines)
      : kernel(kernel), shape(shape), lines(lines) {}

  /// The block's panel of `count` lines of the table, with zeros for columns that no filter has.
  void copy(const GradientBlock &block, Value count);
  /// A panel from a column of a line on.
  Value at(const GradientBlock &block, const Line &line, const LineColumn &column);
  /// Masks of the lanes of a panel's vectors that have filters; null: all.
  Values masksOf(const GradientBlock &block);

private:
  Value memory() { return lines.scratchAt(shape.panelAt()); }
  Value firstColumn(const GradientBlock &block);
  int64_t vectors() const { return shape.n / kernel.machine.lanes; }

  KernelBuilder &kernel;
  const GradientShape &shape;
  Lines &lines;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_GRADIENT_SLOPES_H
