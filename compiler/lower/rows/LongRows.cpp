// LongRows: fewer rows than workers, but long ones: each is shared out in pieces.
//
// A pass of reductions is a phase of its own, in which a task reduces a piece of a row; whoever
// wants the whole reduces what the pieces came to. What a pass computes is computed again by the
// next one, not kept: a row is longer than a worker's caches.

#include "compiler/estimate/Thresholds.h"
#include "compiler/estimate/Traffic.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/rows/Rows.h"

using namespace mlir;

namespace heddle::lower {

/// The threshold where the group is.
static int64_t thresholdOf(Block *group, const estimate::Threshold &threshold) {
  return estimate::thresholdAt(group->getParentOp(), threshold);
}

static int64_t piecesOf(const KernelBuilder &kernel, Block *group) {
  return thresholdOf(group, estimate::kLongRowPieces) * kernel.machine.workers;
}

std::optional<size_t> RowKernel::axisOfPieces() const {
  auto rows = rowCount().constant(), length = rowLength().constant();
  if (given || !rows || !length || *rows >= kernel.machine.workers ||
      *length < thresholdOf(group, estimate::kLongRow))
    return std::nullopt;
  for (Operation *reduction : reductions)
    if (graph::storageOf(reduction->getOperand(0)).getIntOrFloatBitWidth() < 8)
      return std::nullopt;
  for (size_t axis = kept; axis < full.size(); ++axis) {
    int64_t each = axis + 1 < full.size() ? 2 : thresholdOf(group, estimate::kLongRowPiece);
    if (*full[axis].constant() / each >= piecesOf(kernel, group))
      return axis;
  }
  return std::nullopt;
}

/// A phase with a task for each piece of each row.
void RowKernel::emitPieces(
    size_t axis, const Dim &work,
    llvm::function_ref<void(Elements &e, const Indices &start, Value task)> body) {
  kernel.beginPhase();
  Code &code = kernel.code();
  Elements elements(kernel, group);
  int64_t extent = *full[axis].constant(), count = piecesOf(kernel, group);
  int64_t step = axis + 1 < full.size() ? 1 : code.lanes;
  int64_t size = llvm::divideCeil(extent, count * step) * step;
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(elements);
    Value row = code.div(task, code.number(count));
    Value low = code.mul(code.rem(task, code.number(count)), code.number(size));
    Value high = code.min(code.add(low, code.number(size)), code.number(extent));
    piece = Piece{axis, code.min(low, high), high};
    body(elements, placeOf(elements, row), task);
    piece.reset();
  });
  kernel.endPhase(rowCount() * Dim(count), work);
}

/// Binds the first reductions to what the pieces of a row came to, which these temporaries hold.
void RowKernel::bindTotals(Elements &e, ArrayRef<int64_t> totals, Value task) {
  Code &code = kernel.code();
  int64_t count = piecesOf(kernel, group);
  Value first = code.mul(code.div(task, code.number(count)), code.number(count));
  for (auto [temporary, reduction] : llvm::zip(totals, reductions)) {
    Type element = graph::storageOf(reduction->getOperand(0)), type = accumulatorType(element);
    Value total;
    for (int64_t i = 0; i < count; ++i) {
      Value part = code.load(type, kernel.temporary(temporary), code.add(first, code.number(i)));
      total = total ? combine(code, reduction, total, part) : part;
    }
    Value result = narrow(e, total, element);
    e.bind(reduction->getResult(0), [result](ArrayRef<Index>) { return result; });
    bindShares(e, reduction, result);
  }
}

void RowKernel::emitLongRows(size_t axis) {
  SmallVector<int64_t> totals;
  Dim work = rowCount() * rowLength() * Dim(estimate::opsPerElement(group));
  for (ArrayRef<Operation *> pass : passes()) {
    SmallVector<int64_t> temporaries;
    for (Operation *reduction : pass) {
      Type type = accumulatorType(graph::storageOf(reduction->getOperand(0)));
      int64_t bytes = llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
      temporaries.push_back(kernel.addTemporary(rowCount() * Dim(piecesOf(kernel, group) * bytes)));
    }
    emitPieces(axis, work, [&](Elements &e, const Indices &start, Value task) {
      bindTotals(e, totals, task);
      for (auto [temporary, total] : llvm::zip(temporaries, reduce(e, start, pass)))
        e.code().store(total.getType(), total, kernel.temporary(temporary), task);
    });
    llvm::append_range(totals, temporaries);
  }
  bool isWide = llvm::any_of(outputsOf(group), [&](Value output) { return !isRowValue(output); });
  emitPieces(axis, isWide ? work : rowCount(), [&](Elements &e, const Indices &start, Value task) {
    bindTotals(e, totals, task);
    emitOutputs(e, start);
  });
}

} // namespace heddle::lower
