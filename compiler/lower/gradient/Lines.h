// Lines: the positions of dy in pieces of its rows.
//
// A table in the worker's scratch has the lines that a task walks at a time.
#ifndef HEDDLE_LOWER_GRADIENT_LINES_H
#define HEDDLE_LOWER_GRADIENT_LINES_H

#include "compiler/lower/gradient/Shape.h"

namespace heddle::lower {

/// A line as the table has it.
struct Line {
  Value image;      // offset of its image's first element
  Values tops;      // of each outer dimension: where place 0 of the window is in the image
  Value begin, end; // columns
  Value start;      // offset of its first element of dy
};
/// A place of the window.
struct WindowPlace {
  Values outer;     // shifts of rows
  Value column;     // of the image at column 0 of dy
  Value first, end; // columns whose element of the image is inside
};
/// A row of the image: its first element, and whether it is inside; null: it is.
struct ImageRow {
  Value first, isInside;
  Value among(Code &code, Value count) const; // so many of it, none outside
};
/// Columns of one line at one place that count, and where the image is there.
struct Span {
  Value first, count, image;
};

class Lines {
public:
  Lines(KernelBuilder &kernel, const GradientShape &shape) : kernel(kernel), shape(shape) {}

  std::pair<Value, Value> ofPart(Value part);
  /// Runs `body` for as many lines at a time as the caches hold; the table has them.
  void forEach(Value first, Value end, llvm::function_ref<void(Value count)> body);
  Line at(Value number);
  Value width(); // columns of a line, at most
  /// How many pixels columns of a line meet in a row of the image.
  Value slotsOf(Value columns);

  WindowPlace placeAt(Value number);
  ImageRow imageRow(const Line &line, const WindowPlace &place);
  Span spanOf(const Line &line, const WindowPlace &place);

  /// The scratch from this byte on.
  Value scratchAt(int64_t bytes);

private:
  Dim count() const;
  Value atOnce();
  void emitTable(Value first, Value count);

  KernelBuilder &kernel;
  const GradientShape &shape;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_GRADIENT_LINES_H
