// Depthwise: the gradient of filters of one channel each, channels in lanes.
//
// A line is read once from memory, all channels of it. For each row of the window a vector of
// channels has the sums of that row's places in registers; the columns that all of them have inside
// of the image take one loop, the others one for each place.

#include "compiler/lower/gradient/FilterGradient.h"

using namespace mlir;

namespace heddle::lower {

void FilterGradient::emitDepthwise() {
  Dim sums(blocks() * places * kernel.machine.lanes);
  partial = kernel.addTemporary(Dim(parts) * sums * Dim(sizeof(float)));
  kernel.beginPhase();
  kernel.forEachTask([&](Value part) {
    Code &code = kernel.code();
    Value zero = code.number(0), zeros = code.spread(code.constantOf(element, 0));
    Value count = kernel.dim(sums);
    Value own = code.at(kernel.temporary(partial), element, code.mul(part, count));
    code.forEach(zero, count, code.lanes,
                 [&](Value at) { code.storeLanes(element, zeros, own, at, {}); });
    auto [first, end] = linesOfPart(part);
    forEachLines(first, end, [&](Value lines) {
      code.forEach(zero, lines, 1, [&](Value number) {
        Line line = lineAt(number);
        code.forEach(zero, code.number(places / window.back()), 1,
                     [&](Value outer) { emitRow(line, outer, own); });
      });
    });
  });
  Dim positions = graph::elementCount(ArrayRef<Dim>(dy).drop_back());
  kernel.endPhase(Dim(parts), (positions * sums).floorDiv(Dim(4)), Dim(tableBytes()));
  emitDepthwiseAddition();
}

/// All channels of the places in one row of the window.
void FilterGradient::emitRow(const Line &line, Value outerPlace, Value sums) {
  Code &code = kernel.code();
  Value first = code.mul(outerPlace, code.number(window.back()));
  SmallVector<Span> spans;
  for (int64_t k = 0; k < window.back(); ++k)
    spans.push_back(spanOf(line, placeAt(code.add(first, code.number(k)))));
  code.forEach(code.number(0), code.number(blocks()), 1, [&](Value block) {
    Value row = code.add(code.mul(block, code.number(places)), first);
    sumRow(line, spans, block, code.at(sums, element, code.mul(row, code.number(code.lanes))));
  });
}

/// One vector of channels; `sums` are those of the spans, side by side.
void FilterGradient::sumRow(const Line &line, ArrayRef<Span> spans, Value block, Value sums) {
  Code &code = kernel.code();
  auto endOf = [&](const Span &span) { return code.add(span.first, span.count); };
  Value first = spans[0].first, end = endOf(spans[0]);
  for (const Span &span : spans.drop_front()) {
    first = code.max(first, span.first);
    end = code.min(end, endOf(span));
  }
  end = code.max(first, end);
  auto columns = [&](Value low, Value high) { return Span{low, code.sub(high, low), {}}; };
  Values totals;
  for (size_t k = 0; k < spans.size(); ++k)
    totals.push_back(code.loadLanes(element, sums, code.number((int64_t)k * code.lanes), {}));
  totals = sumColumns(line, spans, columns(first, end), block, totals);
  for (auto [k, span] : llvm::enumerate(spans)) {
    Span left = columns(span.first, code.min(endOf(span), first));
    Span right = columns(code.max(span.first, end), endOf(span));
    Values total = sumColumns(line, span, left, block, totals[k]);
    total = sumColumns(line, span, right, block, total);
    code.storeLanes(element, total[0], sums, code.number((int64_t)k * code.lanes), {});
  }
}

/// Sums over these columns, which all of the spans have.
Values FilterGradient::sumColumns(const Line &line, ArrayRef<Span> spans, Span columns, Value block,
                                  ValueRange sums) {
  Code &code = kernel.code();
  Value channel = code.mul(block, code.number(code.lanes)), mask;
  if (groups % code.lanes != 0)
    mask = code.maskOf(code.min(code.sub(code.number(groups), channel), code.number(code.lanes)));
  Value distance = kernel.dim(x.back());
  Value step = code.mul(code.number(strides.back()), distance);
  Value ofSlopes = kernel.pointer(slopes), ofImage = kernel.pointer(image);
  auto placeIn = [&](Value first, Value begin, Value each) {
    return code.add(code.add(first, channel), code.mul(code.sub(columns.first, begin), each));
  };
  Value from = placeIn(line.start, line.begin, distance);
  Values images;
  for (const Span &span : spans)
    images.push_back(placeIn(span.image, span.first, step));
  return code.fold(code.number(0), columns.count, 1, sums, [&](Value column, ValueRange in) {
    Value at = code.add(from, code.mul(column, distance));
    Value slope = code.loadLanes(element, ofSlopes, at, mask);
    Values next;
    for (auto [start, sum] : llvm::zip(images, in)) {
      Value pixel = code.add(start, code.mul(column, step));
      Value lanes = code.loadLanes(element, ofImage, pixel, mask);
      next.push_back(code.b.create<math::FmaOp>(code.loc, lanes, slope, sum));
    }
    return next;
  });
}

void FilterGradient::emitDepthwiseAddition() {
  kernel.beginPhase();
  kernel.forEachTask([&](Value block) {
    Code &code = kernel.code();
    int64_t lanes = code.lanes;
    Value channel = code.mul(block, code.number(lanes));
    Value mask = code.maskOf(code.min(code.sub(code.number(groups), channel), code.number(lanes)));
    Value sums = kernel.temporary(partial), result = kernel.pointer(op.getResult());
    Value apart = code.number(blocks() * places * lanes);
    Value placesOfLanes = code.b.create<arith::MulIOp>(code.loc, code.laneNumbers(),
                                                       code.spread(code.number(places)));
    code.forEach(code.number(0), code.number(places), 1, [&](Value place) {
      Value term = code.add(code.mul(block, code.number(places)), place);
      Value from = code.mul(term, code.number(lanes));
      Value zero = code.spread(code.constantOf(element, 0));
      Value total = code.fold(code.number(0), code.number(parts), 1, zero,
                              [&](Value part, ValueRange in) -> Values {
                                Value at = code.add(code.mul(part, apart), from);
                                Value next = code.loadLanes(element, sums, at, {});
                                return {code.b.create<arith::AddFOp>(code.loc, in[0], next)};
                              })[0];
      Value first = code.add(code.mul(channel, code.number(places)), place);
      Value indices = code.b.create<arith::AddIOp>(code.loc, placesOfLanes, code.spread(first));
      code.scatter(element, total, result, indices, mask);
    });
  });
  kernel.endPhase(Dim(blocks()), Dim(parts) * Dim(blocks() * places));
}

} // namespace heddle::lower
