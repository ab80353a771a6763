// Shapes: rows of a reduction, and parts of a last dimension.

#include "compiler/mechanism/Shapes.h"

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

using graph::Dim;
using graph::DimVector;

bool isRowShape(ArrayRef<Dim> dims, ArrayRef<Dim> rows, size_t axes) {
  size_t kept = rows.size() - axes;
  if (dims.size() != rows.size() && dims.size() != kept)
    return false;
  for (size_t i = 0; i < dims.size(); ++i)
    if (i < kept ? dims[i] != rows[i] : !dims[i].isConstant(1))
      return false;
  return true;
}

bool staysInRow(Value value, ArrayRef<Dim> rows, size_t axes) {
  auto kept = rows.drop_back(axes);
  bool isOnlyRow = llvm::all_of(kept, [](const Dim &dim) { return dim.isConstant(1); });
  llvm::SetVector<Value> made;
  made.insert(value);
  for (size_t next = 0; next < made.size(); ++next) {
    Value each = made[next];
    if (!isRowShape(graph::dimsOf(each), rows, axes))
      return false;
    bool isWhole = graph::rankOf(each) == (int64_t)rows.size();
    for (Operation *user : each.getUsers()) {
      if (isa<graph::BroadcastOp>(user) && !isOnlyRow && !isWhole)
        return false;
      if (graph::isElementwise(user) || isa<graph::ReshapeOp>(user))
        made.insert(user->getResult(0));
    }
  }
  return true;
}

std::optional<Rows> readRows(ArrayRef<Operation *> ops, ValueRange results, std::string &why) {
  Rows rows;
  auto no = [&](const Twine &text) {
    refuse(why, text);
    return std::nullopt;
  };
  for (Operation *op : ops) {
    ArrayRef<int64_t> axes = graph::reducedAxes(op);
    if (axes.empty())
      continue;
    DimVector dims = graph::dimsOf(op->getOperand(0));
    if (rows.reductions.empty()) {
      rows.full = dims;
      rows.kept = dims.size() - axes.size();
    }
    for (size_t i = dims.size() - axes.size(); i < dims.size(); ++i)
      if (!llvm::is_contained(axes, (int64_t)i))
        return no(named(op) + " does not reduce trailing dimensions");
    if (dims != rows.full || dims.size() - axes.size() != rows.kept)
      return no(named(op) + " reduces other dimensions than the reductions before it");
    rows.reductions.push_back(op);
  }
  if (rows.reductions.empty())
    return no("nothing is reduced");
  for (Value result : results) {
    DimVector dims = graph::dimsOf(result);
    if (dims != rows.full && !isRowShape(dims, rows.full, rows.full.size() - rows.kept))
      return no("a result is neither a row nor a number for each row");
  }
  return rows;
}

/// Whether the value follows from one of these ops, as far as they are `among` some.
static bool followsFrom(Value value, ArrayRef<Operation *> sources, ArrayRef<Operation *> among) {
  SmallVector<Value> open = {value};
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!seen.insert(next).second || !op || !llvm::is_contained(among, op))
      continue;
    if (llvm::is_contained(sources, op))
      return true;
    llvm::append_range(open, op->getOperands());
  }
  return false;
}

std::optional<Columns> readColumns(ArrayRef<Operation *> ops, ValueRange results,
                                   std::string &why) {
  Columns columns;
  auto no = [&](const Twine &text) {
    refuse(why, text);
    return std::nullopt;
  };
  for (Operation *op : ops) {
    ArrayRef<int64_t> axes = graph::reducedAxes(op);
    if (axes.empty()) {
      if (!graph::isElementwise(op) && !graph::isFree(op))
        return no(named(op) + " is neither a reduction nor computed element by element");
      continue;
    }
    DimVector dims = graph::dimsOf(op->getOperand(0));
    if (columns.reductions.empty())
      columns.full = dims;
    if (dims != columns.full || axes.size() + 1 != dims.size() ||
        llvm::is_contained(axes, (int64_t)axes.size()))
      return no(named(op) + " does not reduce all but the last dimension of what others do");
    columns.reductions.push_back(op);
  }
  if (columns.reductions.empty())
    return no("nothing is reduced");
  for (Operation *reduction : columns.reductions)
    if (followsFrom(reduction->getOperand(0), columns.reductions, ops))
      return no(named(reduction) + " follows from another reduction");
  for (Value result : results)
    if (DimVector dims = graph::dimsOf(result); dims.empty() ||
                                                dims.back() != columns.full.back() ||
                                                graph::elementCount(dims) != columns.full.back())
      return no("a result is no row of columns");
  return columns;
}

int64_t partOf(graph::SliceOp slice) {
  int64_t columns = *graph::dimsOf(slice.getResult()).back().constant();
  return *graph::dimsOf(slice.getStarts()).back().constant() / columns;
}

std::optional<Parts> partsOf(ArrayRef<Operation *> slices, ArrayRef<Dim> dims) {
  std::optional<Parts> parts;
  auto whole = dims.empty() ? std::nullopt : dims.back().constant();
  for (Operation *op : slices) {
    auto slice = dyn_cast<graph::SliceOp>(op);
    if (!slice || ArrayRef<Dim>(graph::dimsOf(slice.getX())) != dims || !whole)
      return std::nullopt;
    DimVector begin = graph::dimsOf(slice.getStarts()), result = graph::dimsOf(slice.getResult());
    ArrayRef<Dim> starts = begin;
    auto start = starts.back().constant(), columns = result.back().constant();
    bool isWhole = ArrayRef<Dim>(result).drop_back() == ArrayRef<Dim>(dims).drop_back() &&
                   llvm::all_of(starts.drop_back(), [](const Dim &d) { return d.isConstant(0); }) &&
                   llvm::all_of(slice.getSteps(), [](int64_t step) { return step == 1; });
    if (!isWhole || !start || !columns || *columns < 1 || *start % *columns != 0 ||
        *whole % *columns != 0 || (parts && parts->columns != *columns))
      return std::nullopt;
    parts = {*whole / *columns, *columns};
  }
  return parts;
}

} // namespace heddle::mechanism
