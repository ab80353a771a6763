// Strips: rows of the image, strip by strip.

#include "compiler/lower/gradient/Strips.h"

using namespace mlir;

namespace heddle::lower {

Value ImageStrips::slotAt(Value line, Value outerPlace) {
  Code &code = kernel.code();
  Value row = code.add(code.mul(line, code.number(shape.outerPlaces())), outerPlace);
  return code.mul(row, lines.slotsOf(lines.width()));
}

/// Elements from one strip to the next.
Value ImageStrips::stripSize() { return kernel.code().number(shape.imageSlots() * shape.m); }

Value ImageStrips::pixels(const GradientBlock &block, const GradientTile &tile,
                          const LineColumn &column) {
  Code &code = kernel.code();
  Value size = code.number(shape.window.back());
  Value strip = code.div(code.sub(tile.channel, block.low), code.number(shape.m));
  Value slot = code.add(code.mul(column.number, code.number(shape.slotStep())),
                        code.mul(code.rem(tile.place, size), code.number(shape.dilations.back())));
  slot = code.add(slotAt(column.line, code.div(tile.place, size)), slot);
  Value at = code.add(code.mul(strip, stripSize()), code.mul(slot, code.number(shape.m)));
  return code.at(memory(), shape.element, at);
}

void ImageStrips::copy(const GradientBlock &block, Value count) {
  Code &code = kernel.code();
  code.forEach(code.number(0), count, 1, [&](Value number) {
    Line line = lines.at(number);
    code.forEach(code.number(0), code.number(shape.outerPlaces()), 1, [&](Value outer) {
      WindowPlace place = lines.placeAt(code.mul(outer, code.number(shape.window.back())));
      copyRow(block, line, lines.imageRow(line, place), slotAt(number, outer));
    });
  });
}

/// The pixels of a row of the image that a line meets.
void ImageStrips::copyRow(const GradientBlock &block, const Line &line, const ImageRow &row,
                          Value firstSlot) {
  Code &code = kernel.code();
  int64_t pixelStep = shape.strides.back() / shape.slotStep(); // from slot to slot
  Value begin = code.sub(code.mul(line.begin, code.number(shape.strides.back())),
                         code.number(shape.low.back()));
  Value before = code.sub(code.number(0), begin), width = kernel.dim(shape.x[shape.x.size() - 2]);
  Value first = code.max(code.ceilDiv(before, pixelStep), code.number(0));
  Value end = code.min(code.ceilDiv(code.add(width, before), pixelStep),
                       lines.slotsOf(code.sub(line.end, line.begin)));
  Value channels = code.sub(block.high, block.low);
  Value channel = code.add(code.mul(block.group, code.number(shape.channels)), block.low);
  Value pixels = code.at(kernel.pointer(shape.image), shape.element, code.add(row.first, channel));
  Value strips = memory(), size = stripSize();
  code.forEach(code.number(0), row.among(code, code.sub(end, first)), 1, [&](Value number) {
    Value slot = code.add(first, number);
    Value column = code.add(begin, code.mul(slot, code.number(pixelStep)));
    Value from = code.mul(column, kernel.dim(shape.x.back()));
    Value to = code.mul(code.add(firstSlot, slot), code.number(shape.m));
    copyPixel({pixels, from, strips, to, size}, channels);
  });
}

/// One strip after the other; of the last one the channels that there are.
void ImageStrips::copyPixel(const Copy &copy, Value channels) {
  Code &code = kernel.code();
  auto copyLanes = [&](Value from, Value to, Value mask) {
    code.storeLanes(shape.element, code.loadLanes(shape.element, copy.from, from, mask), copy.to,
                    to, mask);
  };
  Value whole = code.div(channels, code.number(shape.m));
  auto copyStrip = [&](Value strip, int64_t rows) {
    Value from = code.add(copy.source, code.mul(strip, code.number(shape.m)));
    Value to = code.add(copy.target, code.mul(strip, copy.apart));
    for (int64_t i = 0; i < rows; i += code.lanes) {
      bool isWhole = i + code.lanes <= rows;
      Value mask = isWhole ? Value() : code.maskOf(code.number(rows - i));
      copyLanes(code.add(from, code.number(i)), code.add(to, code.number(i)), mask);
    }
  };
  code.forEach(code.number(0), whole, 1, [&](Value strip) { copyStrip(strip, shape.m); });
  if (shape.channels % shape.m != 0)
    code.when(code.less(code.mul(whole, code.number(shape.m)), channels),
              [&] { copyStrip(whole, shape.channels % shape.m); });
}

} // namespace heddle::lower
