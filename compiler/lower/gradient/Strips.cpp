// Strips: a copy of what lines meet of the image, in strips of a register tile's channels.
//
// For each line and each row of the window a strip has the pixels that the line's columns meet
// there, from the one before the first column's window on. Those outside of the image are not
// written, and never read.

#include "compiler/lower/gradient/FilterGradient.h"

using namespace mlir;

namespace heddle::lower {

Value FilterGradient::slotsOf(Value columns) {
  Code &code = kernel.code();
  Value last = code.mul(code.sub(columns, code.number(1)), code.number(slotStep()));
  return code.add(last, code.number(reach() + 1));
}

Value FilterGradient::slotAt(Value line, Value outerPlace) {
  Code &code = kernel.code();
  Value row = code.add(code.mul(line, code.number(outerPlaces())), outerPlace);
  return code.mul(row, slotsOf(lineWidth()));
}

int64_t FilterGradient::imageSlots() const {
  return outerPlaces() * (positions() * slotStep() + reach());
}

int64_t FilterGradient::imageBytes() const {
  if (!copiesImage)
    return 0;
  return strips() * imageSlots() * m * (int64_t)sizeof(float);
}

/// Elements from one strip to the next.
Value FilterGradient::stripSize() { return kernel.code().number(imageSlots() * m); }

Value FilterGradient::pixelsInStrip(const Block &block, const Tile &tile, const Column &column) {
  Code &code = kernel.code();
  Value size = code.number(window.back());
  Value strip = code.div(code.sub(tile.channel, block.low), code.number(m));
  Value slot = code.add(code.mul(column.number, code.number(slotStep())),
                        code.mul(code.rem(tile.place, size), code.number(dilations.back())));
  slot = code.add(slotAt(column.line, code.div(tile.place, size)), slot);
  Value at = code.add(code.mul(strip, stripSize()), code.mul(slot, code.number(m)));
  return code.at(stripsOfImage(), element, at);
}

void FilterGradient::copyImage(const Block &block, Value count) {
  Code &code = kernel.code();
  code.forEach(code.number(0), count, 1, [&](Value number) {
    Line line = lineAt(number);
    code.forEach(code.number(0), code.number(outerPlaces()), 1, [&](Value outer) {
      Place place = placeAt(code.mul(outer, code.number(window.back())));
      copyRow(block, line, imageRow(line, place), slotAt(number, outer));
    });
  });
}

/// The pixels of a row of the image that a line meets.
void FilterGradient::copyRow(const Block &block, const Line &line, const ImageRow &row,
                             Value firstSlot) {
  Code &code = kernel.code();
  int64_t pixelStep = strides.back() / slotStep(); // from slot to slot
  Value begin =
      code.sub(code.mul(line.begin, code.number(strides.back())), code.number(low.back()));
  Value before = code.sub(code.number(0), begin), width = kernel.dim(x[x.size() - 2]);
  Value first = code.max(code.ceilDiv(before, pixelStep), code.number(0));
  Value end = code.min(code.ceilDiv(code.add(width, before), pixelStep),
                       slotsOf(code.sub(line.end, line.begin)));
  Value channels = code.sub(block.high, block.low);
  Value channel = code.add(code.mul(block.group, code.number(this->channels)), block.low);
  Value pixels = code.at(kernel.pointer(image), element, code.add(row.first, channel));
  Value strips = stripsOfImage(), size = stripSize();
  code.forEach(code.number(0), row.among(code, code.sub(end, first)), 1, [&](Value number) {
    Value slot = code.add(first, number);
    Value column = code.add(begin, code.mul(slot, code.number(pixelStep)));
    Value from = code.mul(column, kernel.dim(x.back()));
    Value to = code.mul(code.add(firstSlot, slot), code.number(m));
    copyPixel({pixels, from, strips, to, size}, channels);
  });
}

/// Copies strip after strip; of the last one the channels that there are.
void FilterGradient::copyPixel(const Copy &copy, Value channels) {
  Code &code = kernel.code();
  auto copyLanes = [&](Value from, Value to, Value mask) {
    code.storeLanes(element, code.loadLanes(element, copy.from, from, mask), copy.to, to, mask);
  };
  Value whole = code.div(channels, code.number(m));
  auto copyStrip = [&](Value strip, int64_t rows) {
    Value from = code.add(copy.source, code.mul(strip, code.number(m)));
    Value to = code.add(copy.target, code.mul(strip, copy.apart));
    for (int64_t i = 0; i < rows; i += code.lanes) {
      bool isWhole = i + code.lanes <= rows;
      Value mask = isWhole ? Value() : code.maskOf(code.number(rows - i));
      copyLanes(code.add(from, code.number(i)), code.add(to, code.number(i)), mask);
    }
  };
  code.forEach(code.number(0), whole, 1, [&](Value strip) { copyStrip(strip, m); });
  if (this->channels % m != 0)
    code.when(code.less(code.mul(whole, code.number(m)), channels),
              [&] { copyStrip(whole, this->channels % m); });
}

} // namespace heddle::lower
