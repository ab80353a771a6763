// ShortRows: rows that are shorter than a vector, computed with their lanes along neighbouring
// rows.
//
// A task's rows are loaded one by one and turned in registers: then a reduction of all rows at once
// is one op per element, where reducing the lanes of each row would take log2(lanes) steps that
// wait for each other. Results of whole rows are turned back before they are stored.

#include "compiler/estimate/Thresholds.h"
#include "compiler/estimate/Traffic.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/pointwise/Squares.h"
#include "compiler/lower/rows/Rows.h"

using namespace mlir;

namespace heddle::lower {

/// Whether rows of the tensor can be turned.
static bool isTurnable(Value tensor) {
  return graph::storageOf(tensor).getIntOrFloatBitWidth() >= 8;
}

bool RowKernel::hasShortRows() const {
  constexpr int64_t kMostOps = 1024; // each is written once for each element of a row
  int64_t lanes = kernel.machine.lanes;
  auto length = full.back().constant();
  if (given || kept == 0 || full.size() != kept + 1 || lanes < 8 || !length || *length < 2 ||
      *length > lanes || *length * estimate::opsPerElement(group) > kMostOps)
    return false;
  if (auto rows = full[kept - 1].constant(); rows && *rows < lanes)
    return false;
  bool isFit = llvm::all_of(outputsOf(group), isTurnable);
  for (Operation &op : *group)
    isFit &= llvm::all_of(op.getOperands(), [&](Value operand) {
      return isComputedIn(group, operand) || isTurnable(operand);
    });
  return isFit;
}

void RowKernel::emitShortRows() {
  kernel.beginPhase();
  Code &code = kernel.code();
  Elements elements(kernel, group);
  int64_t length = *full.back().constant();
  int64_t elementsOfTask = estimate::thresholdAt(group->getParentOp(), estimate::kShortRowsTask);
  int64_t piece = llvm::divideCeil(elementsOfTask, length * code.lanes) * code.lanes;
  const Dim &extent = full[kept - 1];
  Dim outer = graph::elementCount(ArrayRef<Dim>(full).take_front(kept - 1));
  Dim pieces = extent.ceilDiv(Dim(piece));
  Value high = kernel.dim(extent);
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(elements);
    Value count = kernel.dim(pieces);
    Value low = code.mul(code.rem(task, count), code.number(piece));
    Value end = code.min(code.add(low, code.number(piece)), high);
    Indices place = placeOf(elements, code.mul(code.div(task, count), high));
    forLanes(elements, low, end, [&](Value row) {
      Indices start(place);
      start[kept - 1] = {row, 1, {}};
      emitShortRows(elements, start, elements.mask ? code.sub(end, row) : Value());
    });
  });
  Dim work = rowCount() * rowLength() * Dim(estimate::opsPerElement(group));
  kernel.endPhase(outer * pieces, work, Dim(0));
}

/// The passes over as many rows as there are lanes; `valid` of them, where that is not null.
void RowKernel::emitShortRows(Elements &e, Indices start, Value valid) {
  Code &code = kernel.code();
  SmallVector<Value> bound;
  for (Operation &op : *group)
    for (Value operand : op.getOperands()) {
      Operation *source = operand.getDefiningOp();
      bool isRead = !source || (source->getBlock() != group && !isa<graph::ConstantOp>(source));
      if (isRead && graph::dimsOf(operand) == full && !llvm::is_contained(bound, operand)) {
        bindColumns(e, operand, start);
        bound.push_back(operand);
      }
    }
  SmallVector<Indices> columns(*full.back().constant(), start);
  for (auto [j, column] : llvm::enumerate(columns))
    column.back() = e.uniform(code.number(j));
  for (Operation *reduction : reductions) {
    Type element = graph::storageOf(reduction->getOperand(0));
    Type accumulator = accumulatorType(element);
    Value total;
    for (const Indices &column : columns) {
      Value value = code.spread(widen(e, e.at(reduction->getOperand(0), column), accumulator));
      total = combine(code, reduction,
                      total ? total : code.spread(neutral(code, reduction, accumulator)), value);
    }
    Value result = narrow(e, total, element);
    e.bind(reduction->getResult(0), [result](ArrayRef<Index>) { return result; });
    bound.push_back(reduction->getResult(0));
    if (Value shares = bindShares(e, reduction, result))
      bound.push_back(shares);
  }
  for (Value output : outputsOf(group)) {
    if (!isRowValue(output)) {
      storeColumns(e, output, columns, valid);
      continue;
    }
    Indices place(start);
    place.resize(graph::rankOf(output), e.uniform(code.number(0)));
    e.store(output, code.spread(e.at(output, place)), place);
  }
  for (Value value : bound)
    e.unbind(value);
}

/// Loads rows of the tensor and binds it to their columns. Lanes without a row show the last one.
void RowKernel::bindColumns(Elements &e, Value tensor, const Indices &start) {
  Code &code = kernel.code();
  Value before = e.mask, last = code.sub(kernel.dim(full[kept - 1]), code.number(1));
  int64_t length = *full.back().constant();
  e.mask = length < code.lanes ? code.maskOf(code.number(length)) : Value();
  Values rows;
  for (int64_t lane = 0; lane < code.lanes; ++lane) {
    Indices row(start);
    row[kept - 1] = e.uniform(code.min(code.add(start[kept - 1].base, code.number(lane)), last));
    row.back() = {code.number(0), 1, {}};
    rows.push_back(e.at(tensor, row));
  }
  e.mask = before;
  e.bind(tensor, [this, &e, tensor, columns = columnsOf(code, rows)](ArrayRef<Index> place) {
    auto column = place.back().isUniform() ? Code::constant(place.back().base) : std::nullopt;
    if (column && place[kept - 1].step == 1)
      return columns[*column];
    return e.read(graph::storageOf(tensor), kernel.pointer(tensor), e.sizesOf(tensor), place);
  });
}

void RowKernel::storeColumns(Elements &e, Value output, ArrayRef<Indices> columns, Value valid) {
  Code &code = kernel.code();
  Values values;
  for (const Indices &column : columns)
    values.push_back(code.spread(e.at(output, column)));
  values.resize(code.lanes, values.front()); // any: what they become is not stored
  Value before = e.mask;
  e.mask =
      (int64_t)columns.size() < code.lanes ? code.maskOf(code.number(columns.size())) : Value();
  for (auto [lane, row] : llvm::enumerate(columnsOf(code, values))) {
    Value number = code.number(lane);
    Indices place(columns.front());
    place[kept - 1] = e.uniform(code.add(place[kept - 1].base, number));
    place.back() = {code.number(0), 1, {}};
    auto store = [&, row = row] { e.store(output, row, place); };
    if (valid)
      code.when(code.less(number, valid), store);
    else
      store();
  }
  e.mask = before;
}

} // namespace heddle::lower
