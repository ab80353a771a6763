// Layout: which strips, panels and buffers an attention takes.

#include "compiler/lower/attention/Layout.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Typical.h"

using namespace mlir;

namespace heddle::lower {

LogicalResult AttentionLayout::read() {
  std::string why;
  auto read = mechanism::readAttention(mechanism::opsOf(*group), why);
  if (!read)
    return failure();
  parts = *read;
  number = factor = accumulatorType(graph::storageOf(parts.scores.getResult()));
  if (schedule.isShort && !isDirect) {
    factor = IntegerType::get(number.getContext(), 16);
    step = together = 2;
    hasMatrices = kernel.machine.hasMatrices &&
                  program::MultiplyMatricesOp::fits(schedule.knob("m", 0), schedule.knob("n", 0));
  }
  DimVector scores = graph::dimsOf(parts.scores.getResult());
  batches = graph::elementCount(batchDims(parts.scores.getResult()));
  queries = scores[scores.size() - 2];
  keys = scores.back();
  depth = graph::dimsOf(parts.scores.getA()).back();
  return success();
}

int64_t AttentionLayout::mostDirect() {
  Value keysOf = parts.scores.getB(), valuesOf = parts.values.getB();
  bool isPlain = isRead(group, keysOf) && isRead(group, valuesOf) && isTransposed(group, keysOf) &&
                 !isTransposed(group, valuesOf);
  // Open queries may be few, whatever the precision of many is.
  bool isExact = together == 1 || (hasMatrices && !queries.constant());
  return isPlain && isExact ? estimate::thresholdAt(parts.values, estimate::kAttentionDirect) : 0;
}

int64_t AttentionLayout::stripsTogether() {
  if (isDirect)
    return std::max<int64_t>(1, mostDirect());
  int64_t most = estimate::thresholdAt(parts.values, estimate::kAttentionStrips);
  return hasMatrices ? std::min<int64_t>(most, 2) : most; // of many rows each
}

/// Tiles of whole registers, and panels of whole steps.
void AttentionLayout::chooseMatrixTiles() {
  int64_t lanes = kernel.machine.lanes;
  step = program::kMatrixSize * together;
  stripRows = schedule.knob("m", program::kMatrixSize);
  if (auto known = queries.constant(); known && *known <= program::kMatrixSize)
    stripRows = program::kMatrixSize;
  auto panels = [&](const Dim &rows, const Dim &columns) {
    auto known = columns.constant();
    int64_t width = known && *known <= program::kMatrixSize
                        ? program::kMatrixSize
                        : schedule.knob("n", program::kMatrixSize);
    int64_t vectors =
        llvm::divideCeil(std::min(width, std::max<int64_t>(1, known.value_or(width))), lanes);
    return Panels{rows, columns, vectors, width, number, together, step};
  };
  keyPanels = panels(depth, keys);
  valuePanels = panels(keys, graph::dimsOf(parts.values.getResult()).back());
}

void AttentionLayout::chooseTiles() {
  int64_t lanes = kernel.machine.lanes;
  int64_t wanted = wantedVectors(schedule, kernel.machine);
  stripRows = std::max<int64_t>(1, schedule.knob("m", 6));
  if (stripRows >= program::kMatrixSize) // else sums would go to memory and back
    stripRows = std::max<int64_t>(1, (kernel.machine.registers - 1) / wanted - 1);
  // Known rows: strips of one size that fits best.
  if (auto known = queries.constant(); known && *known > 0)
    stripRows = llvm::divideCeil(*known, llvm::divideCeil(*known, stripRows));
  auto panels = [&](const Dim &rows, const Dim &columns) {
    int64_t vectors = vectorsOf(columns, wanted, lanes);
    return Panels{rows, columns, vectors, vectors * lanes, number, together};
  };
  keyPanels = panels(depth, keys);
  valuePanels = panels(keys, graph::dimsOf(parts.values.getResult()).back());
  if (isDirect) { // lanes of keys, and all columns of values that registers hold the sums of
    constexpr int64_t kMostSums = 8;
    stripRows = 1;
    keyPanels.vectors = 1;
    keyPanels.width = lanes;
    valuePanels.vectors = vectorsOf(valuePanels.columns, kMostSums, lanes);
    valuePanels.width = valuePanels.vectors * lanes;
  }
}

void AttentionLayout::shareStrips() {
  strips = queries.ceilDiv(Dim(stripRows));
  // Few heads share their rows among workers; each task packs the keys for itself.
  int64_t tasks = estimate::thresholdAt(parts.values, estimate::kAttentionTasks);
  int64_t leastRows = estimate::thresholdAt(parts.values, estimate::kAttentionRows);
  Dim least(llvm::divideCeil(schedule.knob("rows", leastRows), stripRows));
  if (schedule.knobs.count("rows"))
    stripsOfTask = least;
  else if (graph::typicalSize(parts.values, batches, 1) >= tasks)
    stripsOfTask = strips;
  else
    stripsOfTask = Dim::max(least, strips.ceilDiv(Dim(tasks)));
}

void AttentionLayout::layOut(bool hasMasks) {
  if (hasMatrices)
    chooseMatrixTiles();
  else
    chooseTiles();
  shareStrips();
  Dim lanes(kernel.machine.lanes), rows(stripRows * stripsTogether());
  queryStride = hasMatrices ? depth.ceilDiv(Dim(step)) * Dim(program::kMatrixSize)
                            : depth.ceilDiv(lanes) * lanes;
  // Rows a little more than a power of two apart fall into different sets of the cache.
  stripStride = keyPanels.count() * Dim(keyPanels.width) + Dim(16);
  valuesAt = isDirect ? Dim(0) : keyPanels.elements();
  queriesAt = isDirect ? Dim(0) : valuesAt + valuePanels.elements();
  stripsAt = queriesAt + queryStride * rows;
  largestAt = stripsAt + stripStride * rows;
  partsAt = largestAt + lanes * rows;
  masksAt = partsAt + Dim(std::max(keyPanels.width, valuePanels.width)) * rows;
  sumsAt = masksAt + (hasMasks ? keyPanels.count() * lanes : Dim(0));
  scratchEnd = sumsAt + rows;
}

/// One while a head fits the L2, else as many as half of the L2 holds the scores of.
Value AttentionLayout::stripsOfSlab() {
  Code &code = kernel.code();
  int64_t half = kernel.machine.l2Bytes / 2, bytes = graph::bytesOf(number);
  Value packed = kernel.dim((keyPanels.elements() + valuePanels.elements()) * Dim(bytes));
  Value stripBytes = kernel.dim(stripStride * Dim(stripRows * bytes));
  Value many = code.max(code.div(code.number(half), stripBytes), code.number(2));
  return code.b.createOrFold<arith::SelectOp>(code.loc, code.less(code.number(half), packed),
                                              code.min(many, code.number(stripsTogether())),
                                              code.number(1));
}

Value AttentionLayout::scratchAt(const Dim &elements) {
  return kernel.code().at(kernel.scratch(), number, kernel.dim(elements));
}

TileProduct AttentionLayout::productOf(const Panels &panels, const Dim &panelsAt, const Dim &rowsAt,
                                       ArrayRef<Value> rows, Value panel) {
  Code &code = kernel.code();
  TileProduct product{factor, number, scratchAt(rowsAt), rows, scratchAt(panelsAt), {}, {}, {}, 8};
  product.depth = together;
  product.panelVectors = panels.vectors;
  product.length = kernel.dim(panels.rows);
  product.bOffset = code.mul(panel, kernel.dim(panels.stride() * Dim(together)));
  return product;
}

Indices AttentionLayout::batchPlace(Elements &e, Value tensor) {
  return indicesOf(e, batchDims(tensor), batch);
}

Indices AttentionLayout::placeOfRow(Elements &e, Value tensor, Value row) {
  Code &code = kernel.code();
  DimVector dims = graph::dimsOf(tensor);
  dims.pop_back();
  // Groups of queries may be rows of one product and batches elsewhere.
  if (dims.back() != queries)
    return indicesOf(e, dims, code.add(code.mul(batch, kernel.dim(queries)), row));
  Indices place = batchPlace(e, tensor);
  place.push_back(e.uniform(row));
  return place;
}

Value AttentionLayout::rowNumber(Value row) {
  Code &code = kernel.code();
  return code.min(row, code.sub(kernel.dim(queries), code.number(1)));
}

Value AttentionLayout::rowsOfSlab(const Slab &slab) {
  Code &code = kernel.code();
  Value rows = code.mul(slab.strips, code.number(stripRows));
  Value rest = code.sub(kernel.dim(queries), slab.first);
  if (hasMatrices)
    return code.min(rows, rest);
  if (queries.constant())
    return rows;
  Value isSingle = code.b.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, rest,
                                                      code.sub(rows, code.number(stripRows - 1)));
  return code.b.createOrFold<arith::SelectOp>(code.loc, isSingle, rest, rows);
}

} // namespace heddle::lower
