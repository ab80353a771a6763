// Tiles: from pixels to V, and from M to pixels with their epilogue.

#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/winograd/Winograd.h"

using namespace mlir;

namespace heddle::lower {

/// Transforms the tile's pixels, channels in lanes. `rows` and `columns` say which of them are in
/// the image; none are given where all are.
void Winograd::transformInput(Elements &e, Value source, Value target, ArrayRef<Value> rows,
                              ArrayRef<Value> columns) {
  Code &code = kernel.code();
  int64_t n = inputs();
  forLanes(e, code.number(0), code.number(channels), [&](Value channel) {
    auto pixel = [&](int64_t i, int64_t j) {
      Value mask = e.mask;
      if (!rows.empty())
        mask = code.both(mask, code.spread(code.both(rows[i], columns[j])));
      Value at = code.add(
          code.add(source, kernel.dim(x[3] * (Dim(i * step(0)) * x[2] + Dim(j * step(1))))),
          channel);
      return code.loadLanes(element, kernel.pointer(conv.getX()), at, mask);
    };
    Value inRun = code.rem(channel, code.number(run));
    Value runAt =
        code.mul(code.div(channel, code.number(run)), code.number(places() * inputStride));
    Value to = code.add(code.add(target, runAt), inRun);
    SmallVector<Values> transformed; // by column
    for (int64_t j = 0; j < n; ++j) {
      Values column;
      for (int64_t i = 0; i < n; ++i)
        column.push_back(pixel(i, j));
      transformed.push_back(transform.input(code, column));
    }
    for (int64_t i = 0; i < n; ++i) {
      Values row;
      for (int64_t j = 0; j < n; ++j)
        row.push_back(transformed[j][i]);
      for (auto [j, value] : llvm::enumerate(transform.input(code, row))) {
        Value place = code.number((i * n + (int64_t)j) * inputStride);
        code.storeLanes(element, value, kernel.scratch(), code.add(to, place), {});
      }
    }
  });
}

void Winograd::emitInput(Elements &e, Value number, Value tile) {
  Code &code = kernel.code();
  Place place = placeOf(tile);
  Value top = code.sub(place.row, code.number(conv.getLow()[0]));
  Value left = code.sub(place.column, code.number(conv.getLow()[1]));
  Value height = kernel.dim(x[1]), width = kernel.dim(x[2]);
  Value line = code.add(code.mul(place.image, height), top);
  Value source = code.mul(code.add(code.mul(line, width), left), kernel.dim(x[3]));
  Value target = code.mul(number, code.number(run));
  auto insideFrom = [&](Value first, Value size, size_t axis) {
    Values result;
    for (int64_t i = 0; i < inputs(); ++i)
      result.push_back(inside(e, e.uniform(code.add(first, code.number(i * step(axis)))), size));
    return result;
  };
  Values rows = insideFrom(top, height, 0), columns = insideFrom(left, width, 1);
  Value isInside =
      code.both(code.both(rows.front(), rows.back()), code.both(columns.front(), columns.back()));
  code.choose(
      isInside, TypeRange(),
      [&] {
        Elements::Scope scope(e);
        transformInput(e, source, target, {}, {});
        return Values();
      },
      [&] {
        Elements::Scope scope(e);
        transformInput(e, source, target, rows, columns);
        return Values();
      });
}

/// The epilogue of one pixel of the tile: `value` stands for the convolution's result.
void Winograd::storePixel(Elements &e, const Place &place, Value i, Value j, Value value,
                          Value column) {
  Code &code = kernel.code();
  Elements::Scope scope(e);
  Indices at{e.uniform(place.image),
             e.uniform(code.add(place.row, code.mul(i, code.number(step(0))))),
             e.uniform(code.add(place.column, code.mul(j, code.number(step(1))))),
             {column, 1, {}}};
  e.bind(conv.getResult(), [value](ArrayRef<Index>) { return value; });
  for (Value result : outputsOf(group))
    e.store(result, e.at(result, at), at);
  e.unbind(conv.getResult());
}

/// Products at `source`, `places` vectors a panel's width apart, become m x m pixels from `column`
/// on. Tiles that reach over the image's end leave them in the scratch first and store those that
/// are pixels.
void Winograd::transformOutput(Elements &e, Value source, Value column, const Place &place) {
  Code &code = kernel.code();
  int64_t n = inputs(), m = outputs(), width = panelWidth();
  auto at = [&](int64_t number) { return code.add(source, code.number(number * width)); };
  SmallVector<Values> transformed; // by column
  for (int64_t j = 0; j < n; ++j) {
    Values products;
    for (int64_t i = 0; i < n; ++i)
      products.push_back(code.loadLanes(element, kernel.scratch(), at(i * n + j), {}));
    transformed.push_back(transform.output(code, products));
  }
  SmallVector<Values> pixels;
  for (int64_t i = 0; i < m; ++i) {
    Values row;
    for (int64_t j = 0; j < n; ++j)
      row.push_back(transformed[j][i]);
    pixels.push_back(transform.output(code, row));
  }
  auto countFrom = [&](Value first, size_t axis) { // of the tile's rows, or columns
    Value left = code.sub(kernel.dim(y[1 + axis]), first);
    return step(axis) == 1 ? left : code.ceilDiv(code.max(left, code.number(0)), step(axis));
  };
  Value height = countFrom(place.row, 0), across = countFrom(place.column, 1);
  Value size = code.number(m);
  auto storeAll = [&] {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < m; ++j)
        storePixel(e, place, code.number(i), code.number(j), pixels[i][j], column);
    return Values();
  };
  auto storeSome = [&] {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < m; ++j)
        code.storeLanes(element, pixels[i][j], kernel.scratch(), at(i * m + j), {});
    code.forEach(code.number(0), code.min(height, size), 1, [&](Value i) {
      code.forEach(code.number(0), code.min(across, size), 1, [&](Value j) {
        Value from = code.add(source, code.mul(code.add(code.mul(i, size), j), code.number(width)));
        Value value = code.loadLanes(element, kernel.scratch(), from, {});
        storePixel(e, place, i, j, value, column);
      });
    });
    return Values();
  };
  bool isExact =
      y[1].mod(Dim(m * step(0))).isConstant(0) && y[2].mod(Dim(m * step(1))).isConstant(0);
  if (isExact) {
    storeAll();
    return;
  }
  Value last = code.number(m - 1);
  code.choose(code.both(code.less(last, height), code.less(last, across)), TypeRange(), storeAll,
              storeSome);
}

void Winograd::emitOutput(Elements &e, Value number, Value tile, Value panel) {
  Code &code = kernel.code();
  Place place = placeOf(tile);
  Value first = code.mul(panel, code.number(panelWidth()));
  Value source = code.add(code.mul(number, code.number(productStride)), code.number(productsAt));
  Value left = code.sub(code.number(filters), first);
  Value end = code.min(code.number(panelWidth()), left);
  auto transform = [&](Value shift) {
    Elements::Scope scope(e);
    transformOutput(e, code.add(source, shift), code.add(first, shift), place);
  };
  if (filters % code.lanes == 0)
    code.forEach(code.number(0), end, code.lanes, transform);
  else
    forLanes(e, code.number(0), end, transform);
}

} // namespace heddle::lower
