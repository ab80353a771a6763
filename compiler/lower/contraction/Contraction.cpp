// Contraction: tasks, and the tiles of each. Loop order: chunk of panels (as much as the L2 holds),
// tile of rows, panel (bench/notes/2026-11-21-register-tiles.md).

#include "compiler/lower/contraction/Contraction.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Typical.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

void Contraction::emitOperands(bool mayPackInTasks) {
  right = rightOperandOf(layout, band, mayPackInTasks);
  if (mayPackInTasks && right->scratch() == RightOperand::Scratch::None) {
    left.chooseStrips();
    matrices.beginAfter(left.stripBytes());
  }
  left.emitPhase();
  right->prepare();
}

Dim Contraction::panelBytes() const {
  return layout.panelRows() * Dim(layout.panelWidth() * layout.elementBytes());
}

Dim Contraction::scratchOfTile(const Dim &bytes) {
  if (!layout.hasMatrices)
    return right->scratchOfTile(bytes);
  matrices.beginAfter(bytes);
  return right->scratchOfTile(matrices.scratchEnd());
}

void Contraction::emitOperands(std::unique_ptr<RightOperand> operand) {
  left.emitPhase();
  right = std::move(operand);
  right->prepare();
}

/// Memory that a tile of `rows` fetches while it is computed (bench/notes/2026-11-21-kernels.md):
/// if few panels share the rows, those of the next tile, which do not stay in the L2; otherwise its
/// share of the next chunk of `chunk` panels, which comes from memory. `a` and `b` are the first
/// elements of these. A single row takes no longer than its panels take to come.
std::optional<Contraction::Ahead> Contraction::ahead(Value a, Value b, Value firstRow, Value chunk,
                                                     int64_t rows) {
  Code &code = kernel.code();
  int64_t count = graph::typicalSize(shape.root, layout.panels);
  if (rows == 1 || count < 1 || isCoded() || left.isTiled() || shape.isCut() ||
      !shape.pieces.empty() || layout.depth != 1)
    return std::nullopt;
  const ProductLayout::Run &run = layout.runs.back();
  if (count > estimate::thresholdAt(shape.root, estimate::kProductPanels)) {
    Value constant = right->constant();
    if (!constant || layout.runs.size() != 1 || !layout.panels.constant())
      return std::nullopt;
    Dim tiles = Dim::max(Dim(1), run.extent.ceilDiv(Dim(layout.tileRows)));
    Value step = kernel.dim(Dim(layout.panelWidth()).ceilDiv(tiles));
    Value before = code.mul(code.div(firstRow, code.number(layout.tileRows)), chunk);
    Value share = code.mul(kernel.dim(shape.length), step);
    return Ahead{constant, code.add(b, code.mul(before, share)), step};
  }
  Dim elements = shape.length; // of A; after the last row of one batch the next one's first follows
  for (const ProductLayout::Run &each : llvm::reverse(layout.runs)) {
    if (each.aStride != elements)
      return std::nullopt;
    elements = elements * each.extent;
  }
  Dim bytes = elements * Dim(layout.elementBytes());
  bool areFar = graph::typicalSize(shape.root, bytes) >= kernel.machine.l2Bytes / 2;
  if (left.isConverted() || !areFar || rows < count)
    return std::nullopt;
  return Ahead{left.pointer(), a, kernel.dim(Dim(rows).floorDiv(Dim::max(Dim(1), layout.panels)))};
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
  if (!left.isConverted() || layout.isShifted() || !hasIdleTaps(taps))
    return {count, step};
  auto conv = cast<graph::ConvOp>(shape.root);
  int64_t d = taps.dimension, dilation = conv.getDilations()[d];
  bool isTiled = layout.runs.back().dimension == d + 1;
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

Contraction::Place Contraction::placeOf(Elements &e, Value outer) {
  Code &code = kernel.code();
  Place made{Indices(shape.rows.size() + 1, e.uniform(code.number(0))), {}, {}};
  std::tie(made.matrix, made.a) = layout.placeOutside(e, outer, made.indices);
  made.indices.back() = e.uniform(code.mul(made.matrix, kernel.dim(shape.columns)));
  for (int64_t dimension : shape.batches)
    made.matrix = code.add(code.mul(made.matrix, kernel.dim(shape.rows[dimension].extent)),
                           made.indices[dimension].base);
  return made;
}

/// A tile of `count` rows in registers that hold matrices. Weights come from memory: where few
/// tiles share a chunk of panels, each fetches its part of the next chunk, if the L2 has room for
/// both. Many more tiles than there usually are would fetch the same again and again.
void Contraction::emitMatrixTile(Elements &e, Value outer, Value firstRow, Value count,
                                 Value firstPanel, Value endPanel) {
  constexpr int64_t kMostOfExpected = 4, kLine = 64;
  Code &code = kernel.code();
  Place place = placeOf(e, outer);
  matrices.take(code.add(place.a, code.mul(firstRow, kernel.dim(layout.runs.back().aStride))),
                count);
  Tiling tiling = layout.tiling();
  auto typical = [&](const Dim &size) { return graph::typicalSize(shape.root, size, 1); };
  Value panelSize = code.mul(kernel.dim(layout.panelRows()), code.number(layout.panelWidth()));
  Value panels = kernel.dim(layout.panels);
  auto numberOf = [&](Value panel) { return code.add(code.mul(place.matrix, panels), panel); };
  auto emitPanels = [&](Value source, int64_t tiles, int64_t lines) {
    Value tile = code.add(code.mul(outer, kernel.dim(tiling.count)),
                          code.div(firstRow, code.number(layout.tileRows)));
    Value before = code.mul(code.rem(tile, code.number(tiles)), code.sub(endPanel, firstPanel));
    Value part = code.mul(kernel.dim(layout.panelRows().floorDiv(Dim(layout.stepLength()))),
                          code.number(kLine * lines));
    code.forEach(firstPanel, endPanel, 1, [&](Value panel) {
      Value at = code.mul(right->placeOf(numberOf(panel)), panelSize), fetched = right->pointer();
      if (lines)
        fetched = code.at(source, code.b.getI8Type(),
                          code.mul(code.add(before, code.sub(panel, firstPanel)), part));
      matrices.multiply(code.at(right->pointer(), layout.element, at), fetched, lines);
      code.forEach(code.number(0), count, 1, [&](Value row) {
        Elements::Scope scope(e);
        epilogue.emit(e, matrices.sumsOf(row), place.indices, code.add(firstRow, row),
                      code.mul(panel, code.number(layout.partWidth())));
      });
    });
    return Values();
  };
  int64_t steps = std::max<int64_t>(1, typical(layout.panelRows()) / layout.stepLength());
  int64_t lines = llvm::divideCeil(typical(right->sourceBytes()), kLine * steps);
  int64_t tiles = std::max(typical(tiling.outer * tiling.count), isCoded() ? kMostOfExpected : 1);
  Value source = right->sourceOf(numberOf(endPanel));
  if (!source || tiles > lines || typical(panelBytes()) > kernel.machine.l2Bytes / 4) {
    emitPanels({}, 1, 0);
    return;
  }
  code.choose(
      code.less(code.number(kMostOfExpected * tiles), kernel.dim(tiling.outer * tiling.count)),
      TypeRange(), [&] { return emitPanels({}, 1, 0); },
      [&] { return emitPanels(source, tiles, llvm::divideCeil(lines, tiles)); });
}

void Contraction::emitTile(Elements &e, Value outer, Value tileNumber, Value firstRow, int64_t rows,
                           bool clamp, Value firstPanel, Value endPanel) {
  Code &code = kernel.code();
  int64_t width = layout.panelWidth();
  auto [place, batch, aBase] = placeOf(e, outer);
  Value stride = left.isTiled() ? code.number(layout.isShort() ? layout.depth : 1)
                                : kernel.dim(layout.runs.back().aStride);
  Value aFirst =
      left.isTiled() ? left.tileAt(outer, tileNumber) : code.add(aBase, code.mul(firstRow, stride));
  Values rowNumbers, aRows;
  for (int64_t i = 0; i < rows; ++i) {
    Value row = code.add(firstRow, code.number(i)), aRow = code.mul(code.number(i), stride);
    if (clamp) {
      row = code.min(row, code.sub(kernel.dim(layout.runs.back().extent), code.number(1)));
      aRow = code.mul(code.sub(row, firstRow), stride);
    }
    rowNumbers.push_back(row);
    aRows.push_back(code.add(aFirst, aRow)); // distances that the addresses of loads can hold
  }
  TileProduct product{layout.element, layout.accumulator, left.pointer(), aRows, {}, {}, {}, {}, 0};
  product.aStep = left.isTiled() ? layout.tiling().mostRows() : 1;
  product.depth = layout.depth;
  product.dot = kernel.machine.dot;
  product.isPadded = left.isConverted() && !layout.isShort(); // 0 times infinity is none
  product.b = right->pointer();
  for (const Taps &taps : shape.pieces)
    product.pieces.push_back(pieceOf(taps, place, rowNumbers));
  product.length = kernel.dim(shape.length);
  int64_t panelBytes =
      graph::typicalSize(shape.root, shape.reduction) * width * layout.elementBytes();
  // A single row reads panels as fast as they come, one after the other: processors see that.
  if (rows > 1 && panelBytes > kernel.machine.l1Bytes / 2)
    product.prefetch = 16;
  Value panelSize = code.mul(kernel.dim(layout.panelRows()), code.number(width));
  Value after = code.mul(code.add(code.mul(batch, kernel.dim(layout.panels)), endPanel), panelSize);
  Value nextRow = code.add(firstRow, code.number(rows));
  Value nextRows = code.add(aBase, code.mul(nextRow, kernel.dim(layout.runs.back().aStride)));
  auto next = ahead(nextRows, after, firstRow, code.sub(endPanel, firstPanel), rows);
  Indices matrix(place.begin(), place.end() - std::min<size_t>(2, place.size()));
  Value isInside; // the tile is, of limits
  if (shape.limits && shape.limits->rows)
    isInside =
        code.less(firstRow, limitAt(e, shape.limits->rows, matrix, layout.runs.back().extent));
  code.forEach(firstPanel, endPanel, 1, [&](Value panel) {
    Elements::Scope scope(e);
    if (next) {
      Value share = code.mul(product.length, next->step);
      Value at = code.add(next->at, code.mul(code.sub(panel, firstPanel), share));
      product.fetched = code.at(next->from, layout.element, at);
      product.fetchedStep = next->step;
    }
    Value number = code.add(code.mul(batch, kernel.dim(layout.panels)), panel);
    product.bOffset = code.mul(right->placeOf(number), panelSize);
    product.start = right->startOf(number, rows);
    if (shape.limits) {
      product.length = depthOf(e, shape, matrix, code.mul(panel, code.number(layout.partWidth())));
      if (isInside)
        product.length =
            code.b.create<arith::SelectOp>(code.loc, isInside, product.length, code.number(0));
    }
    RegisterTile tile{rows, layout.vectors};
    auto sumsOf = [&](const TileProduct &part) { return right->sums(tile, part, number); };
    SmallVector<Value> sums =
        shape.band ? band.sums(product, rowNumbers, number, sumsOf) : sumsOf(product);
    epilogue.emit(e, sums, place, rowNumbers, code.mul(panel, code.number(layout.partWidth())));
  });
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
  Value firstRow = layout.firstRowOf(tiling, tile);
  if (layout.hasMatrices) {
    Value end = tiling.isExact ? layout.firstRowOf(tiling, code.add(tile, code.number(1)))
                               : code.min(code.add(firstRow, code.number(tiling.base)),
                                          kernel.dim(tiling.rows));
    emitMatrixTile(e, outer, firstRow, code.sub(end, firstRow), firstPanel, endPanel);
    return;
  }
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
  auto emitAll = [&](Value first, Value end) {
    code.forEach(first, end, 1, [&](Value number) {
      Value tile = code.rem(number, kernel.dim(tiling.count));
      Value outer = code.div(number, kernel.dim(tiling.count));
      emitTileAt(e, tiling, outer, tile, firstPanel, endPanel);
    });
  };
  if (!left.isInStrips())
    return emitAll(first, end);
  Value count = kernel.dim(tiling.count), lines = kernel.dim(layout.runs[1].extent);
  Value firstLine = code.div(first, count), one = code.number(1);
  Value endLine = code.add(code.div(code.sub(end, one), count), one);
  Value endImage = code.add(code.div(code.sub(endLine, one), lines), one);
  code.forEach(code.div(firstLine, lines), endImage, 1, [&](Value image) {
    Value start = code.max(firstLine, code.mul(image, lines));
    Value stop = code.min(endLine, code.mul(code.add(image, one), lines));
    code.forEach(start, stop, left.linesOfStrip(), [&](Value line) {
      Value next = code.min(code.add(line, code.number(left.linesOfStrip())), stop);
      left.copyStrip(e, line, next);
      emitAll(code.max(first, code.mul(line, count)), code.min(end, code.mul(next, count)));
    });
  });
}

/// A chunk of panels of one of the right operand's matrices per task, which packs it and
/// multiplies all rows of the matrix by it.
void Contraction::emitPackedTasks(const Tiling &tiles, const Dim &chunk) {
  Dim chunks = layout.panels.ceilDiv(chunk);
  kernel.beginPhase();
  Elements e(kernel, layout.group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    if (shape.limits)
      task = dealtTile(task, kernel.dim(tiles.outer * chunks));
    Value batch = code.div(task, kernel.dim(chunks));
    Value firstPanel = code.mul(code.rem(task, kernel.dim(chunks)), kernel.dim(chunk));
    Value endPanel = code.min(code.add(firstPanel, kernel.dim(chunk)), kernel.dim(layout.panels));
    right->fill(batch, firstPanel, endPanel);
    code.forEach(code.number(0), kernel.dim(tiles.count), 1,
                 [&](Value tile) { emitTileAt(e, tiles, batch, tile, firstPanel, endPanel); });
    right->release();
  });
  // Some, lest there is no scratch to begin in where no terms are summed up.
  Dim bytes = chunk * Dim::max(Dim(1), layout.panelRows()) *
              Dim(layout.panelWidth() * layout.elementBytes());
  kernel.endPhase(tiles.outer * chunks, layout.work(), bytes);
}

void Contraction::emitProducts() {
  Tiling tiles = layout.tiling();
  estimate::Sharer sharer = layout.sharer();
  Dim most = layout.panelsOfTask();
  if (right->scratch() == RightOperand::Scratch::All)
    return emitPackedTasks(tiles, sharer.chunkOf(tiles.outer, layout.panels, most));
  Dim tileCount = tiles.outer * tiles.count;
  // Tasks that have to decode their panels have all tiles.
  auto [chunk, chunks, block, blocks] =
      sharer.share(decodesAlways() ? Dim(1) : tileCount, layout.panels, most);
  if (decodesAlways())
    block = tileCount;
  bool isDecoded = decodesAlways() || (isCoded() && !block.isConstant(1));
  Dim scratch = scratchOfTile(left.stripBytes());
  kernel.beginPhase();
  Elements e(kernel, layout.group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value firstPanel = code.mul(code.div(task, kernel.dim(blocks)), kernel.dim(chunk));
    Value endPanel = code.min(code.add(firstPanel, kernel.dim(chunk)), kernel.dim(layout.panels));
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
    if (isDecoded)
      emitShared(first, end, firstPanel, endPanel, emit);
    else
      emit();
  });
  if (isDecoded)
    scratch = scratch + chunk * panelBytes();
  kernel.endPhase(chunks * blocks, layout.work(), scratch);
}

void Contraction::emitShared(Value first, Value end, Value firstPanel, Value endPanel,
                             llvm::function_ref<Values()> emit) {
  Code &code = kernel.code();
  auto emitFilled = [&] {
    right->fill({}, firstPanel, endPanel);
    emit();
    right->release();
    return Values();
  };
  if (decodesAlways())
    emitFilled();
  else
    code.choose(code.less(code.add(first, code.number(1)), end), TypeRange(), emitFilled, emit);
}

/// Assigns tiles to tasks round-robin, since some tiles take longer than others, as those of a band
/// do towards one end, and a worker has neighbouring tasks.
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
  contraction.layout.mayHaveMatrices = true;
  if (failed(contraction.prepare(outputsOf(group))))
    return failure();
  if (kernel.isTrial)
    return success();
  if (contraction.layout.isOneRow) {
    emitOneRow(contraction.layout);
    return success();
  }
  contraction.emitOperands(/*mayPackInTasks=*/true);
  contraction.emitProducts();
  return success();
}

} // namespace heddle::lower
