// Attention: two products with a softmax between them, as one kernel.
//
// A task is a batch (head) and a block of its query rows. It packs the keys and values of the head
// into the worker's scratch, then takes strips of a few rows: the products of the strip with all
// keys, in registers a panel at a time, go through scale and mask into the strip; each row becomes
// its exponentials; the strip is the left operand of the second product, whose rows are divided by
// their sums as they are stored. The scores never reach memory.

#include "compiler/loop/Microkernel.h"
#include "compiler/lower/AttentionKernel.h"

using namespace mlir;

namespace heddle::lower {

static DimVector batchOf(Value tensor) {
  DimVector dims = graph::dimsOf(tensor);
  dims.pop_back_n(2);
  return dims;
}

LogicalResult AttentionKernel::prepare() {
  SmallVector<Operation *> ops;
  for (Operation &op : group->without_terminator())
    ops.push_back(&op);
  std::string why;
  auto read = loop::readAttention(ops, why);
  if (!read || outputsOf(group).size() != 1 || outputsOf(group)[0] != read->result)
    return failure();
  parts = *read;
  number = accumulatorType(graph::elementOf(parts.scores.getResult()));
  DimVector scores = graph::dimsOf(parts.scores.getResult());
  batches = graph::elementCount(batchOf(parts.scores.getResult()));
  for (Value same : {parts.logits, parts.weights})
    if (graph::elementCount(batchOf(same)) != batches)
      return failure();
  queries = scores[scores.size() - 2];
  keys = scores.back();
  depth = graph::dimsOf(parts.scores.getA()).back();
  chooseTiles();
  layOutScratch();
  return success();
}

/// The vectors of a panel: as many as asked for, fewer where as many panels do with fewer.
static int64_t vectorsOf(const Dim &columns, int64_t wanted, int64_t lanes) {
  auto known = columns.constant();
  if (!known || *known == 0)
    return wanted;
  int64_t vectors = llvm::divideCeil(*known, lanes);
  return llvm::divideCeil(vectors, llvm::divideCeil(vectors, wanted));
}

void AttentionKernel::chooseTiles() {
  int64_t lanes = kernel.machine.lanes;
  int64_t wanted = std::max<int64_t>(
      1, schedule.knob("n", (kernel.machine.registers < 32 ? 2 : 4) * lanes) / lanes);
  stripRows = std::max<int64_t>(1, schedule.knob("m", 6));
  auto panels = [&](const Dim &rows, const Dim &columns) {
    int64_t vectors = vectorsOf(columns, wanted, lanes);
    return Panels{rows, columns, vectors, vectors * lanes, number};
  };
  keyPanels = panels(depth, keys);
  valuePanels = panels(keys, graph::dimsOf(parts.values.getResult()).back());
  tiles = queries.ceilDiv(Dim(stripRows));
  // Few heads share the rows among the workers; each task packs the keys for itself.
  int64_t rows = schedule.knob("rows", nominalSize(batches, 1) >= 8 ? 0 : 64);
  tilesOfTask = rows ? Dim(llvm::divideCeil(rows, stripRows)) : tiles;
}

void AttentionKernel::layOutScratch() {
  int64_t lanes = kernel.machine.lanes;
  queryStride = depth.ceilDiv(Dim(lanes)) * Dim(lanes);
  // Rows a little more than a power of two apart fall into different sets of the cache.
  stripStride = keyPanels.count() * Dim(keyPanels.width) + Dim(16);
  valuesAt = keyPanels.elements();
  queriesAt = valuesAt + valuePanels.elements();
  stripAt = queriesAt + queryStride * Dim(stripRows);
  maximaAt = stripAt + stripStride * Dim(stripRows);
  sumsAt = maximaAt + Dim(llvm::alignTo(stripRows, 16));
  scratchEnd = sumsAt + Dim(llvm::alignTo(stripRows, 16));
}

Value AttentionKernel::scratchAt(const Dim &elements) {
  return kernel.code().at(kernel.scratch(), number, kernel.dim(elements));
}

/// The task's batch as indices of a tensor's own batch dimensions.
Indices AttentionKernel::batchPlace(Elements &e, Value tensor) {
  Code &code = kernel.code();
  DimVector dims = batchOf(tensor);
  Indices place(dims.size());
  Value rest = batch;
  for (size_t i = dims.size(); i-- > 0;) {
    Value extent = kernel.dim(dims[i]);
    place[i] = e.uniform(i == 0 ? rest : code.rem(rest, extent));
    if (i > 0)
      rest = code.div(rest, extent);
  }
  return place;
}

Indices AttentionKernel::operandBatch(Elements &e, graph::MatmulOp product, Value operand) {
  Indices place = batchPlace(e, product.getResult());
  DimVector from = graph::dimsOf(operand), to = graph::dimsOf(product.getResult());
  for (auto [i, index] : llvm::enumerate(place))
    index = broadcastIndex(e, index, from[i], to[i]);
  return place;
}

/// Where the kernel's result has what stands at `place` of the second product.
Indices AttentionKernel::resultPlace(Elements &e, Indices place) {
  for (Operation *move : parts.moves) {
    if (auto transpose = dyn_cast<graph::TransposeOp>(move)) {
      Indices next;
      for (int64_t axis : transpose.getPermutation())
        next.push_back(place[axis]);
      place = next;
    } else {
      DimVector from = graph::dimsOf(move->getOperand(0)), to = graph::dimsOf(move->getResult(0));
      place = reshapedPlace(e, to, from, place);
    }
  }
  return place;
}

Value AttentionKernel::rowNumber(Value first, Value shift, bool clamp) {
  Code &code = kernel.code();
  Value row = code.add(first, shift);
  return clamp ? code.min(row, code.sub(kernel.dim(queries), code.number(1))) : row;
}

Value AttentionKernel::maskAt(Elements &e, const Dim &columns, int64_t width, Value column) {
  Code &code = kernel.code();
  if (columns.mod(Dim(width)).isConstant(0))
    return {};
  return code.maskOf(code.max(code.sub(kernel.dim(columns), column), code.number(0)));
}

/// The strip times all keys, through what stands before the softmax; the largest of each row.
void AttentionKernel::emitScores(Elements &e, const Strip &strip) {
  Code &code = kernel.code();
  Value scores = parts.scores.getResult(), logits = parts.logits;
  Value queryRows = scratchAt(queriesAt), strips = scratchAt(stripAt);
  copyRows(e, parts.scores.getA(), operandBatch(e, parts.scores, parts.scores.getA()), strip.rows,
           depth, number, queryRows, kernel.dim(queryStride));
  Indices place = batchPlace(e, logits);
  place.append(2, Index());
  Values aRows;
  for (int64_t i = 0; i < strip.count; ++i)
    aRows.push_back(code.mul(kernel.dim(queryStride), code.number(i)));
  loop::Product product{number, number, queryRows, aRows, kernel.scratch(), {}, {}, {}, 8};
  product.length = kernel.dim(depth);
  int64_t width = keyPanels.width;
  Value lowest = code.spread(code.constantOf(number, -std::numeric_limits<double>::infinity()));
  Values largest(strip.count, lowest);
  largest = foldScoped(
      e, code.number(0), kernel.dim(keyPanels.count()), largest, [&](Value panel, ValueRange in) {
        product.bOffset = code.mul(panel, kernel.dim(depth * Dim(width)));
        auto sums = loop::emitProduct(code, {strip.count, keyPanels.vectors}, product);
        Values next(in.begin(), in.end());
        for (int64_t j = 0; j < keyPanels.vectors; ++j) {
          Elements::Scope scope(e);
          Value column = code.add(code.mul(panel, code.number(width)), code.number(j * code.lanes));
          e.mask = maskAt(e, keys, width, column);
          place.back() = {column, 1, {}};
          for (int64_t i = 0; i < strip.count; ++i) {
            Value sum = narrow(e, sums[i * keyPanels.vectors + j], graph::elementOf(scores));
            e.bind(scores, [sum](ArrayRef<Index>) { return sum; });
            place[place.size() - 2] = e.uniform(strip.rows[i]);
            Value value = code.spread(widen(e, e.at(logits, place), number));
            Value at = code.add(code.mul(kernel.dim(stripStride), code.number(i)), column);
            code.storeLanes(number, value, strips, at, {});
            // NaN may be left out: it comes back as the exponential of its own element.
            Value isMore =
                code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OGT, value, next[i]);
            isMore = code.both(isMore, e.mask);
            next[i] = code.b.create<arith::SelectOp>(code.loc, isMore, value, next[i]);
          }
          e.mask = {};
        }
        return next;
      });
  e.unbind(scores);
  for (int64_t i = 0; i < strip.count; ++i) {
    Value most =
        code.b.create<vector::ReductionOp>(code.loc, vector::CombiningKind::MAXNUMF, largest[i],
                                           arith::FastMathFlags::nnan | arith::FastMathFlags::nsz);
    code.store(number, most, scratchAt(maximaAt), code.number(i));
  }
}

void AttentionKernel::emitValues(Elements &e, const Strip &strip) {
  Code &code = kernel.code();
  Values aRows;
  for (int64_t i = 0; i < strip.count; ++i)
    aRows.push_back(code.mul(kernel.dim(stripStride), code.number(i)));
  loop::Product product{number, number, scratchAt(stripAt), aRows, scratchAt(valuesAt), {}, {},
                        {},     8};
  product.length = kernel.dim(keys);
  foldScoped(e, code.number(0), kernel.dim(valuePanels.count()), {}, [&](Value panel, ValueRange) {
    product.bOffset = code.mul(panel, kernel.dim(keys * Dim(valuePanels.width)));
    auto sums = loop::emitProduct(code, {strip.count, valuePanels.vectors}, product);
    storeValues(e, strip, sums, code.mul(panel, code.number(valuePanels.width)));
    return Values();
  });
}

void AttentionKernel::storeValues(Elements &e, const Strip &strip, ArrayRef<Value> sums,
                                  Value firstColumn) {
  Code &code = kernel.code();
  Value values = parts.values.getResult();
  Indices place = batchPlace(e, values);
  place.append(2, Index());
  for (int64_t i = 0; i < strip.count; ++i) {
    Elements::Scope rowScope(e);
    Value factor;
    if (parts.dividesLast)
      factor = code.spread(code.load(number, scratchAt(sumsAt), code.number(i)));
    else
      bindNumber(e, parts.sum, scratchAt(sumsAt), code.number(i));
    place[place.size() - 2] = e.uniform(strip.rows[i]);
    for (int64_t j = 0; j < valuePanels.vectors; ++j) {
      Elements::Scope scope(e);
      Value column = code.add(firstColumn, code.number(j * code.lanes));
      e.mask = maskAt(e, valuePanels.columns, valuePanels.width, column);
      place.back() = {column, 1, {}};
      Value sum = sums[i * valuePanels.vectors + j];
      if (factor)
        sum = code.b.create<arith::MulFOp>(code.loc, sum, factor);
      sum = narrow(e, sum, graph::elementOf(values));
      e.bind(values, [sum](ArrayRef<Index>) { return sum; });
      Indices target = resultPlace(e, place);
      e.store(parts.result, e.at(parts.result, target), target);
      e.mask = {};
    }
  }
  e.unbind(values);
  e.unbind(parts.sum);
}

void AttentionKernel::emitStrip(Elements &e, Value first, int64_t count, bool clamp) {
  Elements::Scope scope(e);
  Strip strip{first, count, clamp, {}};
  for (int64_t i = 0; i < count; ++i)
    strip.rows.push_back(rowNumber(first, kernel.code().number(i), clamp));
  emitScores(e, strip);
  emitSoftmax(e, strip);
  emitValues(e, strip);
}

/// Constant sizes: equal strips, some of them a row longer. Else full strips and a clamped last
/// one, or a single row.
void AttentionKernel::emitTile(Elements &e, Value tile) {
  Code &code = kernel.code();
  auto strip = [&](Value first, int64_t count, bool clamp) {
    emitStrip(e, first, count, clamp);
    return Values();
  };
  if (auto known = queries.constant()) {
    int64_t count = *tiles.constant(), base = *known / count, larger = *known % count;
    Value first = code.add(code.mul(tile, code.number(base)), code.min(tile, code.number(larger)));
    if (larger == 0)
      strip(first, base, false);
    else
      code.choose(
          code.less(tile, code.number(larger)), TypeRange(),
          [&] { return strip(first, base + 1, false); }, [&] { return strip(first, base, false); });
    return;
  }
  Value first = code.mul(tile, code.number(stripRows));
  Value rest = code.sub(kernel.dim(queries), first);
  code.choose(
      code.less(rest, code.number(stripRows)), TypeRange(),
      [&] {
        return code.choose(
            code.less(code.number(1), rest), TypeRange(),
            [&] { return strip(first, stripRows, true); }, [&] { return strip(first, 1, false); });
      },
      [&] { return strip(first, stripRows, false); });
}

void AttentionKernel::emit() {
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  bool takesAll = tilesOfTask == tiles;
  Dim blocks = takesAll ? Dim(1) : tiles.ceilDiv(tilesOfTask);
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    batch = code.div(task, kernel.dim(blocks));
    Value first = code.mul(code.rem(task, kernel.dim(blocks)), kernel.dim(tilesOfTask));
    Value end = code.min(code.add(first, kernel.dim(tilesOfTask)), kernel.dim(tiles));
    Value right = parts.scores.getB();
    packPanels(e, keyPanels, right, operandBatch(e, parts.scores, right), scratchAt(Dim(0)));
    right = parts.values.getB();
    packPanels(e, valuePanels, right, operandBatch(e, parts.values, right), scratchAt(valuesAt));
    if (!queries.isConstant(0))
      foldScoped(e, first, end, {}, [&](Value tile, ValueRange) {
        emitTile(e, tile);
        return Values();
      });
  });
  Dim work = batches * queries * keys * (depth + valuePanels.columns);
  kernel.endPhase(batches * blocks, work.floorDiv(Dim(kernel.machine.lanes)),
                  scratchEnd * Dim(graph::bytesOf(number)));
}

LogicalResult emitAttention(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  AttentionKernel attention(kernel, group, schedule);
  if (failed(attention.prepare()))
    return failure();
  attention.emit();
  return success();
}

} // namespace heddle::lower
