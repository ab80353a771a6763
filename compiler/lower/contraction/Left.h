// Left: the left operand of a product as register tiles read it: where it lies, or a copy.
#ifndef HEDDLE_LOWER_CONTRACTION_LEFT_H
#define HEDDLE_LOWER_CONTRACTION_LEFT_H

#include "compiler/lower/contraction/Layout.h"

namespace heddle::lower {

/// Copies so many elements as they are, in whole vectors as far as there are some.
void copyElements(Code &code, Type element, Value from, Value to, Value count);

class LeftOperand {
public:
  explicit LeftOperand(const ProductLayout &layout)
      : layout(layout), kernel(layout.kernel), shape(layout.shape), element(layout.element) {}

  /// The phase that copies it, where tiles cannot read it as it is: an image with borders around
  /// it, converted integers, or steps of the reduction that are apart in memory.
  void emitPhase();

  Value pointer();
  /// Whether it is a copy with borders, or converted.
  bool isConverted() const { return border >= 0 || stripLines > 0; }
  /// Lets tasks copy the lines of an image that they multiply, with borders, to the begin of the
  /// worker's scratch, where a copy of all would leave the L2.
  void chooseStrips();
  bool isInStrips() const { return stripLines > 0; }
  /// Lines of the result at a time.
  int64_t linesOfStrip() const { return stripLines; }
  Dim stripBytes() const;
  /// Copies what lines [line, end) of the result need, which are of one image: pointer() is that of
  /// an image whose lines these are.
  void copyStrip(Elements &e, Value line, Value end);
  /// Whether tiles read copies of their own: one step after the other, the rows of each side by
  /// side.
  bool isTiled() const { return !shape.aStep.isConstant(1); }
  /// Whether tiles read the tensor itself, beyond whose last row nothing is.
  bool isInPlace() const {
    bool isAsStored = layout.isStoredShort() || (layout.hasMatrices && layout.depth == 4);
    return isAsStored && !shape.needsBorder && !isTiled();
  }
  /// First element of the rows of a tile in those.
  Value tileAt(Value outer, Value tile);

private:
  Dim copyBytes(const Dim &count) const;
  Dim tileSteps();
  Dim tileSize();
  Value numberAt(Value outer, Value tile);
  Value copied(Value from, Value k, Value count);
  Value converted(Value lanes);
  DimVector paddedDims() const;
  Dim lineLength() const;
  int64_t linesOfTaps() const;
  void copyLine(Elements &e, Value line, Value target, Value start);
  void emitBorders();
  void emitConversion();
  void emitTiles();

  const ProductLayout &layout;
  KernelBuilder &kernel;
  const ProductShape &shape;
  const Type &element;
  int64_t border = -1, tiles = -1; // temporaries
  int64_t stripLines = 0;
  Value strip; // in the code of a task
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_CONTRACTION_LEFT_H
