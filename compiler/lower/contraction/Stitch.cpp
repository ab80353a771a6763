// Stitch: a product and the reductions over its rows in one kernel (Apollo's Layer II, Zhao et al.,
// MLSys 2022: micro-graphs joined through on-chip memory).
//
// A task is one tile of rows. A worker takes as many of its tiles at once as fit its scratch, so
// that the right operand passes its cache once for all of them: first all columns of these rows,
// then the rows from end to end while they are in the L2. What lies between the two stays in the
// scratch; where others read it too, it is a result and is read back from there.

#include "compiler/mechanism/Stitch.h"
#include "compiler/estimate/Traffic.h"
#include "compiler/graph/Typical.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/contraction/Contraction.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/rows/Rows.h"

using namespace mlir;

namespace heddle::lower {

namespace {
class Stitch {
public:
  Stitch(KernelBuilder &kernel, Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), contraction(kernel, group, schedule), rows(kernel, group),
        schedule(schedule) {}

  LogicalResult prepare();
  void emit();

private:
  LogicalResult advise(int64_t rowsOfTile, int64_t fitting, int64_t rowBytes);
  Value address(Value row, Value column);

  KernelBuilder &kernel;
  Block *group;
  Contraction contraction;
  RowKernel rows;
  const Schedule &schedule;
  Value between; // what the product's epilogue ends with and the rows begin with
  bool isResult = false;
  ProductLayout::Tiling tiles;
  int64_t tilesAtOnce = 1, rowStride = 0;
  Value firstRow; // of those in scratch
};
} // namespace

LogicalResult Stitch::prepare() {
  between = mechanism::betweenOf(mechanism::opsOf(*group));
  if (!between || failed(contraction.prepare(between)) || failed(rows.prepare(between)))
    return failure();
  tiles = contraction.layout.tiling();
  if (!tiles.outer.isConstant(1))
    return kernel.refuse("the rows of its product are not in one run");
  isResult = llvm::is_contained(outputsOf(group), between);
  auto columns = rows.full.back().constant();
  if (!columns)
    return kernel.refuse("the length of its rows is known to the run only");
  const program::Machine &machine = kernel.machine;
  rowStride = llvm::alignTo(*columns, machine.lanes);
  int64_t rowBytes = rowStride * graph::bytesOf(graph::storageOf(between));
  int64_t rowsOfTile = std::max<int64_t>(1, tiles.mostRows());
  int64_t fitting = machine.l2Bytes * 3 / 8 / rowBytes;
  if (failed(advise(rowsOfTile, fitting, rowBytes)))
    return failure();
  fitting = std::max(fitting, rowsOfTile);
  int64_t wanted = std::clamp(schedule.knob("rows", fitting), rowsOfTile, fitting);
  tilesAtOnce = wanted / rowsOfTile;
  int64_t rowsAtOnce = tilesAtOnce * rowsOfTile;
  if (auto all = tiles.rows.constant(); all && *all <= wanted) {
    // Some tiles have a row less than others.
    tilesAtOnce = std::max<int64_t>(1, graph::typicalSize(group->getParentOp(), tiles.count));
    rowsAtOnce = *all;
  }
  if (!isResult)
    rows.scratchBegin = Dim(rowsAtOnce * rowBytes);
  return success();
}

/// Whether it pays, for rows of so many bytes of which so many fit the L2.
LogicalResult Stitch::advise(int64_t rowsOfTile, int64_t fitting, int64_t rowBytes) {
  const program::Machine &machine = kernel.machine;
  if (rowsOfTile > fitting)
    return kernel.adviseAgainst("a tile of its rows takes " + Twine(rowsOfTile * rowBytes) +
                                " bytes, and " + Twine(fitting * rowBytes) + " stay in the L2");
  int64_t count = graph::typicalSize(group->getParentOp(), tiles.count);
  if (machine.workers > 1 && count < 2 * machine.workers)
    return kernel.adviseAgainst("it has " + Twine(count) + " tiles of rows for " +
                                Twine(machine.workers) +
                                " workers; apart, they share the columns of the product");
  // Apart, the right operand is read once and a result is read back. Here each worker walks the
  // whole of it, and once more for all rows that fit where it does not stay in the L2.
  int64_t operand = graph::typicalSize(group->getParentOp(), contraction.layout.operandBytes());
  int64_t rowCount = graph::typicalSize(group->getParentOp(), rows.rowCount());
  int64_t walks = machine.workers;
  if (operand > machine.l2Bytes && rowCount > fitting)
    walks = std::max<int64_t>(walks, llvm::divideCeil(rowCount, fitting / rowsOfTile * rowsOfTile));
  int64_t more = (walks - 1) * operand, less = 2 * rowCount * rowBytes;
  if (more > less)
    return kernel.adviseAgainst("its right operand would be read " + Twine(walks) + " times, " +
                                Twine(more) + " bytes more, to move " + Twine(less) +
                                " bytes less between the two");
  return success();
}

/// Place of an element of `between` in the worker's scratch.
Value Stitch::address(Value row, Value column) {
  Code &code = kernel.code();
  return code.add(code.mul(code.sub(row, firstRow), code.number(rowStride)), column);
}

void Stitch::emit() {
  contraction.emitOperands();
  Type element = graph::storageOf(between);
  if (!isResult)
    contraction.epilogue.store = [&](Elements &e, Value, Value value, Value row, Value column) {
      e.code().storeLanes(element, value, kernel.scratch(), address(row, column), e.mask);
    };
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  kernel.forEachRun(tilesAtOnce, [&](Value first, Value end) {
    Elements::Scope scope(e);
    Value count = kernel.dim(tiles.rows);
    firstRow = contraction.layout.firstRowOf(tiles, first);
    Value endRow = code.min(contraction.layout.firstRowOf(tiles, end), count);
    Value panels = kernel.dim(contraction.layout.panels);
    int64_t chunk = contraction.layout.panelsOfChunk();
    code.forEach(code.number(0), panels, chunk, [&](Value panel) {
      Elements::Scope scope(e);
      Value endPanel = code.min(code.add(panel, code.number(chunk)), panels);
      contraction.emitTiles(e, tiles, first, end, panel, endPanel);
    });
    code.forEach(firstRow, endRow, 1, [&](Value row) {
      Elements::Scope scope(e);
      e.bind(between, [&, row](ArrayRef<Index> place) -> Value {
        if (isResult)
          return e.read(element, kernel.pointer(between), e.sizesOf(between), place);
        return code.loadLanes(element, kernel.scratch(), address(row, place.back().base), e.mask);
      });
      rows.emitRow(e, row);
      e.unbind(between);
    });
  });
  Dim work = contraction.layout.work() +
             rows.rowCount() * rows.rowLength() * Dim(estimate::opsPerElement(group));
  kernel.endPhase(tiles.count, work, rows.scratchBegin + rows.scratchBytes());
}

LogicalResult emitStitch(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  return carryOut<Stitch>(kernel, group, schedule);
}

} // namespace heddle::lower
