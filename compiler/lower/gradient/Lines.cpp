// Lines: which columns of a line a place of the window has inside of the image.

#include "compiler/lower/gradient/Lines.h"

using namespace mlir;

namespace heddle::lower {

Dim Lines::count() const {
  Dim rows = graph::elementCount(ArrayRef<Dim>(shape.dy).drop_back(2));
  return rows * shape.dy[shape.dy.size() - 2].ceilDiv(Dim(GradientShape::kLineColumns));
}

Value Lines::width() {
  return kernel.dim(Dim::min(shape.dy[shape.dy.size() - 2], Dim(GradientShape::kLineColumns)));
}

/// As many as the copies of their image have room for, and of dy, and the table.
Value Lines::atOnce() {
  Code &code = kernel.code();
  auto fitting = [&](int64_t room, Value each) {
    return code.div(code.number(room), code.max(each, code.number(1)));
  };
  Value lines =
      code.min(fitting(shape.positionsAtOnce(), width()), code.number(GradientShape::kTableLines));
  if (!shape.copiesImage)
    return lines;
  Value slots = code.mul(slotsOf(width()), code.number(shape.outerPlaces()));
  return code.min(lines, fitting(shape.imageSlots(), slots));
}

void Lines::emitTable(Value first, Value count) {
  Code &code = kernel.code();
  Type i64 = code.b.getI64Type();
  int64_t outer = shape.outerCount();
  size_t last = shape.dy.size() - 2;
  Value table = kernel.scratch();
  Value columns = kernel.dim(shape.dy[last]),
        pieces = kernel.dim(shape.dy[last].ceilDiv(Dim(GradientShape::kLineColumns)));
  Value pixels = kernel.dim(graph::elementCount(ArrayRef<Dim>(shape.x).drop_front()));
  code.forEach(code.number(0), count, 1, [&](Value number) {
    Value line = code.add(first, number);
    Value row = code.div(line, pieces);
    Value begin = code.mul(code.rem(line, pieces), code.number(GradientShape::kLineColumns));
    Value start = code.mul(code.add(code.mul(row, columns), begin), kernel.dim(shape.dy.back()));
    Value at = code.mul(number, code.number(shape.fields()));
    auto put = [&](int64_t field, Value value) {
      code.store(i64, value, table, code.add(at, code.number(field)));
    };
    put(1, begin);
    put(2, code.min(code.add(begin, code.number(GradientShape::kLineColumns)), columns));
    put(3, start);
    for (int64_t d = outer; d-- > 0;) {
      Value size = kernel.dim(shape.dy[d + 1]);
      Value top = code.mul(code.rem(row, size), code.number(shape.strides[d]));
      put(4 + d, code.sub(top, code.number(shape.low[d])));
      row = code.div(row, size);
    }
    put(0, code.mul(row, pixels));
  });
}

Line Lines::at(Value number) {
  Code &code = kernel.code();
  Value table = kernel.scratch(), at = code.mul(number, code.number(shape.fields()));
  auto get = [&](int64_t field) {
    return code.load(code.b.getI64Type(), table, code.add(at, code.number(field)));
  };
  Line line{get(0), {}, get(1), get(2), get(3)};
  for (int64_t d = 0; d < shape.outerCount(); ++d)
    line.tops.push_back(get(4 + d));
  return line;
}

WindowPlace Lines::placeAt(Value number) {
  Code &code = kernel.code();
  Value zero = code.number(0);
  size_t last = shape.window.size() - 1;
  WindowPlace place;
  Value shift = code.mul(code.rem(number, code.number(shape.window[last])),
                         code.number(shape.dilations[last]));
  place.column = code.sub(shift, code.number(shape.low[last]));
  Value before = code.sub(zero, place.column), width = kernel.dim(shape.x[last + 1]);
  place.first = code.max(code.ceilDiv(before, shape.strides[last]), zero);
  place.end = code.ceilDiv(code.add(width, before), shape.strides[last]);
  place.outer.assign(last, Value());
  Value rest = code.div(number, code.number(shape.window[last]));
  for (size_t d = last; d-- > 0;) {
    Value size = code.number(shape.window[d]);
    place.outer[d] = code.mul(code.rem(rest, size), code.number(shape.dilations[d]));
    rest = code.div(rest, size);
  }
  return place;
}

ImageRow Lines::imageRow(const Line &line, const WindowPlace &place) {
  Code &code = kernel.code();
  Value zero = code.number(0), row = zero, isInside;
  for (int64_t d = 0; d < shape.outerCount(); ++d) {
    Value source = code.add(line.tops[d], place.outer[d]), size = kernel.dim(shape.x[d + 1]);
    isInside = code.both(isInside, code.less(code.sub(zero, code.number(1)), source));
    isInside = code.both(isInside, code.less(source, size));
    row = code.add(code.mul(row, size), source);
  }
  Value pixels = code.mul(row, kernel.dim(shape.x[shape.x.size() - 2]));
  return {code.add(line.image, code.mul(pixels, kernel.dim(shape.x.back()))), isInside};
}

/// None of the columns count where the line's row of the image is outside.
Span Lines::spanOf(const Line &line, const WindowPlace &place) {
  Code &code = kernel.code();
  ImageRow row = imageRow(line, place);
  Span span;
  span.first = code.max(place.first, line.begin);
  span.count = row.among(code, code.sub(code.min(place.end, line.end), span.first));
  Value column = code.add(code.mul(span.first, code.number(shape.strides.back())), place.column);
  span.image = code.add(row.first, code.mul(column, kernel.dim(shape.x.back())));
  return span;
}

Value ImageRow::among(Code &code, Value count) const {
  Value zero = code.number(0);
  if (!isInside)
    return code.max(count, zero);
  return code.b.createOrFold<arith::SelectOp>(code.loc, isInside, code.max(count, zero), zero);
}

std::pair<Value, Value> Lines::ofPart(Value part) {
  Code &code = kernel.code();
  Value each = kernel.dim(count().ceilDiv(Dim(shape.parts))), all = kernel.dim(count());
  Value first = code.min(code.mul(part, each), all);
  return {first, code.min(code.add(first, each), all)};
}

void Lines::forEach(Value first, Value end, llvm::function_ref<void(Value)> body) {
  Code &code = kernel.code();
  Value step = atOnce();
  Value count = code.div(code.sub(code.add(code.sub(end, first), step), code.number(1)), step);
  code.forEach(code.number(0), count, 1, [&](Value number) {
    Value from = code.add(first, code.mul(number, step));
    Value lines = code.min(step, code.sub(end, from));
    emitTable(from, lines);
    body(lines);
  });
}

Value Lines::scratchAt(int64_t bytes) {
  Code &code = kernel.code();
  return code.at(kernel.scratch(), code.b.getI8Type(), code.number(bytes));
}

Value Lines::slotsOf(Value columns) {
  Code &code = kernel.code();
  Value last = code.mul(code.sub(columns, code.number(1)), code.number(shape.slotStep()));
  return code.add(last, code.number(shape.reach() + 1));
}

} // namespace heddle::lower
