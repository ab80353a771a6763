// FilterGradient: panels of dy, register tiles of channels by filters, and the sums of parts.

#include "compiler/lower/gradient/FilterGradient.h"

#include "compiler/mechanism/FilterGradient.h"

#include <numeric>

using namespace mlir;

namespace heddle::lower {

/// Elements of the image that a position meets in one strip after the other, at most.
static constexpr int64_t kChunk = 512;
LogicalResult FilterGradient::prepare() {
  op = dyn_cast<graph::ConvFilterGradientOp>(group->front());
  if (!op)
    return failure();
  element = graph::elementOf(op.getResult());
  image = op.getX();
  slopes = op.getDy();
  x = graph::dimsOf(image);
  dy = graph::dimsOf(slopes);
  DimVector w = graph::dimsOf(op.getResult());
  for (const Dim &size : ArrayRef<Dim>(w).drop_front(2))
    window.push_back(*size.constant());
  strides.assign(op.getStrides().begin(), op.getStrides().end());
  dilations.assign(op.getDilations().begin(), op.getDilations().end());
  low.assign(op.getLow().begin(), op.getLow().end());
  groups = op.getGroups();
  channels = *w[1].constant();
  filters = *w[0].constant() / groups;
  places = std::accumulate(window.begin(), window.end(), int64_t(1), std::multiplies<>());
  if (mechanism::meetsOnePixel(op)) {
    flatten();
    isTurned = schedule.knob("turned", 0) != 0;
  }
  if (isTurned) {
    std::swap(image, slopes);
    std::swap(x, dy);
    std::swap(channels, filters);
  }
  int64_t lanes = kernel.machine.lanes;
  n = isDepthwise() ? 0 : llvm::alignTo(schedule.knob("n", 2 * lanes), lanes);
  m = std::min(schedule.knob("m", 8), std::max<int64_t>(channels, 1));
  parts = schedule.knob("parts", 1);
  copiesImage = !isDepthwise() && schedule.knob("strips", 0) != 0;
  copiesSlopes = !isDepthwise() && schedule.knob("panels", 0) != 0;
  return success();
}

/// All positions are columns of one line.
void FilterGradient::flatten() {
  for (DimVector *sizes : {&x, &dy}) {
    Dim pixels = graph::elementCount(ArrayRef<Dim>(*sizes).drop_back());
    *sizes = {Dim(1), pixels, sizes->back()};
  }
  window = strides = dilations = {1};
  low = {0};
}

/// Few enough channels for many positions of them in the L2.
int64_t FilterGradient::chunk() const {
  int64_t most = std::max(kChunk / copiesOfImage(), m);
  int64_t least = llvm::divideCeil(channels, most);
  int64_t count = std::max(least, schedule.knob("chunks", 1));
  return llvm::alignTo(llvm::divideCeil(channels, count), m);
}

void FilterGradient::emit() {
  if (isDepthwise())
    return emitDepthwise();
  emitSums();
  if (parts > 1)
    emitAddition();
}

/// The number of what `task` counts fastest, of `count`; leaves the rest of the task's number.
static Value takeIndex(Code &code, Value &task, int64_t count) {
  Value index = code.rem(task, code.number(count));
  task = code.div(task, code.number(count));
  return index;
}

void FilterGradient::emitSums() {
  Dim sums = Dim(groups) * Dim(panels()) * Dim(channels) * Dim(places) * Dim(n);
  if (parts > 1)
    partial = kernel.addTemporary(Dim(parts) * sums * Dim(sizeof(float)));
  kernel.beginPhase();
  kernel.forEachTask([&](Value task) {
    Code &code = kernel.code();
    Block block;
    block.low = code.mul(takeIndex(code, task, chunks()), code.number(chunk()));
    block.high = code.min(code.add(block.low, code.number(chunk())), code.number(channels));
    block.group = takeIndex(code, task, groups);
    block.sums = parts > 1 ? partialAt(task, block) : scratchAt(sumsAt());
    emitTask(block, task);
  });
  Dim sumBytes = Dim(parts > 1 ? 0 : panels() * chunk()) * Dim(places) * Dim(n * sizeof(float));
  Dim positions = graph::elementCount(ArrayRef<Dim>(dy).drop_back());
  kernel.endPhase(Dim(parts) * Dim(groups) * Dim(chunks()),
                  (positions * sums).floorDiv(Dim(kernel.machine.lanes)), Dim(sumsAt()) + sumBytes);
}

/// Partial sums of a chunk: its panels lie side by side, after those of the chunks before.
Value FilterGradient::partialAt(Value part, const Block &block) {
  Code &code = kernel.code();
  Value at = code.add(code.mul(part, code.number(groups)), block.group);
  at = code.mul(code.add(code.mul(at, code.number(channels)), block.low), code.number(panels()));
  return code.at(kernel.temporary(partial), element, code.mul(at, code.number(places * n)));
}

void FilterGradient::forEachPanel(const Block &block,
                                  llvm::function_ref<void(const Block &)> body) {
  Code &code = kernel.code();
  Value size = code.mul(code.sub(block.high, block.low), code.number(places * n));
  code.forEach(code.number(0), code.number(panels()), 1, [&](Value panel) {
    Block one = block;
    one.panel = panel;
    one.sums = code.at(block.sums, element, code.mul(panel, size));
    body(one);
  });
}

void FilterGradient::emitTask(const Block &block, Value part) {
  Code &code = kernel.code();
  Value zero = code.number(0), zeros = code.spread(code.constantOf(element, 0));
  Value end = code.mul(code.sub(block.high, block.low), code.number(panels() * places * n));
  code.forEach(zero, end, code.lanes,
               [&](Value at) { code.storeLanes(element, zeros, block.sums, at, {}); });
  auto [first, last] = linesOfPart(part);
  forEachLines(first, last, [&](Value count) {
    if (copiesImage)
      copyImage(block, count);
    forEachPanel(block, [&](const Block &one) {
      if (copiesSlopes)
        copyPanel(one, count);
      emitTiles(one, count);
    });
  });
  if (parts == 1)
    forEachPanel(block, [&](const Block &one) {
      code.forEach(zero, vectorsOf(one), 1, [&](Value vector) { storeResult(one, vector); });
    });
}

/// Vectors of a panel that have filters.
Value FilterGradient::vectorsOf(const Block &block) {
  Code &code = kernel.code();
  Value rest = code.sub(code.number(filters), code.mul(block.panel, code.number(n)));
  return code.ceilDiv(code.min(rest, code.number(n)), code.lanes);
}

/// Masks of the lanes of a panel's vectors that have filters; null: all.
Values FilterGradient::masksOf(const Block &block) {
  Code &code = kernel.code();
  Value first = code.mul(block.panel, code.number(n));
  Values masks(vectors());
  for (int64_t j = 0; j < vectors() && filters % n != 0; ++j) {
    Value rest = code.sub(code.number(filters), code.add(first, code.number(j * code.lanes)));
    masks[j] = code.maskOf(code.max(code.min(rest, code.number(code.lanes)), code.number(0)));
  }
  return masks;
}

/// First column of the group's panel within a pixel.
Value FilterGradient::firstColumn(const Block &block) {
  Code &code = kernel.code();
  Value column = code.mul(block.panel, code.number(n));
  return code.add(code.mul(block.group, code.number(filters)), column);
}

/// The columns of dy side by side, with zeros for those that no filter has.
void FilterGradient::copyPanel(const Block &block, Value count) {
  Code &code = kernel.code();
  Value from = kernel.pointer(slopes), to = panelOfSlopes(), first = firstColumn(block);
  Values masks = masksOf(block);
  code.forEach(code.number(0), count, 1, [&](Value number) {
    Line line = lineAt(number);
    Value source = code.add(line.start, first);
    Value target = code.mul(code.mul(number, lineWidth()), code.number(n));
    code.forEach(code.number(0), code.sub(line.end, line.begin), 1, [&](Value at) {
      Value read = code.add(source, code.mul(at, kernel.dim(dy.back())));
      Value written = code.add(target, code.mul(at, code.number(n)));
      for (int64_t j = 0; j < vectors(); ++j) {
        Value shift = code.number(j * code.lanes);
        Value lanes = code.loadLanes(element, from, code.add(read, shift), masks[j]);
        code.storeLanes(element, lanes, to, code.add(written, shift), {});
      }
    });
  });
}

/// All places for a few channels before the next ones, which share lines of the cache.
void FilterGradient::emitTiles(const Block &block, Value count) {
  Code &code = kernel.code();
  auto emitPlaces = [&](Value channel, int64_t rows) {
    code.forEach(code.number(0), code.number(places), 1,
                 [&](Value place) { emitTile(block, {channel, place, rows}, count); });
  };
  Value step = code.number(m), channelCount = code.sub(block.high, block.low);
  Value whole = code.add(block.low, code.mul(code.div(channelCount, step), step));
  code.forEach(block.low, whole, m, [&](Value channel) { emitPlaces(channel, m); });
  if (channels % m != 0)
    code.when(code.less(whole, block.high), [&] { emitPlaces(whole, channels % m); });
}

void FilterGradient::emitTile(const Block &block, const Tile &tile, Value count) {
  Code &code = kernel.code();
  Place place = placeAt(tile.place);
  Value row = code.mul(code.sub(tile.channel, block.low), code.number(places));
  auto placeOf = [&](int64_t number) { // of a sum
    Value from = code.add(row, code.number(number / vectors() * places));
    Value at = code.mul(code.add(from, tile.place), code.number(n));
    return code.add(at, code.number(number % vectors() * code.lanes));
  };
  Values sums(tile.rows * vectors(), code.spread(code.constantOf(element, 0)));
  Values masks = copiesSlopes ? Values(vectors()) : masksOf(block);
  sums = code.fold(code.number(0), count, 1, sums, [&](Value number, ValueRange in) {
    Line line = lineAt(number);
    Span span = spanOf(line, place);
    Column column{number, code.sub(span.first, line.begin)};
    Meeting meeting{copiesImage ? pixelsInStrip(block, tile, column)
                                : pixelsInImage(block, tile, span),
                    copiesSlopes ? slopesInPanel(column) : slopesInImage(block, line, column),
                    span.count, tile.rows, masks};
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
  Value channel = code.add(code.mul(block.group, code.number(channels)), tile.channel);
  return code.at(kernel.pointer(image), element, code.add(span.image, channel));
}

Value FilterGradient::slopesInPanel(const Column &column) {
  Code &code = kernel.code();
  Value position = code.add(code.mul(column.line, lineWidth()), column.number);
  return code.at(panelOfSlopes(), element, code.mul(position, code.number(n)));
}

Value FilterGradient::slopesInImage(const Block &block, const Line &line, const Column &column) {
  Code &code = kernel.code();
  Value shift = code.mul(column.number, kernel.dim(dy.back()));
  Value first = code.add(line.start, firstColumn(block));
  return code.at(kernel.pointer(slopes), element, code.add(first, shift));
}

/// One column at a time: a vector of dy for each of the tile's, times an element of the image for
/// each row.
Values FilterGradient::sumSpan(const Meeting &meeting, ValueRange sums) {
  Code &code = kernel.code();
  Value pixelStep = copiesImage ? code.number(slotStep() * m)
                                : code.mul(code.number(strides.back()), kernel.dim(x.back()));
  Value slopeStep = copiesSlopes ? code.number(n) : kernel.dim(dy.back());
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
  Value column = code.add(code.mul(block.panel, code.number(n)), shift);
  Value mask =
      code.maskOf(code.min(code.sub(code.number(filters), column), code.number(code.lanes)));
  code.forEach(block.low, block.high, 1, [&](Value filter) {
    Value from = code.mul(code.sub(filter, block.low), code.number(n));
    Value row = code.add(code.mul(block.group, code.number(channels)), filter);
    Value to = code.add(code.mul(row, code.number(filters)), column);
    Value sum = sumOfParts(block, code.add(from, shift))[0];
    code.storeLanes(element, sum, kernel.pointer(op.getResult()), to, mask);
  });
}

/// A vector of filters of the panel. Sums lie filters first, the result's terms first: squares of
/// registers turn them.
void FilterGradient::storeResult(const Block &block, Value vector) {
  if (isTurned)
    return storeTurned(block, vector);
  Code &code = kernel.code();
  Value terms = code.mul(code.sub(block.high, block.low), code.number(places));
  Value last = code.sub(terms, code.number(1)), shift = code.mul(vector, code.number(code.lanes));
  Value filter = code.add(code.mul(block.panel, code.number(n)), shift);
  Value result = kernel.pointer(op.getResult());
  code.forEach(code.number(0), terms, code.lanes, [&](Value term) {
    Values places;
    for (int64_t i = 0; i < code.lanes; ++i) {
      Value row = code.min(code.add(term, code.number(i)), last);
      places.push_back(code.add(code.mul(row, code.number(n)), shift));
    }
    Values square = code.transpose(sumOfParts(block, places));
    Value mask = code.maskOf(code.min(code.sub(terms, term), code.number(code.lanes)));
    for (int64_t i = 0; i < code.lanes; ++i) {
      Value number = code.add(filter, code.number(i));
      Value row = code.add(code.mul(block.group, code.number(filters)), number);
      Value begin = code.add(code.mul(row, code.number(channels)), block.low);
      Value at = code.add(code.mul(begin, code.number(this->places)), term);
      auto store = [&] { code.storeLanes(element, square[i], result, at, mask); };
      if (filters % code.lanes == 0)
        store();
      else
        code.when(code.less(number, code.number(filters)), store);
    }
  });
}

Values FilterGradient::sumOfParts(const Block &block, ArrayRef<Value> places) {
  Code &code = kernel.code();
  auto load = [&](Value pointer, Value place) {
    return code.loadLanes(element, pointer, place, {});
  };
  Values first;
  for (Value place : places)
    first.push_back(load(block.sums, place));
  if (parts == 1)
    return first;
  Value apart = code.number(groups * panels() * channels * this->places * n);
  return code.fold(code.number(1), code.number(parts), 1, first, [&](Value part, ValueRange in) {
    Value pointer = code.at(block.sums, element, code.mul(part, apart));
    Values next;
    for (auto [place, sum] : llvm::zip(places, in))
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
    block.panel = takeIndex(code, task, panels());
    block.low = code.mul(takeIndex(code, task, chunks()), code.number(chunk()));
    block.high = code.min(code.add(block.low, code.number(chunk())), code.number(channels));
    block.group = task;
    Value size = code.mul(code.sub(block.high, block.low), code.number(places * n));
    block.sums = code.at(partialAt(code.number(0), block), element, code.mul(block.panel, size));
    code.when(code.less(vector, vectorsOf(block)), [&] { storeResult(block, vector); });
  });
  Dim tasks = Dim(groups) * Dim(panels()) * Dim(vectors()) * Dim(chunks());
  kernel.endPhase(tasks, tasks * Dim(parts) * Dim(chunk()) * Dim(places));
}

LogicalResult emitFilterGradient(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  return carryOut<FilterGradient>(kernel, group, schedule);
}

} // namespace heddle::lower
