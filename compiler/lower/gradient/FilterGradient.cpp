// FilterGradient: register tiles of channels by filters, and the sums of parts.

#include "compiler/lower/gradient/FilterGradient.h"

#include "compiler/lower/gradient/Depthwise.h"

using namespace mlir;

namespace heddle::lower {

void FilterGradient::emit() {
  emitSums();
  if (shape.parts > 1)
    emitAddition();
}

/// The number of what `task` counts fastest, of `count`; leaves the rest of the task's number.
static Value takeIndex(Code &code, Value &task, int64_t count) {
  Value index = code.rem(task, code.number(count));
  task = code.div(task, code.number(count));
  return index;
}

void FilterGradient::emitSums() {
  Dim sums = Dim(shape.groups) * Dim(shape.panels()) * Dim(shape.channels) * Dim(shape.places) *
             Dim(shape.n);
  if (shape.parts > 1)
    partial = kernel.addTemporary(Dim(shape.parts) * sums * Dim(sizeof(float)));
  kernel.beginPhase();
  kernel.forEachTask([&](Value task) {
    Code &code = kernel.code();
    Block block;
    block.low = code.mul(takeIndex(code, task, shape.chunks()), code.number(shape.chunk));
    block.high =
        code.min(code.add(block.low, code.number(shape.chunk)), code.number(shape.channels));
    block.group = takeIndex(code, task, shape.groups);
    block.sums = shape.parts > 1 ? partialAt(task, block) : lines.scratchAt(shape.sumsAt());
    emitTask(block, task);
  });
  Dim sumBytes = Dim(shape.parts > 1 ? 0 : shape.panels() * shape.chunk) * Dim(shape.places) *
                 Dim(shape.n * sizeof(float));
  kernel.endPhase(Dim(shape.parts) * Dim(shape.groups) * Dim(shape.chunks()),
                  (shape.positions() * sums).floorDiv(Dim(kernel.machine.lanes)),
                  Dim(shape.sumsAt()) + sumBytes);
}

/// Partial sums of a chunk: its panels lie side by side, after those of the chunks before.
Value FilterGradient::partialAt(Value part, const Block &block) {
  Code &code = kernel.code();
  Value at = code.add(code.mul(part, code.number(shape.groups)), block.group);
  at = code.mul(code.add(code.mul(at, code.number(shape.channels)), block.low),
                code.number(shape.panels()));
  return code.at(kernel.temporary(partial), element,
                 code.mul(at, code.number(shape.places * shape.n)));
}

void FilterGradient::forEachPanel(const Block &block,
                                  llvm::function_ref<void(const Block &)> body) {
  Code &code = kernel.code();
  Value size = code.mul(code.sub(block.high, block.low), code.number(shape.places * shape.n));
  code.forEach(code.number(0), code.number(shape.panels()), 1, [&](Value panel) {
    Block one = block;
    one.panel = panel;
    one.sums = code.at(block.sums, element, code.mul(panel, size));
    body(one);
  });
}

void FilterGradient::emitTask(const Block &block, Value part) {
  Code &code = kernel.code();
  Value zero = code.number(0), zeros = code.spread(code.constantOf(element, 0));
  Value end = code.mul(code.sub(block.high, block.low),
                       code.number(shape.panels() * shape.places * shape.n));
  code.forEach(zero, end, code.lanes,
               [&](Value at) { code.storeLanes(element, zeros, block.sums, at, {}); });
  auto [first, last] = lines.ofPart(part);
  lines.forEach(first, last, [&](Value count) {
    if (shape.copiesImage)
      strips.copy(block, count);
    forEachPanel(block, [&](const Block &one) {
      if (shape.copiesSlopes)
        slopes.copy(one, count);
      emitTiles(one, count);
    });
  });
  if (shape.parts == 1)
    forEachPanel(block, [&](const Block &one) {
      code.forEach(zero, vectorsOf(one), 1, [&](Value vector) { storeResult(one, vector); });
    });
}

/// Vectors of a panel that have filters.
Value FilterGradient::vectorsOf(const Block &block) {
  Code &code = kernel.code();
  Value rest = code.sub(code.number(shape.filters), code.mul(block.panel, code.number(shape.n)));
  return code.ceilDiv(code.min(rest, code.number(shape.n)), code.lanes);
}

/// All places for a few channels before the next ones, which share lines of the cache.
void FilterGradient::emitTiles(const Block &block, Value count) {
  Code &code = kernel.code();
  auto emitPlaces = [&](Value channel, int64_t rows) {
    code.forEach(code.number(0), code.number(shape.places), 1,
                 [&](Value place) { emitTile(block, {channel, place, rows}, count); });
  };
  Value step = code.number(shape.m), channelCount = code.sub(block.high, block.low);
  Value whole = code.add(block.low, code.mul(code.div(channelCount, step), step));
  code.forEach(block.low, whole, shape.m, [&](Value channel) { emitPlaces(channel, shape.m); });
  if (shape.channels % shape.m != 0)
    code.when(code.less(whole, block.high), [&] { emitPlaces(whole, shape.channels % shape.m); });
}

void FilterGradient::emitTile(const Block &block, const Tile &tile, Value count) {
  Code &code = kernel.code();
  WindowPlace place = lines.placeAt(tile.place);
  Value row = code.mul(code.sub(tile.channel, block.low), code.number(shape.places));
  auto placeOf = [&](int64_t number) { // of a sum
    Value from = code.add(row, code.number(number / vectors() * shape.places));
    Value at = code.mul(code.add(from, tile.place), code.number(shape.n));
    return code.add(at, code.number(number % vectors() * code.lanes));
  };
  Values sums(tile.rows * vectors(), code.spread(code.constantOf(element, 0)));
  Values masks = shape.copiesSlopes ? Values(vectors()) : slopes.masksOf(block);
  sums = code.fold(code.number(0), count, 1, sums, [&](Value number, ValueRange in) {
    Line line = lines.at(number);
    Span span = lines.spanOf(line, place);
    LineColumn column{number, code.sub(span.first, line.begin)};
    Meeting meeting{shape.copiesImage ? strips.pixels(block, tile, column)
                                      : pixelsInImage(block, tile, span),
                    slopes.at(block, line, column), span.count, tile.rows, masks};
    return sumSpan(meeting, in);
  });
  for (auto [i, sum] : llvm::enumerate(sums)) {
    Value before = code.loadLanes(element, block.sums, placeOf(i), {});
    Value total = code.b.create<arith::AddFOp>(code.loc, before, sum);
    code.storeLanes(element, total, block.sums, placeOf(i), {});
  }
}

Value FilterGradient::pixelsInImage(const Block &block, const Tile &tile, const Span &span) {
  Code &code = kernel.code();
  Value channel = code.add(code.mul(block.group, code.number(shape.channels)), tile.channel);
  return code.at(kernel.pointer(shape.image), element, code.add(span.image, channel));
}

/// One column at a time: a vector of dy for each of the tile's, times an element of the
/// image for each row.
Values FilterGradient::sumSpan(const Meeting &meeting, ValueRange sums) {
  Code &code = kernel.code();
  Value pixelStep = shape.copiesImage
                        ? code.number(shape.slotStep() * shape.m)
                        : code.mul(code.number(shape.strides.back()), kernel.dim(shape.x.back()));
  Value slopeStep = shape.copiesSlopes ? code.number(shape.n) : kernel.dim(shape.dy.back());
  return code.fold(code.number(0), meeting.count, 1, sums, [&](Value column, ValueRange in) {
    Value pixel = code.mul(column, pixelStep), slope = code.mul(column, slopeStep);
    Values right, next;
    for (auto [j, mask] : llvm::enumerate(meeting.masks)) {
      Value at = code.add(slope, code.number((int64_t)j * code.lanes));
      right.push_back(code.loadLanes(element, meeting.slopes, at, mask));
    }
    for (int64_t i = 0; i < meeting.rows; ++i) {
      Value at = code.add(pixel, code.number(i));
      Value left = code.spread(code.load(element, meeting.pixels, at));
      for (int64_t j = 0; j < vectors(); ++j)
        next.push_back(code.b.create<math::FmaOp>(code.loc, left, right[j], in[i * vectors() + j]));
    }
    return next;
  });
}

/// Rows are filters and columns channels, as in the result.
void FilterGradient::storeTurned(const Block &block, Value vector) {
  Code &code = kernel.code();
  Value shift = code.mul(vector, code.number(code.lanes));
  Value column = code.add(code.mul(block.panel, code.number(shape.n)), shift);
  Value mask =
      code.maskOf(code.min(code.sub(code.number(shape.filters), column), code.number(code.lanes)));
  code.forEach(block.low, block.high, 1, [&](Value filter) {
    Value from = code.mul(code.sub(filter, block.low), code.number(shape.n));
    Value row = code.add(code.mul(block.group, code.number(shape.channels)), filter);
    Value to = code.add(code.mul(row, code.number(shape.filters)), column);
    Value sum = sumOfParts(block, code.add(from, shift))[0];
    code.storeLanes(element, sum, kernel.pointer(shape.result), to, mask);
  });
}

/// A vector of filters of the panel. Sums lie filters first, the result's terms first:
/// squares of registers turn them.
void FilterGradient::storeResult(const Block &block, Value vector) {
  if (shape.isTurned)
    return storeTurned(block, vector);
  Code &code = kernel.code();
  Value terms = code.mul(code.sub(block.high, block.low), code.number(shape.places));
  Value last = code.sub(terms, code.number(1)), shift = code.mul(vector, code.number(code.lanes));
  Value filter = code.add(code.mul(block.panel, code.number(shape.n)), shift);
  Value result = kernel.pointer(shape.result);
  code.forEach(code.number(0), terms, code.lanes, [&](Value term) {
    Values from;
    for (int64_t i = 0; i < code.lanes; ++i) {
      Value row = code.min(code.add(term, code.number(i)), last);
      from.push_back(code.add(code.mul(row, code.number(shape.n)), shift));
    }
    Values square = code.transpose(sumOfParts(block, from));
    Value mask = code.maskOf(code.min(code.sub(terms, term), code.number(code.lanes)));
    for (int64_t i = 0; i < code.lanes; ++i) {
      Value number = code.add(filter, code.number(i));
      Value row = code.add(code.mul(block.group, code.number(shape.filters)), number);
      Value begin = code.add(code.mul(row, code.number(shape.channels)), block.low);
      Value at = code.add(code.mul(begin, code.number(shape.places)), term);
      auto store = [&] { code.storeLanes(element, square[i], result, at, mask); };
      if (shape.filters % code.lanes == 0)
        store();
      else
        code.when(code.less(number, code.number(shape.filters)), store);
    }
  });
}

Values FilterGradient::sumOfParts(const Block &block, ArrayRef<Value> from) {
  Code &code = kernel.code();
  auto load = [&](Value pointer, Value place) {
    return code.loadLanes(element, pointer, place, {});
  };
  Values first;
  for (Value place : from)
    first.push_back(load(block.sums, place));
  if (shape.parts == 1)
    return first;
  Value apart =
      code.number(shape.groups * shape.panels() * shape.channels * shape.places * shape.n);
  return code.fold(
      code.number(1), code.number(shape.parts), 1, first, [&](Value part, ValueRange in) {
        Value pointer = code.at(block.sums, element, code.mul(part, apart));
        Values next;
        for (auto [place, sum] : llvm::zip(from, in))
          next.push_back(code.b.create<arith::AddFOp>(code.loc, sum, load(pointer, place)));
        return next;
      });
}

void FilterGradient::emitAddition() {
  kernel.beginPhase();
  kernel.forEachTask([&](Value task) {
    Code &code = kernel.code();
    Value vector = takeIndex(code, task, vectors());
    Block block;
    block.panel = takeIndex(code, task, shape.panels());
    block.low = code.mul(takeIndex(code, task, shape.chunks()), code.number(shape.chunk));
    block.high =
        code.min(code.add(block.low, code.number(shape.chunk)), code.number(shape.channels));
    block.group = task;
    Value size = code.mul(code.sub(block.high, block.low), code.number(shape.places * shape.n));
    block.sums = code.at(partialAt(code.number(0), block), element, code.mul(block.panel, size));
    code.when(code.less(vector, vectorsOf(block)), [&] { storeResult(block, vector); });
  });
  Dim tasks = Dim(shape.groups) * Dim(shape.panels()) * Dim(vectors()) * Dim(shape.chunks());
  kernel.endPhase(tasks, tasks * Dim(shape.parts) * Dim(shape.chunk) * Dim(shape.places));
}

LogicalResult emitFilterGradient(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  GradientShape shape;
  if (failed(shape.read(kernel, group, schedule)))
    return failure();
  if (kernel.isTrial)
    return success();
  if (shape.isDepthwise())
    DepthwiseGradient(kernel, shape).emit();
  else
    FilterGradient(kernel, shape).emit();
  return success();
}

} // namespace heddle::lower
