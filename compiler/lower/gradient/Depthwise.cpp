// Depthwise: vectors of channels, line by line, and the sums of parts.

#include "compiler/lower/gradient/Depthwise.h"

using namespace mlir;

namespace heddle::lower {

void DepthwiseGradient::emit() {
  Dim sums(blocks() * shape.places * kernel.machine.lanes);
  partial = kernel.addTemporary(Dim(shape.parts) * sums * Dim(sizeof(float)));
  kernel.beginPhase();
  kernel.forEachTask([&](Value part) {
    Code &code = kernel.code();
    Value zero = code.number(0), zeros = code.spread(code.constantOf(element, 0));
    Value size = kernel.dim(sums);
    Value own = code.at(kernel.temporary(partial), element, code.mul(part, size));
    code.forEach(zero, size, code.lanes,
                 [&](Value at) { code.storeLanes(element, zeros, own, at, {}); });
    auto [first, end] = lines.ofPart(part);
    lines.forEach(first, end, [&](Value count) {
      code.forEach(zero, count, 1, [&](Value number) {
        Line line = lines.at(number);
        code.forEach(zero, code.number(shape.places / shape.window.back()), 1,
                     [&](Value outer) { emitRow(line, outer, own); });
      });
    });
  });
  kernel.endPhase(Dim(shape.parts), (shape.positions() * sums).floorDiv(Dim(4)),
                  Dim(shape.panelAt()));
  emitAddition();
}

/// All channels of the places in one row of the window.
void DepthwiseGradient::emitRow(const Line &line, Value outerPlace, Value sums) {
  Code &code = kernel.code();
  Value first = code.mul(outerPlace, code.number(shape.window.back()));
  SmallVector<Span> spans;
  for (int64_t k = 0; k < shape.window.back(); ++k)
    spans.push_back(lines.spanOf(line, lines.placeAt(code.add(first, code.number(k)))));
  code.forEach(code.number(0), code.number(blocks()), 1, [&](Value block) {
    Value row = code.add(code.mul(block, code.number(shape.places)), first);
    sumRow(line, spans, block, code.at(sums, element, code.mul(row, code.number(code.lanes))));
  });
}

/// One vector of channels; `sums` are those of the spans, side by side.
void DepthwiseGradient::sumRow(const Line &line, ArrayRef<Span> spans, Value block, Value sums) {
  Code &code = kernel.code();
  auto endOf = [&](const Span &span) { return code.add(span.first, span.count); };
  Value first = spans[0].first, end = endOf(spans[0]);
  for (const Span &span : spans.drop_front()) {
    first = code.max(first, span.first);
    end = code.min(end, endOf(span));
  }
  end = code.max(first, end);
  auto columns = [&](Value from, Value to) { return Span{from, code.sub(to, from), {}}; };
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
Values DepthwiseGradient::sumColumns(const Line &line, ArrayRef<Span> spans, Span columns,
                                     Value block, ValueRange sums) {
  Code &code = kernel.code();
  Value channel = code.mul(block, code.number(code.lanes)), mask;
  if (shape.groups % code.lanes != 0)
    mask = code.maskOf(
        code.min(code.sub(code.number(shape.groups), channel), code.number(code.lanes)));
  Value distance = kernel.dim(shape.x.back());
  Value step = code.mul(code.number(shape.strides.back()), distance);
  Value ofSlopes = kernel.pointer(shape.slopes), ofImage = kernel.pointer(shape.image);
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

void DepthwiseGradient::emitAddition() {
  kernel.beginPhase();
  kernel.forEachTask([&](Value block) {
    Code &code = kernel.code();
    int64_t lanes = code.lanes;
    Value channel = code.mul(block, code.number(lanes));
    Value mask =
        code.maskOf(code.min(code.sub(code.number(shape.groups), channel), code.number(lanes)));
    Value sums = kernel.temporary(partial), result = kernel.pointer(shape.result);
    Value apart = code.number(blocks() * shape.places * lanes);
    Value placesOfLanes = code.b.create<arith::MulIOp>(code.loc, code.laneNumbers(),
                                                       code.spread(code.number(shape.places)));
    code.forEach(code.number(0), code.number(shape.places), 1, [&](Value place) {
      Value term = code.add(code.mul(block, code.number(shape.places)), place);
      Value from = code.mul(term, code.number(lanes));
      Value zero = code.spread(code.constantOf(element, 0));
      Value total = code.fold(code.number(0), code.number(shape.parts), 1, zero,
                              [&](Value part, ValueRange in) -> Values {
                                Value at = code.add(code.mul(part, apart), from);
                                Value next = code.loadLanes(element, sums, at, {});
                                return {code.b.create<arith::AddFOp>(code.loc, in[0], next)};
                              })[0];
      Value first = code.add(code.mul(channel, code.number(shape.places)), place);
      Value indices = code.b.create<arith::AddIOp>(code.loc, placesOfLanes, code.spread(first));
      code.scatter(element, total, result, indices, mask);
    });
  });
  kernel.endPhase(Dim(blocks()), Dim(shape.parts) * Dim(blocks() * shape.places));
}

} // namespace heddle::lower
