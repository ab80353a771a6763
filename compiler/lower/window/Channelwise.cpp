// Channelwise: what is served, the weights in the order they are read, and the order of the loops.

#include "compiler/lower/window/Channelwise.h"

#include "compiler/graph/Typical.h"
#include "compiler/lower/stored/FilterLanes.h"

using namespace mlir;

namespace heddle::lower {

LogicalResult Channelwise::prepare() {
  auto windows = llvm::make_filter_range(*group, llvm::IsaPred<graph::ConvOp, graph::PoolOp>);
  if (windows.empty())
    return failure();
  root = &*windows.begin();
  conv = dyn_cast<graph::ConvOp>(root);
  pool = dyn_cast<graph::PoolOp>(root);
  Value input = root->getOperand(0);
  element = graph::storageOf(input);
  x = graph::dimsOf(input);
  y = graph::dimsOf(root->getResult(0));
  isLine = x.size() == 3;
  if (isLine)
    for (DimVector *sizes : {&x, &y})
      sizes->insert(sizes->begin() + 1, Dim(1));
  sumType = conv ? Type(Float32Type::get(element.getContext())) : element;
  auto assign = [&](auto op) {
    strides.assign(op.getStrides().begin(), op.getStrides().end());
    dilations.assign(op.getDilations().begin(), op.getDilations().end());
    low.assign(op.getLow().begin(), op.getLow().end());
    high.assign(op.getHigh().begin(), op.getHigh().end());
    if (isLine) {
      strides.insert(strides.begin(), 1);
      dilations.insert(dilations.begin(), 1);
      low.insert(low.begin(), 0);
      high.insert(high.begin(), 0);
    }
  };
  if (conv) {
    auto filters = graph::dimsOf(conv.getW());
    assign(conv);
    window = {isLine ? 1 : *filters[2].constant(), *filters.back().constant()};
    auto integers = graph::constantIntegers(conv.getW());
    if (element.isInteger(8) && integers)
      integerWeights.assign(integers->begin(), integers->end());
  } else {
    assign(pool);
    window.assign(pool.getWindow().begin(), pool.getWindow().end());
    if (isLine)
      window.insert(window.begin(), 1);
  }
  return success();
}

/// [channels, 1, height, width] -> [channels / lanes, height, width, lanes], filled up with zeros.
void Channelwise::packWeights() {
  std::vector<char> storage;
  ArrayRef<char> bytes =
      graph::constantBytes(conv.getW().getDefiningOp<graph::ConstantOp>().getValue(), storage);
  if (element != sumType)
    bytes = {reinterpret_cast<const char *>(integerWeights.data()),
             integerWeights.size() * sizeof(float)};
  int64_t channels = conv.getGroups(), lanes = kernel.machine.lanes;
  std::vector<char> packed(llvm::alignTo(channels, lanes) * taps() * sizeof(float), 0);
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t tap = 0; tap < taps(); ++tap) {
      int64_t place = (channel / lanes * taps() + tap) * lanes + channel % lanes;
      std::memcpy(packed.data() + place * sizeof(float),
                  bytes.data() + (channel * taps() + tap) * sizeof(float), sizeof(float));
    }
  weightData = kernel.addData(std::move(packed));
}

/// Packs weights known only at run time likewise.
void Channelwise::emitPacking() {
  int64_t lanes = kernel.machine.lanes;
  int64_t count = llvm::alignTo(int64_t(conv.getGroups()), lanes) * taps();
  weightTemporary = kernel.addTemporary(Dim(count * graph::bytesOf(sumType)));
  Dim blocks(llvm::divideCeil(int64_t(conv.getGroups()), lanes));
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value block) {
    Elements::Scope scope(e);
    Value all = code.number(taps()), first = code.mul(block, code.number(lanes));
    ColumnPlaces places{kernel.temporary(weightTemporary), sumType, code.mul(first, all),
                        code.number(lanes)};
    storeColumns(e, code.number(0), all, places, [&](int64_t number, Value tap) {
      Value filter = code.add(first, code.number(number));
      return filterLanes(e, conv.getW(), filter, all, tap);
    });
  });
  kernel.endPhase(blocks, blocks * Dim(lanes * taps()));
}

/// Rows of results take channels a block at a time where a window's rows of all channels leave the
/// L1 before the next row of results reads them again (bench/notes/2026-11-21-kernels.md).
Channelwise::Order Channelwise::order() const {
  constexpr int64_t kLineBytes = 64;
  const program::Machine &machine = kernel.machine;
  int64_t elementBytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  int64_t channels = graph::typicalSize(root, x[3]), width = graph::typicalSize(root, x[2]),
          resultWidth = graph::typicalSize(root, y[2]);
  int64_t rows = (window[0] - 1) * dilations[0] + 1;
  Order whole{channels, kAllRows};
  if (rows * width * channels * elementBytes <= machine.l1Bytes / 2)
    return whole;
  int64_t lines = std::max<int64_t>(machine.l1Bytes / 3 / (rows * width * kLineBytes), 1);
  int64_t line = kLineBytes / elementBytes, linesOfAll = llvm::divideCeil(channels, line);
  int64_t blocks = llvm::divideCeil(linesOfAll, lines);
  lines = llvm::divideCeil(linesOfAll, blocks);
  // A pixel that begins within a line has blocks that share lines with their neighbours.
  int64_t shared = channels % line == 0 ? 0 : 1;
  if (blocks == 1 || strides[0] * (lines + shared) >= rows * lines)
    return whole;
  // The next block finds these rows in the L2, whence also the lines that it shares.
  int64_t rowBytes = channels * (strides[0] * width * elementBytes +
                                 resultWidth * static_cast<int64_t>(sizeof(float)));
  int64_t room = machine.l2Bytes / rowBytes;
  return {lines * line,
          room >= graph::typicalSize(root, y[1]) ? room : std::max<int64_t>(room / 2, 1)};
}

void Channelwise::emitRows(Elements &e, Value first, Value end, Value low, Value high) {
  Code &code = kernel.code();
  bool isFull = x[3].constant() && *x[3].constant() % kernel.machine.lanes == 0;
  code.forEach(first, end, 1, [&](Value task) {
    Elements::Scope scope(e);
    Value count = kernel.dim(pieces()), columns = kernel.dim(y[2]);
    Value piece = code.rem(task, count), rest = code.div(task, count);
    Value row = code.rem(rest, kernel.dim(y[1])), image = code.div(rest, kernel.dim(y[1]));
    Value begin = code.mul(piece, code.number(kPiece));
    Value stop = isLine ? code.min(code.add(begin, code.number(kPiece)), columns) : columns;
    auto emitVector = [&](Value channel) {
      Elements::Scope scope(e);
      emitRow(e, {image, row, channel}, begin, stop, keptWeights(e, channel));
    };
    if (isFull)
      code.forEach(low, high, code.lanes, emitVector);
    else
      forLanes(e, low, high, emitVector);
  });
}

void Channelwise::emit() {
  if (conv)
    conv.getW().getDefiningOp<graph::ConstantOp>() ? packWeights() : emitPacking();
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  Order chosen = order();
  kernel.forEachRun(chosen.rows, [&](Value first, Value end) {
    Value channels = kernel.dim(x[3]);
    if (chosen.rows == kAllRows)
      return emitRows(e, first, end, code.number(0), channels);
    code.forEach(code.number(0), channels, chosen.channels, [&](Value low) {
      Value high = code.min(code.add(low, code.number(chosen.channels)), channels);
      emitRows(e, first, end, low, high);
    });
  });
  Dim work = graph::elementCount(y) * Dim(taps());
  kernel.endPhase(y[0] * y[1] * pieces(), work.floorDiv(Dim(4)));
}

LogicalResult emitWindow(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  return carryOut<Channelwise>(kernel, group, schedule);
}

} // namespace heddle::lower
