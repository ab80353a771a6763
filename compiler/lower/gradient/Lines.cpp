// Lines: the positions of dy in pieces of its rows, and which of their columns a place of the
// window has inside of the image.

#include "compiler/lower/gradient/FilterGradient.h"

using namespace mlir;

namespace heddle::lower {

/// Columns of one line at most.
static constexpr int64_t kLineColumns = 256;
static constexpr int64_t kAlignment = 64; // bytes
/// Lines of one table at most.
static constexpr int64_t kTableLines = 512;

Dim FilterGradient::lines() const {
  Dim rows = graph::elementCount(ArrayRef<Dim>(dy).drop_back(2));
  return rows * dy[dy.size() - 2].ceilDiv(Dim(kLineColumns));
}

Value FilterGradient::lineWidth() {
  return kernel.dim(Dim::min(dy[dy.size() - 2], Dim(kLineColumns)));
}

/// Lines that the copies of their image have room for, and of dy, and the table.
Value FilterGradient::linesAtOnce() {
  Code &code = kernel.code();
  auto fitting = [&](int64_t room, Value each) {
    return code.div(code.number(room), code.max(each, code.number(1)));
  };
  Value lines = code.min(fitting(positions(), lineWidth()), code.number(kTableLines));
  if (!copiesImage)
    return lines;
  Value slots = code.mul(slotsOf(lineWidth()), code.number(outerPlaces()));
  return code.min(lines, fitting(imageSlots(), slots));
}

/// Positions whose image and panel of dy have a quarter of the L2.
int64_t FilterGradient::positions() const {
  if (isDepthwise())
    return kLineColumns;
  int64_t bytes = (n + copiesOfImage() * chunk()) * (int64_t)sizeof(float);
  return std::max(kLineColumns, kernel.machine.l2Bytes / 4 / bytes);
}

int64_t FilterGradient::tableBytes() const {
  return llvm::alignTo(kTableLines * fields() * (int64_t)sizeof(int64_t), kAlignment);
}

void FilterGradient::emitTable(Value first, Value count) {
  Code &code = kernel.code();
  Type i64 = code.b.getI64Type();
  int64_t outer = outerCount();
  size_t last = dy.size() - 2;
  Value table = kernel.scratch();
  Value columns = kernel.dim(dy[last]), pieces = kernel.dim(dy[last].ceilDiv(Dim(kLineColumns)));
  Value image = kernel.dim(graph::elementCount(ArrayRef<Dim>(x).drop_front()));
  code.forEach(code.number(0), count, 1, [&](Value number) {
    Value line = code.add(first, number);
    Value row = code.div(line, pieces);
    Value begin = code.mul(code.rem(line, pieces), code.number(kLineColumns));
    Value start = code.mul(code.add(code.mul(row, columns), begin), kernel.dim(dy.back()));
    Value at = code.mul(number, code.number(fields()));
    auto put = [&](int64_t field, Value value) {
      code.store(i64, value, table, code.add(at, code.number(field)));
    };
    put(1, begin);
    put(2, code.min(code.add(begin, code.number(kLineColumns)), columns));
    put(3, start);
    for (int64_t d = outer; d-- > 0;) {
      Value size = kernel.dim(dy[d + 1]);
      Value top = code.mul(code.rem(row, size), code.number(strides[d]));
      put(4 + d, code.sub(top, code.number(low[d])));
      row = code.div(row, size);
    }
    put(0, code.mul(row, image));
  });
}

FilterGradient::Line FilterGradient::lineAt(Value number) {
  Code &code = kernel.code();
  Value table = kernel.scratch(), at = code.mul(number, code.number(fields()));
  auto get = [&](int64_t field) {
    return code.load(code.b.getI64Type(), table, code.add(at, code.number(field)));
  };
  Line line{get(0), {}, get(1), get(2), get(3)};
  for (int64_t d = 0; d < outerCount(); ++d)
    line.tops.push_back(get(4 + d));
  return line;
}

FilterGradient::Place FilterGradient::placeAt(Value number) {
  Code &code = kernel.code();
  Value zero = code.number(0);
  size_t last = window.size() - 1;
  Place place;
  Value shift = code.mul(code.rem(number, code.number(window[last])), code.number(dilations[last]));
  place.column = code.sub(shift, code.number(low[last]));
  Value before = code.sub(zero, place.column), width = kernel.dim(x[last + 1]);
  place.first = code.max(code.ceilDiv(before, strides[last]), zero);
  place.end = code.ceilDiv(code.add(width, before), strides[last]);
  place.outer.assign(last, Value());
  Value rest = code.div(number, code.number(window[last]));
  for (size_t d = last; d-- > 0;) {
    Value size = code.number(window[d]);
    place.outer[d] = code.mul(code.rem(rest, size), code.number(dilations[d]));
    rest = code.div(rest, size);
  }
  return place;
}

FilterGradient::ImageRow FilterGradient::imageRow(const Line &line, const Place &place) {
  Code &code = kernel.code();
  Value zero = code.number(0), row = zero, isInside;
  for (int64_t d = 0; d < outerCount(); ++d) {
    Value source = code.add(line.tops[d], place.outer[d]), size = kernel.dim(x[d + 1]);
    isInside = code.both(isInside, code.less(code.sub(zero, code.number(1)), source));
    isInside = code.both(isInside, code.less(source, size));
    row = code.add(code.mul(row, size), source);
  }
  Value pixels = code.mul(row, kernel.dim(x[x.size() - 2]));
  return {code.add(line.image, code.mul(pixels, kernel.dim(x.back()))), isInside};
}

/// The columns that count: none if the line's row of the image is outside.
FilterGradient::Span FilterGradient::spanOf(const Line &line, const Place &place) {
  Code &code = kernel.code();
  ImageRow row = imageRow(line, place);
  Span span;
  span.first = code.max(place.first, line.begin);
  span.count = row.among(code, code.sub(code.min(place.end, line.end), span.first));
  Value column = code.add(code.mul(span.first, code.number(strides.back())), place.column);
  span.image = code.add(row.first, code.mul(column, kernel.dim(x.back())));
  return span;
}

Value FilterGradient::ImageRow::among(Code &code, Value count) const {
  Value zero = code.number(0);
  if (!isInside)
    return code.max(count, zero);
  return code.b.createOrFold<arith::SelectOp>(code.loc, isInside, code.max(count, zero), zero);
}

std::pair<Value, Value> FilterGradient::linesOfPart(Value part) {
  Code &code = kernel.code();
  Value each = kernel.dim(lines().ceilDiv(Dim(parts))), all = kernel.dim(lines());
  Value first = code.min(code.mul(part, each), all);
  return {first, code.min(code.add(first, each), all)};
}

void FilterGradient::forEachLines(Value first, Value end, llvm::function_ref<void(Value)> body) {
  Code &code = kernel.code();
  Value step = linesAtOnce();
  Value count = code.div(code.sub(code.add(code.sub(end, first), step), code.number(1)), step);
  code.forEach(code.number(0), count, 1, [&](Value number) {
    Value from = code.add(first, code.mul(number, step));
    Value lines = code.min(step, code.sub(end, from));
    emitTable(from, lines);
    body(lines);
  });
}

Value FilterGradient::scratchAt(int64_t bytes) {
  Code &code = kernel.code();
  return code.at(kernel.scratch(), code.b.getI8Type(), code.number(bytes));
}

} // namespace heddle::lower
