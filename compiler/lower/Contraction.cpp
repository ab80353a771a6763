// Contraction: matmul and channels-last convolution through one register tile, with the epilogue in
// registers.
//
// The result is seen as rows (all dimensions but the last) times columns. Rows are walked in tiles
// of the innermost row dimension; dimensions coalesce where both A and the epilogue let them.
// Columns come in panels of the packed right operand: constants are packed at compile time, others
// in a phase of their own. A padded image is copied once into a buffer with borders. Loop order:
// chunk of panels (as much as the L2 holds), tile of rows, panel
// (bench/notes/2026-11-21-register-tiles.md).

#include "compiler/loop/Microkernel.h"
#include "compiler/lower/Definitions.h"
#include "compiler/lower/ProductShape.h"
#include "compiler/lower/Schedule.h"

using namespace mlir;

namespace heddle::lower {

namespace {
class Contraction {
public:
  Contraction(KernelBuilder &kernel, Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule) {}

  LogicalResult prepare();
  void emit();

private:
  void packConstant();
  void emitBorderCopy();
  void emitPacking();
  void packTransposed(Elements &e, Value rows, Indices place, Value column, Value target,
                      int64_t shift);
  void emitProducts();
  void coalesceRows();
  void emitTile(Elements &e, Value outer, Value firstRow, int64_t tileRows, bool clamp,
                Value firstPanel, Value endPanel);
  void finishTile(Elements &e, ArrayRef<Value> sums, const Indices &place,
                  ArrayRef<Value> rowNumbers, Value firstColumn);
  Value aPointer() { return border >= 0 ? kernel.temporary(border) : kernel.pointer(shape.a); }

  KernelBuilder &kernel;
  Block *group;
  const Schedule &schedule;
  ProductShape shape;
  Type element, accumulator;
  int64_t tileRows = 8, vectors = 3, border = -1, packedData = -1, packedTemporary = -1;
  /// Runs of row dimensions; the last one is tiled. Each is indexed by its last dimension.
  struct Run {
    Dim extent, aStride;
    int64_t dimension;
  };
  SmallVector<Run> runs;
  Dim panels;
};
} // namespace

static bool isComputedIn(Block *group, Value value) {
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == group && !isa<graph::ConstantOp>(op);
}

LogicalResult Contraction::prepare() {
  for (Operation &op : *group)
    if (isa<graph::MatmulOp, graph::ConvOp>(op)) {
      if (shape.root)
        return failure();
      shape.root = &op;
    }
  if (!shape.root)
    return failure();
  element = graph::elementOf(shape.root->getOperand(0));
  accumulator = graph::elementOf(shape.root->getResult(0));
  bool isKnownType = element == accumulator &&
                     (element.isF32() || element.isF64() || element.isSignlessInteger(32));
  if (!isKnownType || graph::elementOf(shape.root->getOperand(1)) != element)
    return failure();
  if (failed(readProduct(shape)) || isComputedIn(group, shape.a) || shape.columns.isConstant(0))
    return failure();
  DimVector result = graph::dimsOf(shape.root->getResult(0));
  for (Value output : outputsOf(group))
    if (graph::dimsOf(output) != result)
      return failure();
  // Only what follows element by element can wait in the registers.
  for (Operation &op : *group) {
    bool isEpilogue = op.hasTrait<graph::Elementwise>() ||
                      isa<graph::BroadcastOp, graph::ConstantOp, graph::YieldOp>(op);
    bool feedsB = isComputedIn(group, shape.b) && !isEpilogue;
    if (&op != shape.root && !isEpilogue && !feedsB)
      return failure();
  }
  tileRows = schedule.knob("m", 8);
  vectors =
      std::max<int64_t>(1, schedule.knob("n", 3 * kernel.machine.lanes) / kernel.machine.lanes);
  panels = shape.columns.ceilDiv(Dim(vectors * kernel.machine.lanes));
  return success();
}

/// Constant right operand: panels of every group (or batch) one after the other.
void Contraction::packConstant() {
  std::vector<char> storage;
  auto value = shape.b.getDefiningOp<graph::ConstantOp>().getValue();
  ArrayRef<char> bytes = graph::constantBytes(value, storage);
  int64_t width = vectors * kernel.machine.lanes, elementBytes = graph::bytesOf(element);
  int64_t columns = *shape.columns.constant(), rows = *shape.reduction.constant();
  std::vector<char> packed;
  auto append = [&](llvm::function_ref<int64_t(int64_t, int64_t)> source) {
    auto part = loop::packPanels(bytes, elementBytes, rows, columns, width, source);
    packed.insert(packed.end(), part.begin(), part.end());
  };
  if (auto conv = dyn_cast<graph::ConvOp>(shape.root)) {
    // [out, in, window...] -> rows in the order window..., in.
    int64_t inputs = *graph::dimsOf(conv.getW())[1].constant();
    int64_t taps = rows / std::max<int64_t>(1, inputs), groups = conv.getGroups();
    for (int64_t g = 0; g < groups; ++g)
      append([&](int64_t row, int64_t column) {
        int64_t tap = row / inputs, input = row % inputs;
        return ((g * columns + column) * inputs + input) * taps + tap;
      });
  } else {
    int64_t batches = *graph::elementCount(shape.bBatch).constant();
    for (int64_t batch = 0; batch < batches; ++batch)
      append([&](int64_t row, int64_t column) { return (batch * rows + row) * columns + column; });
  }
  packedData = kernel.addData(std::move(packed));
}

/// Copies the image into the middle of a zeroed one, a row of pixels a task.
void Contraction::emitBorderCopy() {
  auto conv = cast<graph::ConvOp>(shape.root);
  DimVector x = graph::dimsOf(conv.getX());
  size_t spatial = x.size() - 2;
  DimVector padded(x);
  for (size_t d = 0; d < spatial; ++d)
    padded[d + 1] = x[d + 1] + Dim(shape.low[d] + shape.high[d]);
  border = kernel.addTemporary(graph::elementCount(padded) * Dim(graph::bytesOf(element)));
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  Dim tasks = graph::elementCount(ArrayRef<Dim>(padded).take_front(spatial));
  Dim rowLength = padded[spatial] * padded.back();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value target = kernel.temporary(border), source = kernel.pointer(conv.getX());
    Value start = code.mul(task, kernel.dim(rowLength));
    Value zero = code.spread(code.constantOf(element, 0));
    auto clear = [&](Value low, Value high) {
      forLanes(e, low, high, [&](Value i) {
        code.storeLanes(element, zero, target, code.add(start, i), e.mask);
      });
    };
    // Where this row lies in the image, if it does.
    Value rest = task, isInside, place = code.number(0);
    SmallVector<Value> index(spatial);
    for (size_t i = spatial; i-- > 0;) {
      Value extent = kernel.dim(padded[i]);
      index[i] = i == 0 ? rest : code.rem(rest, extent);
      if (i > 0)
        rest = code.div(rest, extent);
    }
    for (size_t i = 0; i < spatial; ++i) {
      Value at = i == 0 ? index[i] : code.sub(index[i], code.number(shape.low[i - 1]));
      if (i > 0)
        isInside = code.both(isInside, inside(e, e.uniform(at), kernel.dim(x[i])));
      place = code.add(code.mul(place, kernel.dim(x[i])), at);
    }
    if (!isInside)
      isInside = code.integerOf(code.b.getI1Type(), 1);
    code.choose(
        isInside, TypeRange(),
        [&] {
          Value channels = kernel.dim(x.back());
          Value left = code.mul(channels, code.number(shape.low[spatial - 1]));
          Value count = kernel.dim(x[spatial] * x.back());
          Value from = code.mul(place, count), end = code.add(left, count);
          clear(code.number(0), left);
          forLanes(e, code.number(0), count, [&](Value i) {
            Value value = code.loadLanes(element, source, code.add(from, i), e.mask);
            code.storeLanes(element, value, target, code.add(start, code.add(left, i)), e.mask);
          });
          clear(end, kernel.dim(rowLength));
          return Values();
        },
        [&] {
          clear(code.number(0), kernel.dim(rowLength));
          return Values();
        });
  });
  kernel.endPhase(tasks, tasks * rowLength);
}

/// The operand of a transpose of the last two dimensions that only this group sees.
static Value transposedSource(Block *group, Value b) {
  auto transpose = b.getDefiningOp<graph::TransposeOp>();
  if (!transpose || transpose->getBlock() != group || graph::bytesOf(graph::elementOf(b)) != 4)
    return {};
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  int64_t rank = permutation.size();
  for (int64_t i = 0; i + 2 < rank; ++i)
    if (permutation[i] != i)
      return {};
  return permutation[rank - 1] == rank - 2 ? transpose.getX() : Value();
}

/// Columns [column, column + lanes) of a right operand whose columns are rows in memory: squares of
/// registers.
void Contraction::packTransposed(Elements &e, Value rows, Indices place, Value column, Value target,
                                 int64_t shift) {
  Code &code = kernel.code();
  int64_t lanes = code.lanes;
  Value depth = kernel.dim(shape.reduction);
  Value last = code.sub(kernel.dim(shape.columns), code.number(1));
  forLanes(e, code.number(0), depth, [&](Value k) {
    Values square;
    for (int64_t r = 0; r < lanes; ++r) {
      Indices here(place);
      here.push_back(e.uniform(code.min(code.add(column, code.number(r)), last)));
      here.push_back({k, 1, {}});
      square.push_back(code.spread(e.at(rows, here)));
    }
    square = code.transpose(square);
    Value beyond = code.sub(depth, k);
    for (auto [i, value] : llvm::enumerate(square)) {
      auto store = [&] {
        Value row = code.add(k, code.number(i));
        Value at = code.add(
            target, code.add(code.mul(row, code.number(vectors * lanes)), code.number(shift)));
        code.storeLanes(element, value, kernel.temporary(packedTemporary), at, {});
      };
      if (e.mask) // the last, partial square
        code.when(code.less(code.number(i), beyond), store);
      else
        store();
    }
  });
}

/// Packs a right operand that only the run knows: one panel a task.
void Contraction::emitPacking() {
  int64_t lanes = kernel.machine.lanes, width = vectors * lanes;
  Dim batches = graph::elementCount(shape.bBatch);
  Dim bytes = batches * panels * shape.reduction * Dim(width * graph::bytesOf(element));
  packedTemporary = kernel.addTemporary(bytes);
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value panel = code.rem(task, kernel.dim(panels));
    Value batch = code.div(task, kernel.dim(panels));
    Indices place;
    Value rest = batch;
    SmallVector<Value> index(shape.bBatch.size());
    for (size_t i = index.size(); i-- > 0;) {
      Value extent = kernel.dim(shape.bBatch[i]);
      index[i] = i == 0 ? rest : code.rem(rest, extent);
      if (i > 0)
        rest = code.div(rest, extent);
    }
    for (Value i : index)
      place.push_back(e.uniform(i));
    Value first = code.mul(panel, code.number(width));
    Value target = code.mul(task, code.mul(kernel.dim(shape.reduction), code.number(width)));
    bool isExact = shape.columns.mod(Dim(width)).isConstant(0);
    for (int64_t j = 0; j < vectors; ++j) {
      Value column = code.add(first, code.number(j * lanes));
      if (Value rows = transposedSource(group, shape.b)) {
        packTransposed(e, rows, place, column, target, j * lanes);
        continue;
      }
      e.mask =
          isExact
              ? Value()
              : code.maskOf(code.max(code.sub(kernel.dim(shape.columns), column), code.number(0)));
      foldScoped(e, code.number(0), kernel.dim(shape.reduction), {}, [&](Value k, ValueRange) {
        Indices here(place);
        here.push_back(e.uniform(k));
        here.push_back({column, 1, {}});
        Value value = code.spread(e.at(shape.b, here));
        Value at =
            code.add(target, code.add(code.mul(k, code.number(width)), code.number(j * lanes)));
        code.storeLanes(element, value, kernel.temporary(packedTemporary), at, {});
        return Values();
      });
      e.mask = {};
    }
  });
  kernel.endPhase(batches * panels, batches * panels * shape.reduction * Dim(width));
}

static bool epilogueCoalesces(Block *group, Operation *root, size_t dimension) {
  size_t rank = graph::rankOf(root->getResult(0));
  for (Operation &op : *group) {
    auto broadcast = dyn_cast<graph::BroadcastOp>(op);
    if (!broadcast)
      continue;
    DimVector from = graph::dimsOf(broadcast.getX()), to = graph::dimsOf(broadcast.getResult());
    auto kept = [&](size_t d) {
      int64_t inSource = (int64_t)d - (int64_t)(rank - from.size());
      return inSource >= 0 && !from[inSource].isConstant(1);
    };
    auto exact = [&](size_t d) {
      int64_t inSource = (int64_t)d - (int64_t)(rank - from.size());
      int64_t inResult = (int64_t)d - (int64_t)(rank - to.size());
      return inSource < 0 || from[inSource].isConstant(1) || from[inSource] == to[inResult];
    };
    if (kept(dimension - 1) != kept(dimension) || !exact(dimension - 1) || !exact(dimension))
      return false;
  }
  return true;
}

void Contraction::coalesceRows() {
  for (auto [i, row] : llvm::enumerate(shape.rows)) {
    // Tiles are made of rows: a dimension of one row is left to the one before it.
    bool isBatch = !runs.empty() && llvm::is_contained(shape.batches, runs.back().dimension);
    if (row.extent.isConstant(1) && !runs.empty() && !isBatch &&
        !llvm::is_contained(shape.batches, (int64_t)i))
      continue;
    bool isNext = !runs.empty() && runs.back().dimension + 1 == (int64_t)i;
    if (isNext && row.joins && epilogueCoalesces(group, shape.root, i)) {
      runs.back() = {runs.back().extent * row.extent, row.aStride, (int64_t)i};
    } else {
      runs.push_back({row.extent, row.aStride, (int64_t)i});
    }
  }
}

/// Stores one tile: for each row and vector, the epilogue with the accumulator in place of the
/// product.
void Contraction::finishTile(Elements &e, ArrayRef<Value> sums, const Indices &outer,
                             ArrayRef<Value> rowNumbers, Value firstColumn) {
  Code &code = kernel.code();
  int64_t lanes = code.lanes;
  bool isExact = shape.columns.mod(Dim(vectors * lanes)).isConstant(0);
  Value product = shape.root->getResult(0);
  Value groupColumn = firstColumn; // outer.back().base holds the first column of the group
  for (int64_t j = 0; j < vectors; ++j) {
    Value column = code.add(groupColumn, code.number(j * lanes));
    Elements::Scope vectorScope(e);
    e.mask =
        isExact
            ? Value()
            : code.maskOf(code.max(code.sub(kernel.dim(shape.columns), column), code.number(0)));
    for (auto [i, row] : llvm::enumerate(rowNumbers)) {
      Elements::Scope scope(e);
      Indices place(outer);
      place[runs.back().dimension] = e.uniform(row);
      place.back() = {code.add(outer.back().base, column), 1, {}};
      Value sum = sums[i * vectors + j];
      e.bind(product, [sum](ArrayRef<Index>) { return sum; });
      for (Value output : outputsOf(group))
        e.store(output, e.at(output, place), place);
    }
    e.mask = {};
  }
  e.unbind(product);
}

void Contraction::emitTile(Elements &e, Value outer, Value firstRow, int64_t rows, bool clamp,
                           Value firstPanel, Value endPanel) {
  Code &code = kernel.code();
  int64_t width = vectors * code.lanes;
  // Indices of the dimensions outside of the tile, and where they point in A and B.
  Indices place(shape.rows.size() + 1, e.uniform(code.number(0)));
  Value rest = outer, aBase = code.number(0);
  for (size_t i = runs.size() - 1; i-- > 0;) {
    Value extent = kernel.dim(runs[i].extent);
    bool isLast = i == 0 && shape.groups.isConstant(1);
    Value index = isLast ? rest : code.rem(rest, extent);
    if (!isLast)
      rest = code.div(rest, extent);
    place[runs[i].dimension] = e.uniform(index);
    aBase = code.add(aBase, code.mul(index, kernel.dim(runs[i].aStride)));
  }
  Value groupNumber = shape.groups.isConstant(1) ? code.number(0) : rest;
  place.back() = e.uniform(code.mul(groupNumber, kernel.dim(shape.columns)));
  aBase = code.add(aBase, code.mul(groupNumber, kernel.dim(shape.aGroupStride)));
  Value batch = groupNumber;
  for (int64_t dimension : shape.batches)
    batch =
        code.add(code.mul(batch, kernel.dim(shape.rows[dimension].extent)), place[dimension].base);
  Values rowNumbers, aRows;
  for (int64_t i = 0; i < rows; ++i) {
    Value row = code.add(firstRow, code.number(i));
    if (clamp)
      row = code.min(row, code.sub(kernel.dim(runs.back().extent), code.number(1)));
    rowNumbers.push_back(row);
    aRows.push_back(code.add(aBase, code.mul(row, kernel.dim(runs.back().aStride))));
  }
  loop::Product product{element, accumulator, aPointer(), aRows, {}, {}, {}, {}, 0};
  product.b = packedData >= 0 ? kernel.data(packedData) : kernel.temporary(packedTemporary);
  for (auto &[count, step] : shape.pieces)
    product.pieces.push_back({kernel.dim(count), kernel.dim(step)});
  product.length = kernel.dim(shape.length);
  int64_t panelBytes = nominalSize(shape.reduction) * width * graph::bytesOf(element);
  if (panelBytes > kernel.machine.l1Bytes / 2)
    product.prefetch = 16;
  code.forEach(firstPanel, endPanel, 1, [&](Value panel) {
    Elements::Scope scope(e);
    Value number = code.add(code.mul(batch, kernel.dim(panels)), panel);
    product.bOffset = code.mul(number, code.mul(kernel.dim(shape.reduction), code.number(width)));
    auto sums = loop::emitProduct(code, {rows, vectors}, product);
    finishTile(e, sums, place, rowNumbers, code.mul(panel, code.number(width)));
  });
}

void Contraction::emitProducts() {
  coalesceRows();
  int64_t width = vectors * kernel.machine.lanes;
  const Dim &rows = runs.back().extent;
  Dim outer = shape.groups;
  for (const Run &run : ArrayRef<Run>(runs).drop_back())
    outer = outer * run.extent;
  // Constant sizes: equal tiles, the first `larger` of them one row more. Else full tiles and a
  // clamped last one.
  auto known = rows.constant();
  int64_t tiles = known ? (*known + tileRows - 1) / tileRows : 0;
  int64_t base = tiles ? *known / tiles : tileRows, larger = tiles ? *known % tiles : 0;
  Dim tileCount = known ? Dim(tiles) : rows.ceilDiv(Dim(tileRows));
  int64_t panelBytes = nominalSize(shape.reduction) * width * graph::bytesOf(element);
  int64_t fitting =
      std::max<int64_t>(1, kernel.machine.l2Bytes * 3 / 8 / std::max<int64_t>(1, panelBytes));
  int64_t chunk = schedule.knob("panels", fitting);
  if (auto count = panels.constant()) {
    chunk = std::max<int64_t>(1, std::min(chunk, *count));
    chunk = llvm::divideCeil(*count, llvm::divideCeil(*count, chunk)); // equal chunks
  }
  Dim chunks = panels.ceilDiv(Dim(chunk));
  int64_t block = schedule.knob("tiles", 8);
  // Too few rows to share: the workers share the panels.
  if (nominalSize(outer * tileCount) < 2 * block && nominalSize(chunks) < 4) {
    block = std::max<int64_t>(1, nominalSize(outer * tileCount) / 2);
    if (nominalSize(outer * tileCount) < 4) {
      chunk = std::max<int64_t>(1, nominalSize(panels) / 8);
      chunks = panels.ceilDiv(Dim(chunk));
    }
  }
  Dim blocks = (outer * tileCount).ceilDiv(Dim(block));
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value firstPanel = code.mul(code.div(task, kernel.dim(blocks)), code.number(chunk));
    Value endPanel = code.min(code.add(firstPanel, code.number(chunk)), kernel.dim(panels));
    Value first = code.mul(code.rem(task, kernel.dim(blocks)), code.number(block));
    Value end = code.min(code.add(first, code.number(block)), kernel.dim(outer * tileCount));
    code.forEach(first, end, 1, [&](Value number) {
      Elements::Scope scope(e);
      Value tile = code.rem(number, kernel.dim(tileCount));
      Value row = code.div(number, kernel.dim(tileCount));
      auto emitOne = [&](Value firstRow, int64_t count, bool clamp) {
        Elements::Scope scope(e);
        emitTile(e, row, firstRow, count, clamp, firstPanel, endPanel);
        return Values();
      };
      if (!known) {
        Value full = kernel.dim(rows.floorDiv(Dim(tileRows)));
        Value firstRow = code.mul(tile, code.number(tileRows));
        code.choose(
            code.less(tile, full), TypeRange(), [&] { return emitOne(firstRow, tileRows, false); },
            [&] { return emitOne(firstRow, tileRows, true); });
        return;
      }
      Value firstRow =
          code.add(code.mul(tile, code.number(base)), code.min(tile, code.number(larger)));
      if (larger == 0)
        emitOne(firstRow, base, false);
      else
        code.choose(
            code.less(tile, code.number(larger)), TypeRange(),
            [&] { return emitOne(firstRow, base + 1, false); },
            [&] { return emitOne(firstRow, base, false); });
    });
  });
  Dim work = outer * rows * shape.columns * shape.reduction;
  kernel.endPhase(chunks * blocks, work.floorDiv(Dim(kernel.machine.lanes)));
}

void Contraction::emit() {
  auto constant = shape.b.getDefiningOp<graph::ConstantOp>();
  if (shape.needsBorder)
    emitBorderCopy();
  if (constant)
    packConstant();
  else
    emitPacking();
  emitProducts();
}

LogicalResult emitContraction(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  Contraction contraction(kernel, group, schedule);
  if (failed(contraction.prepare()))
    return failure();
  contraction.emit();
  return success();
}

} // namespace heddle::lower
