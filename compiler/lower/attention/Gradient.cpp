// Gradient: an attention's gradient as one kernel, as FlashAttention computes it (Dao et al.,
// NeurIPS 2022, appendix B.2).
//
// A task is a batch (head). It takes a few rows of queries at a time (a slab): products give their
// scores, which go through all passes over their rows in the worker's scratch, and what becomes of
// them is the left operand of the products after them. Those of queries are complete with the
// slab's rows; those of keys and values are sums over all slabs, which wait in the scratch too.

#include "compiler/mechanism/attention/Gradient.h"
#include "compiler/graph/Typical.h"
#include "compiler/lower/attention/Operands.h"
#include "compiler/lower/contraction/Microkernel.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/rows/Rows.h"

using namespace mlir;

namespace heddle::lower {

namespace {
class AttentionGradientKernel {
public:
  AttentionGradientKernel(KernelBuilder &kernel, Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule), rows(kernel, group) {}

  LogicalResult prepare();
  void emit();

private:
  /// A product that makes scores: its right operand in panels, rows of its left one.
  struct Scores {
    graph::MatmulOp product;
    Panels panels;
    Dim panelsAt, rowsAt, rowStride;
    Dim depth() const { return panels.rows; }
  };
  /// A product that takes weights. Where it sums up queries, the panels are rows of a slab.
  struct Sum {
    mechanism::WeightProduct parts;
    Panels panels;
    Dim panelsAt, sumsAt;
    Dim stride() const { return panels.count() * Dim(panels.width); } // of sums
  };
  /// Rows of queries: number `first` and `count` of them.
  struct Slab {
    Value first, count, strips;
  };
  /// Keys [low, high) that have weights.
  struct Keys {
    Value low, high;
  };

  void chooseTiles();
  void layOutScratch();
  int64_t slabRows(int64_t queryRows, const Dim &bytesOfRow);

  void emitSlab(Elements &e, const Slab &slab);
  void copyQueries(Elements &e, Scores &scores, const Slab &slab);
  void emitScores(Elements &e, Scores &scores, size_t number, const Slab &slab);
  void emitRows(Elements &e, const Slab &slab);
  Value areFinite(const Dim &offset, const Dim &elements);
  Keys weighedKeys(Elements &e, const Slab &slab);
  void emitQuerySums(Elements &e, Sum &sum, const Slab &slab, const Keys &seen);
  void packRows(Elements &e, Sum &sum, const Slab &slab);
  void addKeySums(Elements &e, Sum &sum, const Slab &slab, const Keys &seen);
  void clearKeySums(Elements &e, Sum &sum);
  void storeKeySums(Elements &e, Sum &sum);
  void storeSum(Elements &e, Sum &sum, Value value, Indices place);

  /// Tiles of all panels by the strips [first, end).
  void forEachTile(Elements &e, const Panels &panels, Value first, Value end,
                   llvm::function_ref<void(Value panel, Value strip)> body);
  Values rowOffsets(Value strip, int64_t count, const Dim &stride);
  Indices placeOf(const mechanism::WeightProduct &parts, Index row, Index column) const;
  Dim bufferOf(size_t number) const { return buffersAt + Dim(number) * bufferSize; }
  Dim bufferOf(Value weights) const;
  Value scratchAt(const Dim &elements) {
    return kernel.code().at(kernel.scratch(), number, kernel.dim(elements));
  }

  KernelBuilder &kernel;
  Block *group;
  const Schedule &schedule;
  RowKernel rows;
  mechanism::AttentionGradientParts parts;
  SmallVector<Value> weights; // buffer i has scores[i] first and weights[i] in the end
  std::vector<Scores> scores;
  std::vector<Sum> sums;
  Type number; // that all is computed in
  Dim batches, queries, keys;
  int64_t queryRows = 6, keyRows = 6, rowsOfSlab = 6; // of a register tile twice, and of a slab
  Dim keyStrips;
  Dim buffersAt, bufferStride, bufferSize, scratchEnd; // in elements
  Indices batch;                                       // of the task
  Value areKeysFinite;                                 // what weights of keys are multiplied by
  Value rowAt; // of the row that is computed, in each buffer
};
} // namespace

LogicalResult AttentionGradientKernel::prepare() {
  std::string why;
  auto read = mechanism::readAttentionGradient(mechanism::opsOf(*group), why);
  if (!read)
    return failure();
  parts = std::move(*read);
  weights = parts.weights();
  if (failed(rows.prepare(parts.between, weights)))
    return failure();
  number = accumulatorType(graph::storageOf(parts.scores.front().getResult()));
  ArrayRef<Dim> full = parts.rows.full;
  batches = graph::elementCount(full.drop_back(2));
  queries = full[full.size() - 2];
  keys = full.back();
  chooseTiles();
  layOutScratch();
  return success();
}

/// Strips of one size that fits best, where the number of rows is known.
static int64_t evenRows(const Dim &all, int64_t wanted) {
  auto known = all.constant();
  return known && *known > 0 ? llvm::divideCeil(*known, llvm::divideCeil(*known, wanted)) : wanted;
}

void AttentionGradientKernel::chooseTiles() {
  int64_t lanes = kernel.machine.lanes, wanted = wantedVectors(schedule, kernel.machine);
  int64_t stripRows = std::max<int64_t>(1, schedule.knob("m", 6));
  queryRows = evenRows(queries, stripRows);
  keyRows = evenRows(keys, stripRows);
  keyStrips = keys.ceilDiv(Dim(keyRows));
  auto panelsOf = [&](const Dim &panelRows, const Dim &columns) {
    int64_t vectors = vectorsOf(columns, wanted, lanes);
    return Panels{panelRows, columns, vectors, vectors * lanes, number};
  };
  for (graph::MatmulOp product : parts.scores)
    scores.push_back({product, panelsOf(graph::dimsOf(product.getA()).back(), keys), {}, {}, {}});
  Dim widest = keyStrips * Dim(keyRows);
  for (Scores &each : scores)
    widest = Dim::max(widest, each.panels.count() * Dim(each.panels.width));
  // Rows a little more than a power of two apart fall into different sets of the cache.
  bufferStride = widest + Dim(16);
  Dim buffers(std::max(scores.size(), weights.size()));
  rowsOfSlab = slabRows(queryRows, buffers * bufferStride * Dim(graph::bytesOf(number)));
  for (mechanism::WeightProduct &sum : parts.sums) {
    DimVector dims = graph::dimsOf(sum.product.getResult());
    bool isRight = sum.side == mechanism::WeightProduct::Side::Right;
    Dim columns = isRight ? dims[dims.size() - 2] : dims.back();
    sums.push_back({sum, panelsOf(sum.sumsQueries() ? Dim(rowsOfSlab) : keys, columns), {}, {}});
  }
}

/// Rows whose scores a quarter of the L2 holds, whole strips.
int64_t AttentionGradientKernel::slabRows(int64_t stripRows, const Dim &bytesOfRow) {
  int64_t bytes = std::max<int64_t>(1, graph::typicalSize(group->getParentOp(), bytesOfRow));
  int64_t fitting = std::min<int64_t>(kernel.machine.l2Bytes / 4 / bytes, 64);
  int64_t wanted = schedule.knob("rows", 0) > 0 ? schedule.knob("rows", 0) : fitting;
  if (auto known = queries.constant())
    wanted = std::min(wanted, *known);
  return std::max<int64_t>(1, llvm::divideCeil(wanted, stripRows)) * stripRows;
}

void AttentionGradientKernel::layOutScratch() {
  Dim lanes(kernel.machine.lanes), slab(rowsOfSlab), end(0);
  auto take = [&](const Dim &elements) {
    Dim begin = end;
    end = end + elements.ceilDiv(Dim(16)) * Dim(16);
    return begin;
  };
  for (Scores &each : scores) {
    each.rowStride = each.depth().ceilDiv(lanes) * lanes;
    each.panelsAt = take(each.panels.elements());
    each.rowsAt = take(each.rowStride * slab);
  }
  for (Sum &sum : sums) {
    sum.panelsAt = take(sum.panels.elements());
    if (sum.parts.sumsQueries())
      sum.sumsAt = take(sum.stride() * keyStrips * Dim(keyRows));
  }
  bufferSize = bufferStride * slab;
  buffersAt = take(bufferSize * Dim(std::max(scores.size(), weights.size())));
  scratchEnd = end;
  rows.scratchBegin = end * Dim(graph::bytesOf(number));
}

Dim AttentionGradientKernel::bufferOf(Value value) const {
  return bufferOf(llvm::find(weights, value) - weights.begin());
}

void AttentionGradientKernel::forEachTile(Elements &e, const Panels &panels, Value first, Value end,
                                          llvm::function_ref<void(Value, Value)> body) {
  Code &code = kernel.code();
  foldScoped(e, code.number(0), kernel.dim(panels.count()), {}, [&](Value panel, ValueRange) {
    foldScoped(e, first, end, {}, [&](Value strip, ValueRange) {
      body(panel, strip);
      return Values();
    });
    return Values();
  });
}

/// Offsets of a strip's rows in a buffer of the scratch.
Values AttentionGradientKernel::rowOffsets(Value strip, int64_t count, const Dim &stride) {
  Code &code = kernel.code();
  Values offsets;
  for (int64_t i = 0; i < count; ++i)
    offsets.push_back(code.mul(code.add(code.mul(strip, code.number(count)), code.number(i)),
                               kernel.dim(stride)));
  return offsets;
}

void AttentionGradientKernel::copyQueries(Elements &e, Scores &each, const Slab &slab) {
  Code &code = kernel.code();
  Value left = each.product.getA(), last = code.sub(kernel.dim(queries), code.number(1));
  Indices place = operandBatch(e, each.product, left, batch);
  foldScoped(e, code.number(0), slab.strips, {}, [&](Value strip, ValueRange) {
    Values numbers; // past the last row it repeats
    for (int64_t i = 0; i < queryRows; ++i) {
      Value row = code.add(code.mul(strip, code.number(queryRows)), code.number(i));
      numbers.push_back(code.min(code.add(slab.first, row), last));
    }
    copyRows(e, left, place, numbers, each.panels, scratchAt(each.rowsAt),
             rowOffsets(strip, queryRows, each.rowStride));
    return Values();
  });
}

void AttentionGradientKernel::emitScores(Elements &e, Scores &each, size_t buffer,
                                         const Slab &slab) {
  Code &code = kernel.code();
  const Panels &panels = each.panels;
  Type element = graph::storageOf(each.product.getResult());
  forEachTile(e, panels, code.number(0), slab.strips, [&](Value panel, Value strip) {
    Values aRows = rowOffsets(strip, queryRows, each.rowStride);
    Values targets = rowOffsets(strip, queryRows, bufferStride);
    TileProduct product{
        number, number, scratchAt(each.rowsAt), aRows, scratchAt(each.panelsAt), {}, {}, {}, 8};
    product.length = kernel.dim(each.depth());
    product.bOffset = code.mul(panel, kernel.dim(each.depth() * Dim(panels.width)));
    auto tile = emitProduct(code, {queryRows, panels.vectors}, product);
    Value column = code.mul(panel, code.number(panels.width));
    for (int64_t i = 0; i < queryRows * panels.vectors; ++i) {
      Value at = code.add(code.add(targets[i / panels.vectors], column),
                          code.number(i % panels.vectors * code.lanes));
      code.storeLanes(number, widen(e, narrow(e, tile[i], element), number),
                      scratchAt(bufferOf(buffer)), at, {});
    }
  });
}

/// All passes over the slab's rows; the weights take the place of the scores.
void AttentionGradientKernel::emitRows(Elements &e, const Slab &slab) {
  Code &code = kernel.code();
  foldScoped(e, code.number(0), slab.count, {}, [&](Value row, ValueRange) {
    Indices start = batch;
    start.push_back(e.uniform(code.add(slab.first, row)));
    start.push_back(e.uniform(code.number(0)));
    rowAt = code.mul(row, kernel.dim(bufferStride));
    for (auto [i, each] : llvm::enumerate(scores)) {
      Value memory = code.at(scratchAt(bufferOf(i)), number, rowAt);
      Value tensor = each.product.getResult();
      e.bind(tensor, [this, &e, memory, tensor](ArrayRef<Index> place) {
        Value value = e.code().loadLanes(number, memory, place.back().base, e.mask);
        return narrow(e, value, graph::storageOf(tensor));
      });
    }
    rows.emitRow(e, start);
    for (Scores &each : scores)
      e.unbind(each.product.getResult());
    return Values();
  });
}

void AttentionGradientKernel::emitQuerySums(Elements &e, Sum &sum, const Slab &slab,
                                            const Keys &seen) {
  Code &code = kernel.code();
  const Panels &panels = sum.panels;
  forEachTile(e, panels, code.number(0), slab.strips, [&](Value panel, Value strip) {
    Values aRows = rowOffsets(strip, queryRows, bufferStride);
    TileProduct product{number,
                        number,
                        scratchAt(bufferOf(sum.parts.weights)),
                        aRows,
                        scratchAt(sum.panelsAt),
                        {},
                        {},
                        {},
                        8};
    for (Value &row : aRows)
      row = code.add(row, seen.low);
    product.aRows = aRows;
    product.length = code.sub(seen.high, seen.low);
    product.bOffset =
        code.mul(code.add(code.mul(panel, kernel.dim(keys)), seen.low), code.number(panels.width));
    auto tile = emitProduct(code, {queryRows, panels.vectors}, product);
    for (int64_t i = 0; i < queryRows; ++i) {
      Value row = code.add(code.mul(strip, code.number(queryRows)), code.number(i));
      // The rows of the last strip that repeat were not computed.
      code.when(code.less(row, slab.count), [&] {
        Index query = e.uniform(code.add(slab.first, row));
        for (int64_t j = 0; j < panels.vectors; ++j) {
          Elements::Scope scope(e);
          Value column =
              code.add(code.mul(panel, code.number(panels.width)), code.number(j * code.lanes));
          e.mask = maskOfColumns(e, panels.columns, panels.width, column);
          Value value = tile[i * panels.vectors + j];
          storeSum(e, sum, value, placeOf(sum.parts, query, {column, 1, {}}));
          e.mask = {};
        }
      });
    }
  });
}

/// Place of a row and column of the sums, in the matrix of a result or of the other operand.
Indices AttentionGradientKernel::placeOf(const mechanism::WeightProduct &sum, Index row,
                                         Index column) const {
  Indices place = batch;
  if (sum.side == mechanism::WeightProduct::Side::Right)
    std::swap(row, column);
  place.push_back(row);
  place.push_back(column);
  return place;
}

void AttentionGradientKernel::storeSum(Elements &e, Sum &sum, Value value, Indices place) {
  Value product = sum.parts.product.getResult(), result = sum.parts.result;
  value = narrow(e, value, graph::storageOf(product));
  e.bind(product, [value](ArrayRef<Index>) { return value; });
  Indices target = placeAfterMoves(e, sum.parts.moves, place);
  e.store(result, e.at(result, target), target);
  e.unbind(product);
}

/// The rows of the slab of what the weights are multiplied by.
void AttentionGradientKernel::packRows(Elements &e, Sum &sum, const Slab &slab) {
  Code &code = kernel.code();
  const Panels &panels = sum.panels;
  Value other = sum.parts.other, target = scratchAt(sum.panelsAt);
  Indices matrix = operandBatch(e, sum.parts.product, other, batch);
  forEachTile(e, panels, code.number(0), slab.count, [&](Value panel, Value row) {
    Value start = code.mul(code.add(code.mul(panel, kernel.dim(panels.rows)), row),
                           code.number(panels.width));
    for (int64_t j = 0; j < panels.vectors; ++j) {
      Elements::Scope scope(e);
      Value shift = code.number(j * code.lanes);
      Index column{code.add(code.mul(panel, code.number(panels.width)), shift), 1, {}};
      Index query = e.uniform(code.add(slab.first, row));
      Indices place = placeOf(sum.parts, query, column);
      std::copy(matrix.begin(), matrix.end(), place.begin());
      e.mask = maskOfColumns(e, panels.columns, panels.width, column.base);
      Value value = code.spread(widen(e, e.at(other, place), number));
      code.storeLanes(number, value, target, code.add(start, shift), {});
      e.mask = {};
    }
  });
}

/// Weights of the slab, transposed, times the slab's rows, to the sums of earlier slabs.
void AttentionGradientKernel::addKeySums(Elements &e, Sum &sum, const Slab &slab,
                                         const Keys &seen) {
  Code &code = kernel.code();
  const Panels &panels = sum.panels;
  Value first = code.div(seen.low, code.number(keyRows)), end = code.ceilDiv(seen.high, keyRows);
  forEachTile(e, panels, first, end, [&](Value panel, Value strip) {
    Values aRows, sumRows = rowOffsets(strip, keyRows, sum.stride());
    for (int64_t i = 0; i < keyRows; ++i)
      aRows.push_back(code.add(code.mul(strip, code.number(keyRows)), code.number(i)));
    Value column = code.mul(panel, code.number(panels.width)), memory = scratchAt(sum.sumsAt);
    auto at = [&](int64_t i) {
      return code.add(code.add(sumRows[i / panels.vectors], column),
                      code.number(i % panels.vectors * code.lanes));
    };
    TileProduct product{
        number, number, scratchAt(bufferOf(sum.parts.weights)), aRows, scratchAt(sum.panelsAt), {},
        {},     {}};
    product.bOffset = code.mul(panel, kernel.dim(panels.rows * Dim(panels.width)));
    product.pieces = {{slab.count, kernel.dim(bufferStride)}}; // a query each
    product.length = code.number(1);
    for (int64_t i = 0; i < keyRows * panels.vectors; ++i)
      product.start.push_back(code.loadLanes(number, memory, at(i), {}));
    auto tile = emitProduct(code, {keyRows, panels.vectors}, product);
    for (int64_t i = 0; i < keyRows * panels.vectors; ++i)
      code.storeLanes(number, tile[i], memory, at(i), {});
  });
}

void AttentionGradientKernel::clearKeySums(Elements &e, Sum &sum) {
  Code &code = kernel.code();
  Value zero = code.spread(code.constantOf(number, 0)), memory = scratchAt(sum.sumsAt);
  Value end = kernel.dim(sum.stride() * keyStrips * Dim(keyRows)); // whole vectors
  code.forEach(code.number(0), end, code.lanes,
               [&](Value i) { code.storeLanes(number, zero, memory, i, {}); });
}

void AttentionGradientKernel::storeKeySums(Elements &e, Sum &sum) {
  Code &code = kernel.code();
  Value memory = scratchAt(sum.sumsAt);
  foldScoped(e, code.number(0), kernel.dim(keys), {}, [&](Value key, ValueRange) {
    Value row = code.mul(key, kernel.dim(sum.stride()));
    forLanes(e, code.number(0), kernel.dim(sum.panels.columns), [&](Value column) {
      Value value = code.loadLanes(number, memory, code.add(row, column), {});
      storeSum(e, sum, value, placeOf(sum.parts, e.uniform(key), {column, 1, {}}));
    });
    return Values();
  });
}

/// Whether numbers in the scratch are; some beyond what was written there may be among them, and
/// are none.
Value AttentionGradientKernel::areFinite(const Dim &offset, const Dim &elements) {
  Code &code = kernel.code();
  Value zero = code.spread(code.constantOf(number, 0)), memory = scratchAt(offset);
  Value sum = code.fold(code.number(0), kernel.dim(elements), code.lanes, zero,
                        [&](Value i, ValueRange in) {
                          Value value = code.loadLanes(number, memory, i, {});
                          return Values{code.b.create<math::FmaOp>(code.loc, value, zero, in[0])};
                        })[0];
  sum = code.b.create<vector::ReductionOp>(code.loc, vector::CombiningKind::ADD, sum);
  return code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OEQ, sum,
                                      code.constantOf(number, 0));
}

/// Keys from the first to the last one that has a weight other than 0, whole vectors; all if that
/// may not be asked.
AttentionGradientKernel::Keys AttentionGradientKernel::weighedKeys(Elements &e, const Slab &slab) {
  Code &code = kernel.code();
  Value all = kernel.dim(keys), none = code.number(0), isFinite = areKeysFinite;
  for (Sum &sum : sums)
    if (sum.parts.sumsQueries())
      isFinite = code.both(isFinite, areFinite(sum.panelsAt, sum.panels.elements()));
  Type integer = code.b.getIntegerType(number.getIntOrFloatBitWidth());
  Value noBits = code.spread(code.integerOf(integer, 0));
  auto visit = [&](Value vector, ValueRange range) {
    Value column = code.mul(vector, code.number(code.lanes));
    Value mask = maskOfColumns(e, keys, code.lanes, column);
    Value bits = foldScoped(e, none, slab.count, noBits, [&](Value row, ValueRange in) {
      Value any = in[0], at = code.add(code.mul(row, kernel.dim(bufferStride)), column);
      for (Value weight : weights) {
        Value value = code.loadLanes(number, scratchAt(bufferOf(weight)), at, mask);
        value = code.b.create<arith::BitcastOp>(code.loc, any.getType(), value);
        value = code.b.create<arith::AddIOp>(code.loc, value, value); // without the sign
        any = code.b.create<arith::OrIOp>(code.loc, any, value);
      }
      return Values{any};
    })[0];
    bits = code.b.create<vector::ReductionOp>(code.loc, vector::CombiningKind::OR, bits);
    Value isWeighed = code.b.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ne, bits,
                                                   code.integerOf(integer, 0));
    Value end = code.min(code.add(column, code.number(code.lanes)), all);
    auto choice = [&](Value yes, Value no) -> Value {
      return code.b.create<arith::SelectOp>(code.loc, isWeighed, yes, no);
    };
    return Values{choice(code.min(range[0], column), range[0]), choice(end, range[1])};
  };
  Type i64 = code.b.getI64Type();
  Values range = code.choose(
      isFinite, {i64, i64},
      [&] { return foldScoped(e, none, code.ceilDiv(all, code.lanes), {all, none}, visit); },
      [&] { return Values{none, all}; });
  return {code.min(range[0], range[1]), range[1]};
}

void AttentionGradientKernel::emitSlab(Elements &e, const Slab &slab) {
  for (auto [i, each] : llvm::enumerate(scores)) {
    copyQueries(e, each, slab);
    emitScores(e, each, i, slab);
  }
  emitRows(e, slab);
  for (Sum &sum : sums)
    if (sum.parts.sumsQueries())
      packRows(e, sum, slab);
  Keys seen = weighedKeys(e, slab);
  for (Sum &sum : sums)
    if (sum.parts.sumsQueries())
      addKeySums(e, sum, slab, seen);
    else
      emitQuerySums(e, sum, slab, seen);
}

void AttentionGradientKernel::emit() {
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  rows.store = [&](Elements &e, Value result, Value value, ArrayRef<Index> place) {
    Value memory = e.code().at(scratchAt(bufferOf(result)), number, rowAt);
    e.code().storeLanes(number, e.code().spread(widen(e, value, number)), memory, place.back().base,
                        e.mask);
  };
  DimVector outer = batchDims(parts.scores.front().getResult());
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    batch = indicesOf(e, outer, task);
    for (Scores &each : scores)
      packPanels(e, each.panels, each.product.getB(),
                 operandBatch(e, each.product, each.product.getB(), batch),
                 scratchAt(each.panelsAt));
    areKeysFinite = {};
    for (Sum &sum : sums) {
      if (sum.parts.sumsQueries()) {
        clearKeySums(e, sum);
        continue;
      }
      packPanels(e, sum.panels, sum.parts.other,
                 operandBatch(e, sum.parts.product, sum.parts.other, batch),
                 scratchAt(sum.panelsAt));
      areKeysFinite = code.both(areKeysFinite, areFinite(sum.panelsAt, sum.panels.elements()));
    }
    Value slabs = code.ceilDiv(kernel.dim(queries), rowsOfSlab);
    foldScoped(e, code.number(0), slabs, {}, [&](Value slab, ValueRange) {
      Value first = code.mul(slab, code.number(rowsOfSlab));
      Value count = code.min(code.number(rowsOfSlab), code.sub(kernel.dim(queries), first));
      emitSlab(e, {first, count, code.ceilDiv(count, queryRows)});
      return Values();
    });
    for (Sum &sum : sums)
      if (sum.parts.sumsQueries())
        storeKeySums(e, sum);
  });
  Dim columns(0);
  for (Scores &each : scores)
    columns = columns + each.depth();
  for (Sum &sum : sums)
    columns = columns + sum.panels.columns;
  Dim work = batches * queries * keys * columns;
  kernel.endPhase(batches, work.floorDiv(Dim(kernel.machine.lanes)),
                  rows.scratchBegin + rows.scratchBytes());
}

LogicalResult emitAttentionGradient(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  return carryOut<AttentionGradientKernel>(kernel, group, schedule);
}

} // namespace heddle::lower
