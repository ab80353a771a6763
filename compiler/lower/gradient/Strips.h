// Strips: a copy of what lines meet of the image, in strips of a register tile's channels.
//
// For each line and each row of the window a strip has the pixels that the line's columns meet
// there, from the one before the first column's window on. Those outside of the image are not
// written, and never read.
#ifndef HEDDLE_LOWER_GRADIENT_STRIPS_H
#define HEDDLE_LOWER_GRADIENT_STRIPS_H

#include "compiler/lower/gradient/Block.h"

namespace heddle::lower {

class ImageStrips {
public:
  ImageStrips(KernelBuilder &kernel, const GradientShape &shape, Lines &lines)
      : kernel(kernel), shape(shape), lines(lines) {}

  /// The image of `count` lines of the table.
  void copy(const GradientBlock &block, Value count);
  /// The pixels that a tile meets from a column on.
  Value pixels(const GradientBlock &block, const GradientTile &tile, const LineColumn &column);

private:
  Value slotAt(Value line, Value outerPlace);
  Value stripSize();
  Value memory() { return lines.scratchAt(shape.imageAt()); }
  void copyRow(const GradientBlock &block, const Line &line, const ImageRow &row, Value firstSlot);
  /// One pixel: pointers, its first element in both, and the distance of strips.
  struct Copy {
    Value from, source, to, target, apart;
  };
  void copyPixel(const Copy &copy, Value channels);

  KernelBuilder &kernel;
  const GradientShape &shape;
  Lines &lines;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_GRADIENT_STRIPS_H
