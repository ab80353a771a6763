// Winograd: what it serves, how the tiles are shared among the workers, and the products.

#include "compiler/lower/winograd/Winograd.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/lower/contraction/Microkernel.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

LogicalResult Winograd::prepare() {
  auto convs = group->getOps<graph::ConvOp>();
  if (convs.empty())
    return failure();
  conv = *convs.begin();
  element = graph::storageOf(conv.getX());
  x = graph::dimsOf(conv.getX());
  y = graph::dimsOf(conv.getResult());
  DimVector w = graph::dimsOf(conv.getW());
  filters = *w[0].constant();
  channels = *w[1].constant();
  int64_t lanes = kernel.machine.lanes;
  vectors = std::max<int64_t>(1, schedule.knob("n", 3 * lanes) / lanes);
  isLate = schedule.knob("late", 0) || !areFiltersKnown();
  chooseBlocks();
  layOut();
  return success();
}

static Dim atLeastNone(const Dim &dim) {
  return dim.isNeverNegative() ? dim : Dim::max(dim, Dim(0));
}

/// Tiles of each of the images that a dilation makes, in turn: some of the last may have no pixel.
Dim Winograd::tilesAlong(size_t axis) {
  Dim ofOne = atLeastNone(y[1 + axis]).ceilDiv(Dim(step(axis)));
  return ofOne.ceilDiv(Dim(outputs())) * Dim(step(axis));
}

/// The first row, or column, of the result's tile with this number among all along the axis.
Value Winograd::pixelOf(Value tile, size_t axis) {
  Code &code = kernel.code();
  if (step(axis) == 1)
    return code.mul(tile, code.number(outputs()));
  Value apart = code.number(step(axis));
  Value first = code.mul(code.div(tile, apart), code.number(outputs() * step(axis)));
  return code.add(first, code.rem(tile, apart));
}

/// Blocks of tiles whose V and M fit the L2, equal ones and as many for each worker where the
/// images' sizes are known. Where there are fewer blocks than workers, these share the panels of a
/// block; and if its filters are late and there are panels enough, it is not split instead: to
/// transform its tiles again is less work than its filters.
void Winograd::chooseBlocks() {
  int64_t workers = std::max<int64_t>(1, kernel.machine.workers);
  tilesDown = tilesAlong(0);
  tilesAcross = tilesAlong(1);
  tileCount = y[0] * tilesDown * tilesAcross;
  int64_t most = schedule.knob("m", 8), lanes = kernel.machine.lanes;
  int64_t numbersOfTile = places() * (llvm::alignTo(channels, lanes) + panelWidth());
  int64_t near = kernel.machine.l2Bytes / 2 / (numbersOfTile * graph::bytesOf(element));
  // So many tiles use a number of the filters often enough that reading it from the L3, or
  // transforming it, does not count; so many rows, that splitting a block pays.
  int64_t usual = std::max(near, estimate::thresholdAt(conv, isLate ? estimate::kWinogradLateTiles
                                                                    : estimate::kWinogradTiles));
  int64_t leastRows = estimate::thresholdAt(conv, estimate::kWinogradRows);
  int64_t fitting = std::max(schedule.knob("tiles", usual), most);
  if (auto all = tileCount.constant())
    fitting =
        std::min(fitting, static_cast<int64_t>(llvm::alignTo(std::max<int64_t>(1, *all), most)));
  tilesOfBlock = fitting / most * most;
  // One, if the number of images is known only at run time.
  auto count = tileCount.evaluate([](StringRef) { return std::optional<int64_t>(1); });
  if (count && *count >= leastRows) {
    int64_t pieces = llvm::divideCeil(*count, fitting);
    int64_t panelsEach = llvm::divideCeil(panelCount(), workers);
    bool isShared = isLate && pieces < workers && panelsEach * workers <= panelCount() * 5 / 4;
    if (int64_t equal = llvm::alignTo(pieces, workers); !isShared && *count / equal >= leastRows)
      pieces = equal;
    tilesOfBlock = llvm::divideCeil(*count, pieces);
  }
  // Take the register tile that wastes the fewest rows, of those that are not much smaller.
  most = std::min(most, tilesOfBlock);
  tileRows = most;
  for (int64_t rows = most; rows >= std::max<int64_t>(1, most * 2 / 3); --rows)
    if (llvm::alignTo(tilesOfBlock, rows) < llvm::alignTo(tilesOfBlock, tileRows))
      tileRows = rows;
  tilesOfBlock = llvm::alignTo(tilesOfBlock, tileRows);
  blocks = tileCount.ceilDiv(Dim(tilesOfBlock));
  chunks = Dim::max(Dim(1), Dim::min(Dim(panelCount()), Dim(workers).ceilDiv(blocks)));
  if (blocks.isConstant(0))
    chunks = Dim(1);
}

/// The channels come in runs whose filters of a place fit the L1 and, where a task transforms those
/// of all places, the L2 beside M. Sums of runs are added up in M, which keeps the rounding errors
/// of long sums small, too.
void Winograd::layOut() {
  int64_t lanes = kernel.machine.lanes;
  productStride = places() * panelWidth() + lanes;
  int64_t bytes = graph::bytesOf(element), l2 = kernel.machine.l2Bytes;
  int64_t room = std::max(l2 / 4, l2 * 3 / 4 - tilesOfBlock * productStride * bytes) / places();
  int64_t longest =
      (isLate ? std::min(kernel.machine.l1Bytes / 2, room) : kernel.machine.l1Bytes / 2) /
      (panelWidth() * bytes);
  int64_t most = std::max<int64_t>(1, longest / lanes) * lanes;
  run = llvm::alignTo(llvm::divideCeil(channels, llvm::divideCeil(channels, most)), lanes);
  runs = llvm::divideCeil(channels, run);
  inputStride = tilesOfBlock * run + lanes;
  filterStride = run * panelWidth() + lanes;
  productsAt = runs * places() * inputStride;
  filtersAt = productsAt + tilesOfBlock * productStride;
  copyAt = filtersAt + (isLate ? places() * filterStride : 0);
}

Winograd::Place Winograd::placeOf(Value tile) {
  Code &code = kernel.code();
  Value across = kernel.dim(tilesAcross), down = kernel.dim(tilesDown);
  Value line = code.div(tile, across);
  return {code.div(line, down), pixelOf(code.rem(line, down), 0),
          pixelOf(code.rem(tile, across), 1)};
}

/// A register tile: tiles from `first` on at one place, times a run of channels' filters, to M or,
/// after the first run, onto it. Tiles past the last one are the last one again.
void Winograd::emitStrip(const Strip &strip) {
  Code &code = kernel.code();
  int64_t lanes = kernel.machine.lanes, width = panelWidth();
  Value from = code.mul(code.add(code.mul(strip.run, code.number(places())), strip.place),
                        code.number(inputStride));
  SmallVector<Value> aRows, targets;
  for (int64_t i = 0; i < tileRows; ++i) {
    Value last = code.sub(strip.count, code.number(1));
    Value row = code.min(code.add(strip.first, code.number(i)), last);
    aRows.push_back(code.add(from, code.mul(row, code.number(run))));
    Value target = code.add(code.mul(row, code.number(productStride)),
                            code.mul(strip.place, code.number(width)));
    for (int64_t j = 0; j < vectors; ++j)
      targets.push_back(code.add(target, code.number(productsAt + j * lanes)));
  }
  TileProduct product;
  product.element = product.accumulator = element;
  product.a = kernel.scratch();
  product.aRows = aRows;
  std::tie(product.b, product.bOffset) = filtersOf(strip);
  fetchFilters(strip, product);
  product.length = strip.length;
  SmallVector<Value> sums = emitProduct(code, {tileRows, vectors}, product);
  // All are read before any is written: the last tile may be there many times.
  if (!strip.isFirst)
    for (auto [sum, target] : llvm::zip(sums, targets))
      sum = code.b.create<arith::AddFOp>(
          code.loc, code.loadLanes(element, kernel.scratch(), target, {}), sum);
  for (auto [sum, target] : llvm::zip(sums, targets))
    code.storeLanes(element, sum, kernel.scratch(), target, {});
}

/// One panel of all of the block's products. A run's filters are transformed for all places at
/// once; where all are there already, M's numbers of a place stay in the L1 from run to run.
void Winograd::emitProducts(Value panel, Value count) {
  Code &code = kernel.code();
  Value strips = code.ceilDiv(count, tileRows), none = code.number(0);
  auto emitRun = [&](Value place, Value number, Value length, bool isFirst) {
    code.forEach(none, strips, 1, [&](Value strip) {
      Value first = code.mul(strip, code.number(tileRows));
      emitStrip({panel, place, number, length, first, count, isFirst});
    });
  };
  auto forEachPlace = [&](llvm::function_ref<void(Value)> body) {
    code.forEach(none, code.number(places()), 1, body);
  };
  auto forEachRun = [&](llvm::function_ref<void(Value, Value, bool)> body) {
    body(none, code.number(std::min(run, channels)), true);
    code.forEach(code.number(1), code.number(runs), 1, [&](Value number) {
      Value left = code.sub(code.number(channels), code.mul(number, code.number(run)));
      body(number, code.min(code.number(run), left), false);
    });
  };
  if (!isLate) {
    forEachPlace([&](Value place) {
      forEachRun([&](Value number, Value length, bool isFirst) {
        emitRun(place, number, length, isFirst);
      });
    });
    return;
  }
  forEachRun([&](Value number, Value length, bool isFirst) {
    emitFilters(panel, code.mul(number, code.number(run)), length);
    forEachPlace([&](Value place) { emitRun(place, number, length, isFirst); });
  });
}

void Winograd::emitBlock(Elements &e, Value block, Value firstPanel, Value endPanel) {
  Code &code = kernel.code();
  Value first = code.mul(block, code.number(tilesOfBlock));
  Value count = code.min(code.number(tilesOfBlock), code.sub(kernel.dim(tileCount), first));
  code.forEach(code.number(0), count, 1, [&](Value number) {
    Elements::Scope scope(e);
    emitInput(e, number, code.add(first, number));
  });
  code.forEach(firstPanel, endPanel, 1, [&](Value panel) {
    Elements::Scope scope(e);
    emitProducts(panel, count);
    code.forEach(code.number(0), count, 1, [&](Value number) {
      Elements::Scope inner(e);
      emitOutput(e, number, code.add(first, number), panel);
    });
  });
}

Dim Winograd::work() const {
  Dim products = tileCount * Dim(places() * channels * filters);
  return products.floorDiv(Dim(kernel.machine.lanes));
}

void Winograd::emit() {
  if (areFiltersKnown())
    packFilters();
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value all = kernel.dim(blocks), share = kernel.dim(Dim(panelCount()).ceilDiv(chunks));
    Value firstPanel = code.mul(code.div(task, all), share);
    Value endPanel = code.min(code.add(firstPanel, share), code.number(panelCount()));
    emitBlock(e, code.rem(task, all), firstPanel, endPanel);
  });
  int64_t scratch = areFiltersKnown() ? copyAt : copyAt + run * kTaps * panelWidth();
  kernel.endPhase(blocks * chunks, work(), Dim(scratch * graph::bytesOf(element)));
}

LogicalResult emitWinograd(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  return carryOut<Winograd>(kernel, group, schedule);
}

} // namespace heddle::lower
