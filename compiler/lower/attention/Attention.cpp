// Attention: two products with a softmax between them, as one kernel.
//
// A task is a batch (head) and a block of its query rows. It packs the keys and values of the head
// into the worker's scratch, then takes strips of a few rows: the products of the strip with all
// keys, in registers a panel at a time, go through scale and mask into the strip; each row becomes
// its exponentials; the strip is the left operand of the second product, whose rows are divided by
// their sums as they are stored. The scores never reach memory.
//
// Panels of keys that a mask hides from all queries of a strip are left out (Visible.cpp).
//
// Registers that hold matrices multiply factors of bf16 where there are any (Matrices.cpp).
//
// Few queries, as those of one token more, take keys and values from where they lie (Direct.cpp).
//
// Where the keys and values of a head are too many for the L2, several strips (a slab) meet each
// panel of keys and each chunk of values before the next one is read
// (bench/notes/2026-11-21-attention.md).

#include "compiler/lower/attention/Kernel.h"
#include "compiler/lower/contraction/Microkernel.h"

using namespace mlir;

namespace heddle::lower {

LogicalResult AttentionKernel::prepare() {
  if (failed(layout.read()))
    return failure();
  if (layout.isDirect) {
    layout.layOut(/*hasMasks=*/false);
    return success();
  }
  visibility.findMasks();
  layout.layOut(visibility.hasMasks());
  if (layout.queries.constant().value_or(1) <= layout.mostDirect()) {
    direct = std::make_unique<AttentionKernel>(kernel, layout.group, layout.schedule, true);
    return direct->prepare();
  }
  return success();
}

Indices AttentionKernel::operandBatch(Elements &e, graph::MatmulOp product, Value operand) {
  return lower::operandBatch(e, product, operand, layout.batchPlace(e, product.getResult()));
}

/// Offsets of a strip's rows in a buffer of the scratch.
Values AttentionKernel::rowOffsets(const Strip &strip, const Dim &stride) {
  Code &code = kernel.code();
  Values offsets;
  for (int64_t i = 0; i < strip.count(); ++i)
    offsets.push_back(code.mul(code.add(strip.place, code.number(i)), kernel.dim(stride)));
  return offsets;
}

/// Offsets of these rows in factors of a product.
Values AttentionKernel::factorRows(const Strip &strip, const Dim &stride) {
  return rowOffsets(strip, stride * Dim(layout.together));
}

AttentionKernel::Strip AttentionKernel::stripOf(Value first, Value place, int64_t count) {
  Code &code = kernel.code();
  Strip strip{{}, place};
  for (int64_t i = 0; i < count; ++i)
    strip.rows.push_back(layout.rowNumber(code.add(first, code.number(i))));
  return strip;
}

/// The last strip may be one row, as when one token follows many.
void AttentionKernel::forEachStrip(Elements &e, const Slab &slab,
                                   llvm::function_ref<void(const Strip &)> body) {
  Code &code = kernel.code();
  foldScoped(e, code.number(0), slab.strips, {}, [&](Value number, ValueRange) {
    Value place = code.mul(number, code.number(layout.stripRows));
    Value first = code.add(slab.first, place);
    auto emit = [&](int64_t count) {
      Elements::Scope scope(e);
      body(stripOf(first, place, count));
      return Values();
    };
    if (layout.hasMatrices)
      return emit(1);
    if (layout.queries.constant() || layout.stripRows == 1)
      return emit(layout.stripRows);
    Value isMore = code.less(code.add(first, code.number(1)), kernel.dim(layout.queries));
    return code.choose(
        isMore, TypeRange(), [&] { return emit(layout.stripRows); }, [&] { return emit(1); });
  });
}

void AttentionKernel::copyQueries(Elements &e, const Slab &slab) {
  Code &code = kernel.code();
  Value left = layout.parts.scores.getA();
  Value lowest = code.spread(code.constantOf(number, -std::numeric_limits<double>::infinity()));
  Indices place = operandBatch(e, layout.parts.scores, left);
  auto copy = [&](const Strip &strip) {
    copyRows(e, left, place, strip.rows, layout.keyPanels, layout.scratchAt(layout.queriesAt),
             rowOffsets(strip, layout.queryStride));
    for (int64_t i = 0; i < strip.count(); ++i)
      code.storeLanes(number, lowest, largestOf(code.add(strip.place, code.number(i))),
                      code.number(0), {});
  };
  forEachStrip(e, slab, [&](const Strip &strip) { forEachRow(e, strip, copy); });
}

/// A row's largest logits, lane by lane.
Value AttentionKernel::largestOf(Value place) {
  Code &code = kernel.code();
  return code.at(layout.scratchAt(layout.largestAt), number,
                 code.mul(place, code.number(code.lanes)));
}

/// The strip times the first vectors of a panel of keys, through what precedes the softmax.
void AttentionKernel::emitScores(Elements &e, const Strip &strip, Value panel, int64_t vectors) {
  if (layout.hasMatrices) {
    multiplyQueries(strip, panel);
    return forEachRow(e, strip, [&](const Strip &row) {
      storeScores(e, row, sumsOf(row, layout.keyPanels), panel, vectors);
    });
  }
  if (layout.isDirect)
    return storeScores(e, strip, dotsOf(e, strip, panel), panel, vectors);
  Values aRows = factorRows(strip, layout.queryStride);
  TileProduct product = layout.productOf(layout.keyPanels, Dim(0), layout.queriesAt, aRows, panel);
  storeScores(e, strip, emitProduct(kernel.code(), {strip.count(), vectors}, product), panel,
              vectors);
}

void AttentionKernel::storeScores(Elements &e, const Strip &strip, ArrayRef<Value> sums,
                                  Value panel, int64_t vectors) {
  Code &code = kernel.code();
  Value scores = layout.parts.scores.getResult(), logits = layout.parts.logits,
        buffer = layout.scratchAt(layout.stripsAt);
  Values targets = rowOffsets(strip, layout.stripStride);
  int64_t width = layout.keyPanels.width;
  Values largest;
  for (int64_t i = 0; i < strip.count(); ++i)
    largest.push_back(code.loadLanes(number, largestOf(code.add(strip.place, code.number(i))),
                                     code.number(0), {}));
  SmallVector<Indices> places;
  for (Value row : strip.rows)
    places.push_back(layout.placeOfRow(e, logits, row));
  for (int64_t j = 0; j < vectors; ++j) {
    Elements::Scope scope(e);
    Value column = code.add(code.mul(panel, code.number(width)), code.number(j * code.lanes));
    e.mask = maskOfColumns(e, layout.keys, width, column);
    for (int64_t i = 0; i < strip.count(); ++i) {
      Indices place(places[i]);
      place.push_back({column, 1, {}});
      Value sum = narrow(e, sums[i * vectors + j], graph::storageOf(scores));
      e.bind(scores, [sum](ArrayRef<Index>) { return sum; });
      Value value = code.spread(widen(e, e.at(logits, place), number));
      code.storeLanes(number, value, buffer, code.add(targets[i], column), {});
      // NaN may be left out: it comes back as the exponential of its own element.
      Value isMore =
          code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OGT, value, largest[i]);
      isMore = code.both(isMore, e.mask);
      largest[i] = code.b.create<arith::SelectOp>(code.loc, isMore, value, largest[i]);
    }
    e.mask = {};
  }
  e.unbind(scores);
  for (int64_t i = 0; i < strip.count(); ++i)
    code.storeLanes(number, largest[i], largestOf(code.add(strip.place, code.number(i))),
                    code.number(0), {});
}

/// The strip times a chunk of the keys that are seen, for a panel of values; the sums of earlier
/// keys wait in the scratch.
void AttentionKernel::emitValues(Elements &e, const Strip &strip, Value panel, const Keys &chunk,
                                 const Keys &seen) {
  Code &code = kernel.code();
  int64_t vectors = layout.valuePanels.vectors, width = layout.valuePanels.width;
  Value buffer = layout.scratchAt(layout.partsAt), zero = code.spread(code.constantOf(number, 0));
  Values waiting = rowOffsets(strip, Dim(width));
  auto forEachSum = [&](llvm::function_ref<void(int64_t, Value)> body) {
    for (int64_t i = 0; i < strip.count() * vectors; ++i)
      body(i, code.add(waiting[i / vectors], code.number(i % vectors * code.lanes)));
  };
  SmallVector<Type> types(strip.count() * vectors, zero.getType());
  Values aRows = factorRows(strip, layout.stripStride);
  for (Value &row : aRows)
    row = code.add(row, chunk.low);
  TileProduct product =
      layout.productOf(layout.valuePanels, layout.valuesAt, layout.stripsAt, aRows, panel);
  product.length = code.sub(chunk.high, chunk.low);
  product.bOffset = code.add(product.bOffset, code.mul(chunk.low, code.number(width)));
  product.endsInside = true; // keys that are not seen follow
  Values start = code.choose(
      code.less(seen.low, chunk.low), types,
      [&] {
        Values sums;
        forEachSum(
            [&](int64_t, Value at) { sums.push_back(code.loadLanes(number, buffer, at, {})); });
        return sums;
      },
      [&] { return Values(types.size(), zero); });
  product.start.assign(start.begin(), start.end());
  auto sums = layout.isDirect ? weighed(e, strip, panel, chunk, start)
                              : emitProduct(code, {strip.count(), vectors}, product);
  code.choose(
      code.less(chunk.high, seen.high), TypeRange(),
      [&] {
        forEachSum([&](int64_t i, Value at) { code.storeLanes(number, sums[i], buffer, at, {}); });
        return Values();
      },
      [&] {
        storeValues(e, strip, sums, panel);
        return Values();
      });
}

void AttentionKernel::storeValues(Elements &e, const Strip &strip, ArrayRef<Value> sums,
                                  Value panel) {
  Code &code = kernel.code();
  Value values = layout.parts.values.getResult(),
        firstColumn = code.mul(panel, code.number(layout.valuePanels.width));
  Indices place = layout.batchPlace(e, values);
  place.append(2, Index());
  for (int64_t i = 0; i < strip.count(); ++i) {
    Elements::Scope rowScope(e);
    Value sumOfRow =
        code.load(number, layout.scratchAt(layout.sumsAt), code.add(strip.place, code.number(i)));
    if (!layout.parts.dividesLast)
      bindNumber(e, layout.parts.sum, sumOfRow);
    place[place.size() - 2] = e.uniform(strip.rows[i]);
    for (int64_t j = 0; j < layout.valuePanels.vectors; ++j) {
      Elements::Scope scope(e);
      Value column = code.add(firstColumn, code.number(j * code.lanes));
      e.mask = maskOfColumns(e, layout.valuePanels.columns, layout.valuePanels.width, column);
      place.back() = {column, 1, {}};
      Value sum = sums[i * layout.valuePanels.vectors + j];
      if (layout.parts.dividesLast)
        sum = code.b.create<arith::MulFOp>(code.loc, sum, code.spread(sumOfRow));
      sum = narrow(e, sum, graph::storageOf(values));
      e.bind(values, [sum](ArrayRef<Index>) { return sum; });
      Indices target = placeAfterMoves(e, layout.parts.moves, place);
      e.store(layout.parts.result, e.at(layout.parts.result, target), target);
      e.mask = {};
    }
  }
  e.unbind(values);
  e.unbind(layout.parts.sum);
}

/// One strip takes all keys at once; several take a chunk that stays in the L2 until all had it.
void AttentionKernel::emitValueChunks(Elements &e, const Slab &slab, const Keys &seen) {
  Code &code = kernel.code();
  Value zero = code.number(0), length = code.sub(seen.high, seen.low);
  int64_t bytes = layout.valuePanels.width * graph::bytesOf(number);
  // Keys of a lane stay together.
  int64_t most =
      layout.isDirect ? kDirectChunk : kernel.machine.l2Bytes / 8 / bytes / layout.together;
  Value fitting = code.number(std::max<int64_t>(1, most) * layout.together);
  Value isOne = code.less(slab.strips, code.number(2));
  Value size = code.b.createOrFold<arith::SelectOp>(code.loc, isOne,
                                                    code.max(length, code.number(1)), fitting);
  // No keys at all are one empty chunk.
  Value chunks =
      code.max(code.div(code.add(length, code.sub(size, code.number(1))), size), code.number(1));
  foldScoped(e, zero, kernel.dim(layout.valuePanels.count()), {}, [&](Value panel, ValueRange) {
    foldScoped(e, zero, chunks, {}, [&](Value number, ValueRange) {
      Value low = code.add(seen.low, code.mul(number, size));
      Keys chunk{{}, {}, low, code.min(code.add(low, size), seen.high)};
      forEachStrip(e, slab, [&](const Strip &strip) { emitValues(e, strip, panel, chunk, seen); });
      return Values();
    });
    return Values();
  });
}

void AttentionKernel::emitSlab(Elements &e, const Slab &slab, const Visibility::Bounds &bounds) {
  Code &code = kernel.code();
  copyQueries(e, slab);
  Value zero = code.number(0);
  Keys seen = layout.isDirect
                  ? Keys{zero, kernel.dim(layout.keyPanels.count()), zero, kernel.dim(layout.keys)}
                  : visibility.visibleKeys(e, slab, bounds);
  int64_t half = layout.keyPanels.vectors / 2;
  Value masked = seen.first;
  if (seen.clear && visibility.areFirstSeen()) {
    masked = code.min(code.max(seen.clear, seen.first), seen.end);
    visibility.bindSeen(e);
    foldScoped(e, seen.first, masked, {}, [&](Value panel, ValueRange) {
      forEachStrip(e, slab, [&](const Strip &strip) {
        emitScores(e, strip, panel, layout.keyPanels.vectors);
      });
      return Values();
    });
    visibility.unbindSeen(e);
  }
  foldScoped(e, masked, seen.end, {}, [&](Value panel, ValueRange) {
    auto emitPart = [&](int64_t vectors) {
      forEachStrip(e, slab, [&](const Strip &strip) { emitScores(e, strip, panel, vectors); });
      return Values();
    };
    if (!visibility.endsAtDiagonal() || half == 0 || layout.hasMatrices) // none of a direct one
      return emitPart(layout.keyPanels.vectors);
    // Half of the diagonal's panel may be enough.
    Value left = code.sub(seen.high, code.mul(panel, code.number(layout.keyPanels.width)));
    return code.choose(
        code.less(code.number(half * code.lanes), left), TypeRange(),
        [&] { return emitPart(layout.keyPanels.vectors); }, [&] { return emitPart(half); });
  });
  emitSoftmax(e, slab, seen);
  if (layout.hasMatrices)
    emitMatrixValues(e, slab, seen);
  else
    emitValueChunks(e, slab, seen);
}

/// Strips [first, end) of the task, whose keys and values are packed before.
void AttentionKernel::emitPacked(Elements &e, Value first, Value end) {
  Elements::Scope scope(e);
  Code &code = kernel.code();
  visibility.bindSide(e);
  Value right = layout.parts.scores.getB();
  packPanels(e, layout.keyPanels, right, operandBatch(e, layout.parts.scores, right),
             layout.scratchAt(Dim(0)));
  right = layout.parts.values.getB();
  packPanels(e, layout.valuePanels, right, operandBatch(e, layout.parts.values, right),
             layout.scratchAt(layout.valuesAt));
  Visibility::Bounds bounds =
      visibility.boundsOfTask(e, code.mul(first, code.number(layout.stripRows)));
  Value together = layout.stripsOfSlab(), count = code.sub(end, first);
  Value slabs = code.div(code.add(count, code.sub(together, code.number(1))), together);
  foldScoped(e, code.number(0), slabs, {}, [&](Value number, ValueRange) {
    Value strip = code.add(first, code.mul(number, together));
    Slab slab{code.mul(strip, code.number(layout.stripRows)),
              code.min(together, code.sub(end, strip))};
    emitSlab(e, slab, bounds);
    return Values();
  });
  visibility.unbindSide(e);
}

void AttentionKernel::emit() {
  kernel.beginPhase();
  Elements e(kernel, layout.group);
  Code &code = kernel.code();
  Dim blocks =
      layout.stripsOfTask == layout.strips ? Dim(1) : layout.strips.ceilDiv(layout.stripsOfTask);
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    layout.batch = code.div(task, kernel.dim(blocks));
    Value first = code.mul(code.rem(task, kernel.dim(blocks)), kernel.dim(layout.stripsOfTask));
    Value end =
        code.min(code.add(first, kernel.dim(layout.stripsOfTask)), kernel.dim(layout.strips));
    if (!direct)
      return emitPacked(e, first, end);
    auto few = [&] {
      Value rows = code.number(layout.stripRows);
      direct->emitDirect(e, layout.batch, code.mul(first, rows), code.mul(end, rows));
      return Values();
    };
    if (layout.queries.constant())
      return void(few());
    Value most = code.number(layout.mostDirect());
    code.choose(
        code.less(most, kernel.dim(layout.queries)), TypeRange(),
        [&] {
          emitPacked(e, first, end);
          return Values();
        },
        few);
  });
  Dim work =
      layout.batches * layout.queries * layout.keys * (layout.depth + layout.valuePanels.columns);
  Dim scratch = direct ? Dim::max(layout.scratchEnd, direct->layout.scratchEnd) : layout.scratchEnd;
  kernel.endPhase(layout.batches * blocks, work.floorDiv(Dim(kernel.machine.lanes)),
                  scratch * Dim(graph::bytesOf(number)));
}

LogicalResult emitAttention(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  return carryOut<AttentionKernel>(kernel, group, schedule);
}

} // namespace heddle::lower
