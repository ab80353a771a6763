// Contraction: tiles of rows, chunks of panels, and the epilogue on the accumulators. Loop order:
// chunk of panels (as much as the L2 holds), tile of rows, panel
// (bench/notes/2026-11-21-register-tiles.md).

#include "compiler/lower/contraction/Contraction.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Typical.h"
#include "compiler/lower/contraction/Microkernel.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/mechanism/Product.h"
#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::lower {

LogicalResult Contraction::prepare(ValueRange wanted) {
  std::string why;
  auto read = mechanism::readProduct(mechanism::opsOf(*group), wanted, why);
  if (!read)
    return failure();
  results.assign(wanted.begin(), wanted.end());
  members = std::move(read->members);
  slices = std::move(read->slices);
  parts = read->parts;
  partColumns = read->partColumns;
  hasOneRow = read->isOneRow;
  shape = readShape(*read);
  if (failed(readTypes()))
    return kernel.refuse("the machine adds no products of neighbours");
  tileRows = schedule.knob("m", 8);
  int64_t atOnce = schedule.knob("n", 3 * kernel.machine.lanes) / kernel.machine.lanes;
  vectors = std::max<int64_t>(1, atOnce / parts) * parts;
  panels = partColumns.ceilDiv(Dim(partWidth()));
  coalesceRows();
  return success();
}

bool Contraction::epilogueCoalesces(size_t dimension) const {
  if (llvm::any_of(results, [&](Value result) { return isPlacedAlong(kernel, result, dimension); }))
    return false;
  size_t rank = graph::rankOf(shape.root->getResult(0));
  for (Operation *op : members) {
    if (auto slice = dyn_cast<graph::SliceOp>(op)) {
      DimVector from = graph::dimsOf(slice.getX()), to = graph::dimsOf(slice.getResult());
      DimVector starts = graph::dimsOf(slice.getStarts());
      for (size_t d : {dimension - 1, dimension})
        if (from.size() != rank || from[d] != to[d] || !starts[d].isConstant(0) ||
            slice.getSteps()[d] != 1)
          return false;
    }
    if (auto numbers = dyn_cast<graph::IotaOp>(op)) {
      size_t fromEnd = graph::rankOf(numbers.getResult()) - numbers.getAxis();
      if (fromEnd == rank - dimension || fromEnd == rank - dimension + 1)
        return false;
    }
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
    if (isNext && row.joins && epilogueCoalesces(i)) {
      runs.back() = {runs.back().extent * row.extent, row.aStride, (int64_t)i};
    } else {
      runs.push_back({row.extent, row.aStride, (int64_t)i});
    }
  }
}

/// Stores one tile. If a masked store takes longer, tiles that end within the columns have branches
/// of their own without masks.
void Contraction::finishTile(Elements &e, ArrayRef<Value> sums, const Indices &outer,
                             ArrayRef<Value> rowNumbers, Value firstColumn) {
  Code &code = kernel.code();
  bool isExact = partColumns.mod(Dim(partWidth())).isConstant(0);
  if (isExact || kernel.machine.masksFreely)
    return storeTile(e, sums, outer, rowNumbers, firstColumn, /*isMasked=*/!isExact);
  Value last = code.add(firstColumn, code.number(partWidth() - 1));
  auto store = [&](bool isMasked) {
    Elements::Scope scope(e);
    storeTile(e, sums, outer, rowNumbers, firstColumn, isMasked);
    return Values();
  };
  code.choose(
      code.less(last, kernel.dim(partColumns)), TypeRange(), [&] { return store(false); },
      [&] { return store(true); });
}

/// Stores one tile: for each row and vector, the epilogue with the accumulator in place of the
/// product.
void Contraction::storeTile(Elements &e, ArrayRef<Value> sums, const Indices &outer,
                            ArrayRef<Value> rowNumbers, Value firstColumn, bool isMasked) {
  Code &code = kernel.code();
  int64_t lanes = code.lanes;
  Value product = shape.root->getResult(0);
  Value groupColumn = firstColumn; // outer.back().base holds the first column of the group
  for (int64_t j = 0; j < vectors / parts; ++j) {
    Value column = code.add(groupColumn, code.number(j * lanes));
    Elements::Scope vectorScope(e);
    e.mask = isMasked
                 ? code.maskOf(code.max(code.sub(kernel.dim(partColumns), column), code.number(0)))
                 : Value();
    for (auto [i, row] : llvm::enumerate(rowNumbers)) {
      Elements::Scope scope(e);
      Indices place(outer);
      place[runs.back().dimension] = e.uniform(row);
      place.back() = {code.add(outer.back().base, column), 1, {}};
      auto bindSum = [&](int64_t part) {
        Value sum = sums[i * vectors + part * (vectors / parts) + j];
        e.bind(product, [sum](ArrayRef<Index>) { return sum; });
      };
      bindSum(0);
      for (graph::SliceOp slice : slices) {
        int64_t part = mechanism::partOf(slice);
        bindSum(part);
        Indices whole(place);
        whole.back() = e.shift(place.back(), kernel.dim(partColumns * Dim(part)));
        Value value = e.at(slice.getX(), whole);
        e.bind(slice.getResult(), [value](ArrayRef<Index>) { return value; });
      }
      for (Value result : results)
        if (store)
          store(e, result, e.at(result, place), row, place.back().base);
        else
          e.store(result, e.at(result, place), place);
    }
    e.mask = {};
  }
  e.unbind(product);
  for (graph::SliceOp slice : slices)
    e.unbind(slice.getResult());
}

/// What a tile of `rows` fetches while it is computed (bench/notes/2026-11-21-kernels.md): where
/// few panels share the rows, those of the next tile, which do not stay in the L2; otherwise its
/// share of the next chunk of `chunk` panels, which comes from memory. `a` and `b` are where these
/// begin.
std::optional<Contraction::Ahead> Contraction::ahead(Value a, Value b, Value firstRow, Value chunk,
                                                     int64_t rows) {
  Code &code = kernel.code();
  int64_t count = graph::typicalSize(shape.root, panels);
  if (count < 1 || stored || copiesLeft() || shape.isCut() || !shape.pieces.empty() || depth != 1)
    return std::nullopt;
  const Run &run = runs.back();
  if (count > estimate::thresholdAt(shape.root, estimate::kProductPanels)) {
    if (packedData < 0 || runs.size() != 1 || !panels.constant())
      return std::nullopt;
    Dim tiles = Dim::max(Dim(1), run.extent.ceilDiv(Dim(tileRows)));
    Value step = kernel.dim(Dim(panelWidth()).ceilDiv(tiles));
    Value before = code.mul(code.div(firstRow, code.number(tileRows)), chunk);
    Value share = code.mul(kernel.dim(shape.length), step);
    return Ahead{kernel.data(packedData), code.add(b, code.mul(before, share)), step};
  }
  Dim elements = shape.length; // of A; after the last row of one batch the next one's first follows
  for (const Run &each : llvm::reverse(runs)) {
    if (each.aStride != elements)
      return std::nullopt;
    elements = elements * each.extent;
  }
  Dim bytes = elements * Dim(graph::bytesOf(element));
  bool areFar = graph::typicalSize(shape.root, bytes) >= kernel.machine.l2Bytes / 2;
  if (border >= 0 || !areFar || rows < count)
    return std::nullopt;
  return Ahead{aPointer(), a, kernel.dim(Dim(rows).floorDiv(Dim::max(Dim(1), panels)))};
}

/// Whether so many of a window's taps along the dimension lie in the border that it pays to leave
/// them out.
bool Contraction::hasIdleTaps(const Taps &taps) const {
  auto conv = cast<graph::ConvOp>(shape.root);
  int64_t d = taps.dimension,
          size = graph::typicalSize(shape.root, graph::dimsOf(conv.getX())[d + 1]);
  int64_t places = graph::typicalSize(shape.root, graph::dimsOf(conv.getResult())[d + 1]), idle = 0;
  int64_t all = places * *taps.count.constant();
  for (int64_t i = 0; i < all; ++i) {
    int64_t at = i / *taps.count.constant() * conv.getStrides()[d] - conv.getLow()[d] +
                 i % *taps.count.constant() * conv.getDilations()[d];
    idle += at < 0 || at >= size;
  }
  return idle * estimate::thresholdAt(conv, estimate::kIdleTaps) > all;
}

/// The taps that any row of the tile needs, where the others would meet zeros only.
ReductionPiece Contraction::pieceOf(const Taps &taps, const Indices &place,
                                    ArrayRef<Value> rowNumbers) {
  Code &code = kernel.code();
  Value count = kernel.dim(taps.count), step = kernel.dim(taps.aStep);
  if (border < 0 || isShifted() || !hasIdleTaps(taps))
    return {count, step};
  auto conv = cast<graph::ConvOp>(shape.root);
  int64_t d = taps.dimension, dilation = conv.getDilations()[d];
  bool isTiled = runs.back().dimension == d + 1;
  Value first = isTiled ? rowNumbers.front() : place[d + 1].base;
  Value last = isTiled ? rowNumbers.back() : first;
  // Taps t of the element at o are at o * stride - low + t * dilation of the image.
  auto tapsTo = [&](Value size, Value at) {
    Value before = code.mul(at, code.number(conv.getStrides()[d]));
    Value distance = code.sub(code.add(size, code.number(conv.getLow()[d])), before);
    return code.min(code.ceilDiv(code.max(distance, code.number(0)), dilation), count);
  };
  Value size = kernel.dim(graph::dimsOf(conv.getX())[d + 1]);
  return {count, step, tapsTo(code.number(0), last), tapsTo(size, first)};
}

/// The number of the group, and where A begins there; adds the indices of the dimensions outside of
/// the tiles.
std::pair<Value, Value> Contraction::placeOutside(Elements &e, Value outer, Indices &place) {
  Code &code = kernel.code();
  Value rest = outer, base = code.number(0);
  for (size_t i = runs.size() - 1; i-- > 0;) {
    Value extent = kernel.dim(runs[i].extent);
    bool isLast = i == 0 && shape.groups.isConstant(1);
    Value index = isLast ? rest : code.rem(rest, extent);
    if (!isLast)
      rest = code.div(rest, extent);
    place[runs[i].dimension] = e.uniform(index);
    base = code.add(base, code.mul(index, kernel.dim(runs[i].aStride)));
  }
  Value group = shape.groups.isConstant(1) ? code.number(0) : rest;
  return {group, code.add(base, code.mul(group, kernel.dim(shape.aGroupStride)))};
}

void Contraction::emitTile(Elements &e, Value outer, Value tileNumber, Value firstRow, int64_t rows,
                           bool clamp, Value firstPanel, Value endPanel) {
  Code &code = kernel.code();
  int64_t width = vectors * code.lanes;
  Indices place(shape.rows.size() + 1, e.uniform(code.number(0)));
  auto [groupNumber, aBase] = placeOutside(e, outer, place);
  place.back() = e.uniform(code.mul(groupNumber, kernel.dim(shape.columns)));
  Value batch = groupNumber;
  for (int64_t dimension : shape.batches)
    batch =
        code.add(code.mul(batch, kernel.dim(shape.rows[dimension].extent)), place[dimension].base);
  Value stride = copiesLeft() ? code.number(1) : kernel.dim(runs.back().aStride);
  Value aFirst =
      copiesLeft() ? copiedTile(outer, tileNumber) : code.add(aBase, code.mul(firstRow, stride));
  Values rowNumbers, aRows;
  for (int64_t i = 0; i < rows; ++i) {
    Value row = code.add(firstRow, code.number(i)), aRow = code.mul(code.number(i), stride);
    if (clamp) {
      row = code.min(row, code.sub(kernel.dim(runs.back().extent), code.number(1)));
      aRow = code.mul(code.sub(row, firstRow), stride);
    }
    rowNumbers.push_back(row);
    aRows.push_back(code.add(aFirst, aRow)); // distances that the addresses of loads can hold
  }
  TileProduct product{element, accumulator, aPointer(), aRows, {}, {}, {}, {}, 0};
  product.aStep = copiesLeft() ? tiling().mostRows() : 1;
  product.depth = depth;
  product.dot = kernel.machine.dot;
  product.isPadded = border >= 0;
  if (stored)
    product.b = decodedFrom ? kernel.scratch() : Value();
  else
    product.b = bPointer();
  for (const Taps &taps : shape.pieces)
    product.pieces.push_back(pieceOf(taps, place, rowNumbers));
  product.length = kernel.dim(shape.length);
  int64_t panelBytes =
      graph::typicalSize(shape.root, shape.reduction) * width * graph::bytesOf(element);
  if (panelBytes > kernel.machine.l1Bytes / 2)
    product.prefetch = 16;
  Value panelSize = code.mul(kernel.dim(panelRows()), code.number(width));
  Value after = code.mul(code.add(code.mul(batch, kernel.dim(panels)), endPanel), panelSize);
  Value nextRow = code.add(firstRow, code.number(rows));
  Value nextRows = code.add(aBase, code.mul(nextRow, kernel.dim(runs.back().aStride)));
  auto next = ahead(nextRows, after, firstRow, code.sub(endPanel, firstPanel), rows);
  Indices matrix(place.begin(), place.end() - std::min<size_t>(2, place.size()));
  Value isInside; // the tile is, of limits
  if (shape.limits && shape.limits->rows)
    isInside = code.less(firstRow, limitAt(e, shape.limits->rows, matrix, runs.back().extent));
  code.forEach(firstPanel, endPanel, 1, [&](Value panel) {
    Elements::Scope scope(e);
    if (next) {
      Value share = code.mul(product.length, next->step);
      Value at = code.add(next->at, code.mul(code.sub(panel, firstPanel), share));
      product.fetched = code.at(next->from, element, at);
      product.fetchedStep = next->step;
    }
    Value number = code.add(code.mul(batch, kernel.dim(panels)), panel);
    product.bOffset = code.mul(decodedFrom ? code.sub(number, decodedFrom) : number, panelSize);
    product.start = startOf(number, rows);
    if (shape.limits) {
      product.length = depthOf(e, matrix, code.mul(panel, code.number(partWidth())));
      if (isInside)
        product.length =
            code.b.create<arith::SelectOp>(code.loc, isInside, product.length, code.number(0));
    }
    RegisterTile tile{rows, vectors};
    SmallVector<Value> sums = shape.band  ? emitBandSums(tile, product, rowNumbers, number)
                              : product.b ? emitSums(tile, product)
                                          : stored->sums(tile, product, number);
    finishTile(e, sums, place, rowNumbers, code.mul(panel, code.number(partWidth())));
  });
}

SmallVector<Value> Contraction::emitSums(const RegisterTile &tile, const TileProduct &product) {
  return emitProduct(kernel.code(), tile, product);
}

Contraction::Tiling Contraction::tiling() {
  const Dim &rows = runs.back().extent;
  Tiling tiling{rows, rows.ceilDiv(Dim(tileRows)), false, tileRows, 0, shape.groups};
  if (auto known = rows.constant()) {
    int64_t tiles = llvm::divideCeil(*known, tileRows);
    tiling.isExact = true;
    tiling.base = tiles ? *known / tiles : tileRows;
    tiling.larger = tiles ? *known % tiles : 0;
  }
  for (const Run &run : ArrayRef<Run>(runs).drop_back())
    tiling.outer = tiling.outer * run.extent;
  return tiling;
}

estimate::Sharer Contraction::sharer() const {
  return {shape.root, schedule.knobs, kernel.machine};
}

int64_t Contraction::panelsOfChunk() const {
  int64_t panelBytes =
      graph::typicalSize(shape.root, shape.reduction) * panelWidth() * graph::bytesOf(element);
  return sharer().mostPanels(panelBytes, panels);
}

Value Contraction::firstRowOf(const Tiling &tiling, Value tile) {
  Code &code = kernel.code();
  Value row = code.mul(tile, code.number(tiling.base));
  return tiling.larger == 0 ? row : code.add(row, code.min(tile, code.number(tiling.larger)));
}

/// The last rows of those counted only at run time: a tile of all, whose rows are clamped, or of
/// half as many where they fit. One row of a batch that may be more has a tile of its own, too: it
/// is reading the right operand that takes the time.
Values Contraction::emitRest(const Tiling &tiling, Value firstRow,
                             llvm::function_ref<Values(int64_t, bool)> emitOne) {
  Code &code = kernel.code();
  auto least = tiling.rows.evaluate([](StringRef) { return std::optional<int64_t>(1); });
  bool isHalved = tiling.base >= estimate::thresholdAt(shape.root, estimate::kProductHalves);
  int64_t half = isHalved ? llvm::divideCeil(tiling.base, 2) : tiling.base;
  Value left = code.sub(kernel.dim(tiling.rows), firstRow);
  auto emitUpTo = [&](int64_t rows, llvm::function_ref<Values()> otherwise) {
    return code.choose(
        code.less(left, code.number(rows + 1)), TypeRange(),
        [&] { return emitOne(rows, rows > 1); }, otherwise);
  };
  auto emitAll = [&] { return emitOne(tiling.base, tiling.base > 1); };
  auto emitSome = [&] { return half < tiling.base ? emitUpTo(half, emitAll) : emitAll(); };
  return least == 1 && half > 1 ? emitUpTo(1, emitSome) : emitSome();
}

/// Tile number `tile` of the run of rows that is walked for the `outer`-th time.
void Contraction::emitTileAt(Elements &e, const Tiling &tiling, Value outer, Value tile,
                             Value firstPanel, Value endPanel) {
  Code &code = kernel.code();
  Elements::Scope scope(e);
  Value firstRow = firstRowOf(tiling, tile);
  auto emitOne = [&](int64_t count, bool clamp) {
    Elements::Scope scope(e);
    emitTile(e, outer, tile, firstRow, count, clamp, firstPanel, endPanel);
    return Values();
  };
  if (tiling.isExact && tiling.larger == 0) {
    emitOne(tiling.base, false);
    return;
  }
  Value usual = tiling.isExact ? code.number(tiling.larger)
                               : kernel.dim(tiling.rows.floorDiv(Dim(tiling.base)));
  auto emitLast = [&] {
    return tiling.isExact ? emitOne(tiling.base, false) : emitRest(tiling, firstRow, emitOne);
  };
  code.choose(
      code.less(tile, usual), TypeRange(),
      [&] { return emitOne(tiling.base + (tiling.isExact ? 1 : 0), false); }, emitLast);
}

void Contraction::emitTiles(Elements &e, const Tiling &tiling, Value first, Value end,
                            Value firstPanel, Value endPanel) {
  Code &code = kernel.code();
  code.forEach(first, end, 1, [&](Value number) {
    Value tile = code.rem(number, kernel.dim(tiling.count));
    Value outer = code.div(number, kernel.dim(tiling.count));
    emitTileAt(e, tiling, outer, tile, firstPanel, endPanel);
  });
}

Dim Contraction::work() const {
  Dim rows = shape.groups;
  for (const Run &run : runs)
    rows = rows * run.extent;
  // With few rows it is reading the right operand that takes the time.
  Dim reads(std::max<int64_t>(1, 8 / tileRows));
  return (rows * shape.columns * shape.reduction * reads).floorDiv(Dim(kernel.machine.lanes));
}

Dim Contraction::operandBytes() const {
  return graph::elementCount(graph::dimsOf(shape.b)) * Dim(graph::bytesOf(element));
}

/// Makes floats of stored panels, in the worker's scratch.
void Contraction::decodePanels(Value firstPanel, Value endPanel) {
  Code &code = kernel.code();
  Value size = code.mul(kernel.dim(shape.reduction), code.number(panelWidth()));
  code.forEach(firstPanel, endPanel, 1, [&](Value panel) {
    stored->decode(panel, kernel.scratch(), code.mul(code.sub(panel, firstPanel), size));
  });
  decodedFrom = firstPanel;
}

/// A chunk of panels of one of the right operand's matrices per task, which packs it and multiplies
/// all rows of the matrix by it.
void Contraction::emitPackedTasks(const Tiling &tiles, const Dim &chunk) {
  Dim chunks = panels.ceilDiv(chunk);
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    if (shape.limits)
      task = dealtTile(task, kernel.dim(tiles.outer * chunks));
    Value batch = code.div(task, kernel.dim(chunks));
    Value firstPanel = code.mul(code.rem(task, kernel.dim(chunks)), kernel.dim(chunk));
    Value endPanel = code.min(code.add(firstPanel, kernel.dim(chunk)), kernel.dim(panels));
    packChunk(batch, firstPanel, endPanel);
    code.forEach(code.number(0), kernel.dim(tiles.count), 1,
                 [&](Value tile) { emitTileAt(e, tiles, batch, tile, firstPanel, endPanel); });
    decodedFrom = {};
  });
  // Some, lest there is no scratch to begin in where no terms are summed up.
  Dim bytes = chunk * Dim::max(Dim(1), panelRows()) * Dim(panelWidth() * graph::bytesOf(element));
  kernel.endPhase(tiles.outer * chunks, work(), bytes);
}

void Contraction::emitProducts() {
  Tiling tiles = tiling();
  if (packsInTasks)
    return emitPackedTasks(tiles, sharer().chunkOf(tiles.outer, panels, panelsOfChunk()));
  Dim tileCount = tiles.outer * tiles.count;
  auto [chunk, chunks, block, blocks] = sharer().share(tileCount, panels, panelsOfChunk());
  bool isDecoded = stored && !block.isConstant(1);
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value firstPanel = code.mul(code.div(task, kernel.dim(blocks)), kernel.dim(chunk));
    Value endPanel = code.min(code.add(firstPanel, kernel.dim(chunk)), kernel.dim(panels));
    Value first = code.mul(code.rem(task, kernel.dim(blocks)), kernel.dim(block));
    Value end = code.min(code.add(first, kernel.dim(block)), kernel.dim(tileCount));
    auto emit = [&] {
      Elements::Scope scope(e);
      if (!shape.isCut()) {
        emitTiles(e, tiles, first, end, firstPanel, endPanel);
        return Values();
      }
      code.forEach(first, end, 1, [&](Value number) {
        Elements::Scope scope(e);
        Value tile = dealtTile(number, kernel.dim(tileCount));
        emitTiles(e, tiles, tile, code.add(tile, code.number(1)), firstPanel, endPanel);
      });
      return Values();
    };
    if (!isDecoded) {
      emit();
      return;
    }
    code.choose(
        code.less(code.add(first, code.number(1)), end), TypeRange(),
        [&] {
          decodePanels(firstPanel, endPanel);
          emit();
          decodedFrom = {};
          return Values();
        },
        emit);
  });
  Dim panelBytes = shape.reduction * Dim(panelWidth() * graph::bytesOf(element));
  kernel.endPhase(chunks * blocks, work(), isDecoded ? chunk * panelBytes : Dim(0));
}

/// Where some tiles take longer than others, as those of a band do towards one end: neighbouring
/// tasks are dealt to workers, each of which has every so many of the tiles.
Value Contraction::dealtTile(Value number, Value count) {
  Code &code = kernel.code();
  Value workers = code.number(std::max<int64_t>(1, kernel.machine.workers)), one = code.number(1);
  // The first workers have one tile more than the others.
  Value least = code.div(count, workers), more = code.rem(count, workers);
  Value most = code.add(least, one), rest = code.sub(number, code.mul(more, most));
  auto deal = [&](Value firstWorker, Value place, Value tiles) {
    tiles = code.max(tiles, one);
    return code.add(code.mul(code.rem(place, tiles), workers),
                    code.add(firstWorker, code.div(place, tiles)));
  };
  return code.b.createOrFold<arith::SelectOp>(code.loc, code.less(rest, code.number(0)),
                                              deal(code.number(0), number, most),
                                              deal(more, code.max(rest, code.number(0)), least));
}

LogicalResult emitContraction(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  Contraction contraction(kernel, group, schedule);
  if (failed(contraction.prepare(outputsOf(group))))
    return failure();
  if (kernel.isTrial)
    return success();
  if (contraction.isOneRow()) {
    contraction.emitOneRow();
    return success();
  }
  contraction.emitOperands(/*mayPackInTasks=*/true);
  contraction.emitProducts();
  return success();
}

} // namespace heddle::lower
