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
        schedule(schedule) {
    contraction.layout.mayHaveMatrices = true;
  }

  LogicalResult prepare();
  void emit();

private:
  int64_t typical(const Dim &size) const { return graph::typicalSize(group->getParentOp(), size); }
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
  kernel.stitching = {rowsOfTile,
                      typical(tiles.count),
                      typical(rows.rowCount()),
                      rowBytes,
                      fitting,
                      typical(contraction.layout.operandBytes())};
  fitting = std::max(fitting, rowsOfTile);
  int64_t wanted = std::clamp(schedule.knob("rows", fitting), rowsOfTile, fitting);
  tilesAtOnce = wanted / rowsOfTile;
  int64_t rowsAtOnce = tilesAtOnce * rowsOfTile;
  if (auto all = tiles.rows.constant(); all && *all <= wanted) {
    // Some tiles have a row less than others.
    tilesAtOnce = std::max<int64_t>(1, typical(tiles.count));
    rowsAtOnce = *all;
  }
  if (!isResult)
    rows.scratchBegin = Dim(rowsAtOnce * rowBytes);
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
  Dim begin = rows.scratchBegin + rows.scratchBytes(), scratch = contraction.scratchOfTile(begin);
  int64_t chunk = contraction.layout.panelsOfChunk();
  // Panels that have a place after what tiles have.
  bool areShared = contraction.decodesAlways() ||
                   (scratch != begin && tilesAtOnce > 1 && !contraction.layout.hasMatrices);
  if (areShared)
    scratch = scratch + contraction.panelBytes() * Dim(chunk);
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
    code.forEach(code.number(0), panels, chunk, [&](Value panel) {
      Elements::Scope scope(e);
      Value endPanel = code.min(code.add(panel, code.number(chunk)), panels);
      auto emit = [&] {
        Elements::Scope scope(e);
        contraction.emitTiles(e, tiles, first, end, panel, endPanel);
        return Values();
      };
      if (areShared)
        contraction.emitShared(first, end, panel, endPanel, emit);
      else
        emit();
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
  kernel.endPhase(tiles.count, work, scratch);
}

LogicalResult emitStitch(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  return carryOut<Stitch>(kernel, group, schedule);
}

} // namespace heddle::lower
