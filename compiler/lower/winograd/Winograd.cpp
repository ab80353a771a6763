// Winograd: what it serves, how the tiles are shared among the workers, and the products.

#include "compiler/lower/winograd/Winograd.h"

#include "compiler/loop/Forms.h"
#include "compiler/loop/Microkernel.h"
#include "compiler/lower/Definitions.h"

#include "mlir/IR/Threading.h"

using namespace mlir;

namespace heddle::lower {

LogicalResult Winograd::checkOps() {
  SmallVector<Operation *> ops;
  for (Operation &op : group->without_terminator()) {
    ops.push_back(&op);
    if (auto found = dyn_cast<graph::ConvOp>(op))
      conv = found;
  }
  std::string why;
  if (loop::fitsForm("winograd", ops, why) != loop::Fit::Full)
    return kernel.refuse(why);
  if (!conv.getW().getDefiningOp<graph::ConstantOp>())
    return kernel.refuse("its filters are not constant");
  for (Value result : outputsOf(group))
    if (graph::dimsOf(result) != graph::dimsOf(conv.getResult()))
      return kernel.refuse("a result has another shape than the convolution's");
  return success();
}

LogicalResult Winograd::prepare() {
  if (failed(checkOps()))
    return failure();
  element = graph::elementOf(conv.getX());
  x = graph::dimsOf(conv.getX());
  y = graph::dimsOf(conv.getResult());
  DimVector w = graph::dimsOf(conv.getW());
  filters = *w[0].constant();
  channels = *w[1].constant();
  if (filters == 0 || channels == 0)
    return kernel.refuse("there are no channels");
  int64_t lanes = kernel.machine.lanes;
  vectors = std::max<int64_t>(1, schedule.knob("n", 3 * lanes) / lanes);
  chooseBlocks();
  return success();
}

static Dim atLeastNone(const Dim &dim) {
  return dim.isNeverNegative() ? dim : Dim::max(dim, Dim(0));
}

/// So many tiles use a number of the filters often enough that reading it from the L3 does not
/// count (bench/notes/2026-11-21-winograd.md), even where V does not fit the L2 then.
static constexpr int64_t kFewestTiles = 24;

/// Blocks as large as V and M fit the cache, equal ones where the sizes are known. Where there are
/// fewer of them than workers, these share the panels of a block too.
void Winograd::chooseBlocks() {
  int64_t lanes = kernel.machine.lanes, workers = std::max<int64_t>(1, kernel.machine.workers);
  tilesDown = atLeastNone(y[1]).ceilDiv(Dim(outputs()));
  tilesAcross = atLeastNone(y[2]).ceilDiv(Dim(outputs()));
  tileCount = y[0] * tilesDown * tilesAcross;
  // One vector more than is used, so that strides are no powers of 2.
  inputStride = llvm::alignTo(channels, lanes) + lanes;
  productStride = places() * panelWidth() + lanes;
  int64_t most = schedule.knob("m", 8);
  int64_t tileBytes = (places() * inputStride + productStride) * graph::bytesOf(element);
  int64_t fitting = schedule.knob("tiles", kernel.machine.l2Bytes / 2 / tileBytes);
  if (!schedule.knobs.count("tiles"))
    fitting = std::max(fitting, kFewestTiles);
  fitting = std::max(fitting, most);
  tilesOfBlock = fitting / most * most;
  if (auto count = tileCount.constant(); count && *count > 0) {
    int64_t pieces = llvm::divideCeil(*count, fitting);
    // As many for each worker, unless blocks become too small to use the filters often.
    if (int64_t equal = llvm::alignTo(pieces, workers); *count / equal >= 2 * most)
      pieces = equal;
    tilesOfBlock = llvm::divideCeil(*count, pieces);
  }
  // Of the register tiles that are not much smaller, the one that wastes the fewest rows.
  tileRows = most;
  for (int64_t rows = most; rows >= std::max<int64_t>(1, most * 2 / 3); --rows)
    if (llvm::alignTo(tilesOfBlock, rows) < llvm::alignTo(tilesOfBlock, tileRows))
      tileRows = rows;
  tilesOfBlock = llvm::alignTo(tilesOfBlock, tileRows);
  blocks = tileCount.ceilDiv(Dim(tilesOfBlock));
  chunks = Dim::max(Dim(1), Dim::min(Dim(panelCount()), Dim(workers).ceilDiv(blocks)));
  if (blocks.isConstant(0))
    chunks = Dim(1);
  productsAt = places() * (tilesOfBlock * inputStride + lanes);
}

/// [out, in, 3, 3] -> [panel][place][in][width].
void Winograd::packFilters() {
  std::vector<char> storage;
  ArrayRef<char> bytes =
      graph::constantBytes(conv.getW().getDefiningOp<graph::ConstantOp>().getValue(), storage);
  int64_t width = panelWidth();
  std::vector<char> packed(panelCount() * places() * channels * width * sizeof(float), 0);
  auto *target = reinterpret_cast<float *>(packed.data());
  parallelFor(conv.getContext(), 0, filters, [&](int64_t filter) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      float taps[9];
      std::memcpy(taps, bytes.data() + (filter * channels + channel) * sizeof taps, sizeof taps);
      SmallVector<double> numbers = transform.filter(SmallVector<double>(taps, taps + 9));
      for (auto [place, number] : llvm::enumerate(numbers)) {
        int64_t row = (filter / width * places() + (int64_t)place) * channels + channel;
        target[row * width + filter % width] = static_cast<float>(number);
      }
    }
  });
  filterData = kernel.addData(std::move(packed));
}

Winograd::Place Winograd::placeOf(Value tile) {
  Code &code = kernel.code();
  Value across = kernel.dim(tilesAcross), down = kernel.dim(tilesDown);
  Value line = code.div(tile, across), m = code.number(outputs());
  return {code.div(line, down), code.mul(code.rem(line, down), m),
          code.mul(code.rem(tile, across), m)};
}

/// A register tile: tiles from `first` on at one place, times a run of channels' filters, to M or,
/// behind the first run, onto it. Tiles past the last one are the last one again.
void Winograd::emitStrip(const Strip &strip) {
  Code &code = kernel.code();
  int64_t lanes = kernel.machine.lanes, width = panelWidth();
  Value from = code.add(code.mul(strip.place, code.number(tilesOfBlock * inputStride + lanes)),
                        strip.channel);
  SmallVector<Value> aRows, targets;
  for (int64_t i = 0; i < tileRows; ++i) {
    Value last = code.sub(strip.count, code.number(1));
    Value row = code.min(code.add(strip.first, code.number(i)), last);
    aRows.push_back(code.add(from, code.mul(row, code.number(inputStride))));
    Value target = code.add(code.mul(row, code.number(productStride)),
                            code.mul(strip.place, code.number(width)));
    for (int64_t j = 0; j < vectors; ++j)
      targets.push_back(code.add(target, code.number(productsAt + j * lanes)));
  }
  loop::Product product;
  product.element = product.accumulator = element;
  product.a = kernel.scratch();
  product.aRows = aRows;
  product.b = kernel.data(filterData);
  Value matrix = code.add(code.mul(strip.panel, code.number(places())), strip.place);
  Value filterRow = code.add(code.mul(matrix, code.number(channels)), strip.channel);
  product.bOffset = code.mul(filterRow, code.number(width));
  product.length = strip.length;
  SmallVector<Value> sums = loop::emitProduct(code, {tileRows, vectors}, product);
  // All are read before any is written: the last tile may be there many times.
  if (!strip.isFirst)
    for (auto [sum, target] : llvm::zip(sums, targets))
      sum = code.b.create<arith::AddFOp>(
          code.loc, code.loadLanes(element, kernel.scratch(), target, {}), sum);
  for (auto [sum, target] : llvm::zip(sums, targets))
    code.storeLanes(element, sum, kernel.scratch(), target, {});
}

/// One panel of all of the block's products. The channels come in runs whose filters fit the L1;
/// sums of runs are added up in M, which keeps the rounding errors of long sums small, too.
void Winograd::emitProducts(Value panel, Value count) {
  Code &code = kernel.code();
  int64_t rowBytes = panelWidth() * graph::bytesOf(element);
  int64_t longest = std::max<int64_t>(16, kernel.machine.l1Bytes / 2 / rowBytes);
  int64_t runs = llvm::divideCeil(channels, longest), run = llvm::divideCeil(channels, runs);
  Value strips = code.ceilDiv(count, tileRows);
  auto emitRun = [&](Value place, Value channel, Value length, bool isFirst) {
    code.forEach(code.number(0), strips, 1, [&](Value number) {
      Value first = code.mul(number, code.number(tileRows));
      emitStrip({panel, place, channel, length, first, count, isFirst});
    });
  };
  code.forEach(code.number(0), code.number(places()), 1, [&](Value place) {
    emitRun(place, code.number(0), code.number(run), true);
    code.forEach(code.number(1), code.number(runs), 1, [&](Value i) {
      Value channel = code.mul(i, code.number(run));
      Value length = code.min(code.number(run), code.sub(code.number(channels), channel));
      emitRun(place, channel, length, false);
    });
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
  int64_t scratch = productsAt + tilesOfBlock * productStride;
  kernel.endPhase(blocks * chunks, work(), Dim(scratch * graph::bytesOf(element)));
}

LogicalResult emitWinograd(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  return carryOut<Winograd>(kernel, group, schedule);
}

} // namespace heddle::lower
