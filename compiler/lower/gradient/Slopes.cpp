// Slopes: panels of dy in the worker's scratch.

#include "compiler/lower/gradient/Slopes.h"

using namespace mlir;

namespace heddle::lower {

Values SlopePanels::masksOf(const GradientBlock &block) {
  Code &code = kernel.code();
  Value first = code.mul(block.panel, code.number(shape.n));
  Values masks(vectors());
  for (int64_t j = 0; j < vectors() && shape.filters % shape.n != 0; ++j) {
    Value rest = code.sub(code.number(shape.filters), code.add(first, code.number(j * code.lanes)));
    masks[j] = code.maskOf(code.max(code.min(rest, code.number(code.lanes)), code.number(0)));
  }
  return masks;
}

/// First column of the group's panel within a pixel.
Value SlopePanels::firstColumn(const GradientBlock &block) {
  Code &code = kernel.code();
  Value column = code.mul(block.panel, code.number(shape.n));
  return code.add(code.mul(block.group, code.number(shape.filters)), column);
}

void SlopePanels::copy(const GradientBlock &block, Value count) {
  Code &code = kernel.code();
  Value from = kernel.pointer(shape.slopes), to = memory(), first = firstColumn(block);
  Values masks = masksOf(block);
  code.forEach(code.number(0), count, 1, [&](Value number) {
    Line line = lines.at(number);
    Value source = code.add(line.start, first);
    Value target = code.mul(code.mul(number, lines.width()), code.number(shape.n));
    code.forEach(code.number(0), code.sub(line.end, line.begin), 1, [&](Value at) {
      Value read = code.add(source, code.mul(at, kernel.dim(shape.dy.back())));
      Value written = code.add(target, code.mul(at, code.number(shape.n)));
      for (int64_t j = 0; j < vectors(); ++j) {
        Value shift = code.number(j * code.lanes);
        Value lanes = code.loadLanes(shape.element, from, code.add(read, shift), masks[j]);
        code.storeLanes(shape.element, lanes, to, code.add(written, shift), {});
      }
    });
  });
}

Value SlopePanels::at(const GradientBlock &block, const Line &line, const LineColumn &column) {
  Code &code = kernel.code();
  if (shape.copiesSlopes) {
    Value position = code.add(code.mul(column.line, lines.width()), column.number);
    return code.at(memory(), shape.element, code.mul(position, code.number(shape.n)));
  }
  Value shift = code.mul(column.number, kernel.dim(shape.dy.back()));
  Value first = code.add(line.start, firstColumn(block));
  return code.at(kernel.pointer(shape.slopes), shape.element, code.add(first, shift));
}

} // namespace heddle::lower
