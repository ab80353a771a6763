// Layout: how a product becomes tiles and panels, and where their rows lie.

#include "compiler/lower/contraction/Layout.h"

#include "compiler/graph/Typical.h"

using namespace mlir;

namespace heddle::lower {

LogicalResult ProductLayout::prepare(ValueRange wanted) {
  std::string why;
  auto read = mechanism::readProduct(mechanism::opsOf(*group), wanted, why);
  if (!read)
    return failure();
  results.assign(wanted.begin(), wanted.end());
  slices = std::move(read->slices);
  parts = read->parts;
  partColumns = read->partColumns;
  isOneRow = read->isOneRow;
  shape = readShape(*read);
  if (failed(readTypes()))
    return failure();
  tileRows = schedule.knob("m", 8);
  int64_t atOnce = schedule.knob("n", 3 * kernel.machine.lanes) / kernel.machine.lanes;
  vectors = std::max<int64_t>(1, atOnce / parts) * parts;
  panels = partColumns.ceilDiv(Dim(partWidth()));
  bool areIntegers = depth == 4 && shape.aStep.isConstant(1);
  hasMatrices = mayHaveMatrices && (isShort() || areIntegers) && kernel.machine.hasMatrices &&
                !shape.isCut() && program::MultiplyMatricesOp::fits(tileRows, panelWidth());
  auto matmul = dyn_cast<graph::MatmulOp>(shape.root);
  bool isRounded = matmul && matmul.getBlock() != 0; // its tiles are as large where they fit
  if (tileRows >= program::kMatrixSize && !hasMatrices && !isRounded) // else sums go to memory
    tileRows = std::max<int64_t>(1, (kernel.machine.registers - 1) / vectors - 1);
  coalesceRows(*read);
  return success();
}

/// Sets what the tile works on; fails if the machine has no instruction for it.
LogicalResult ProductLayout::readTypes() {
  Type a = graph::storageOf(shape.root->getOperand(0)),
       b = graph::storageOf(shape.root->getOperand(1));
  element = a;
  accumulator = graph::storageOf(shape.root->getResult(0));
  const program::Machine &machine = kernel.machine;
  if (schedule.isShort) {
    depth = 2;
    element = IntegerType::get(a.getContext(), 16);
    return success();
  }
  if (!a.isInteger(8))
    return success();
  depth = machine.dot != program::Dot::Words && b.isSignlessInteger(8) ? 4 : 2;
  element = IntegerType::get(a.getContext(), 32 / depth);
  return machine.dot == program::Dot::None
             ? kernel.refuse("the machine adds no products of neighbours")
             : success();
}

Dim ProductLayout::panelRows() const {
  if (depth == 1)
    return shape.reduction;
  Dim rows = filledLength();
  for (auto &[count, step, dimension] : shape.pieces)
    rows = rows * count;
  return rows;
}

bool ProductLayout::isShifted() const {
  bool wantsUnsigned = kernel.machine.dot == program::Dot::Bytes;
  return depth == 4 && !hasMatrices &&
         graph::storageOf(shape.a).isUnsignedInteger() != wantsUnsigned;
}

/// Whether what follows the product lets a dimension of its result and the one before it be one.
static bool epilogueCoalesces(const ProductLayout &layout, const mechanism::Product &product,
                              size_t dimension) {
  if (llvm::any_of(layout.results,
                   [&](Value result) { return isPlacedAlong(layout.kernel, result, dimension); }))
    return false;
  size_t rank = graph::rankOf(layout.shape.root->getResult(0));
  for (Operation *op : product.members) {
    if (auto slice = dyn_cast<graph::SliceOp>(op)) {
      DimVector from = graph::dimsOf(slice.getX()), to = graph::dimsOf(slice.getResult());
      DimVector starts = graph::dimsOf(slice.getStarts());
      for (size_t d : {dimension - 1, dimension})
        if (from.size() != rank || from[d] != to[d] || !starts[d].isConstant(0) ||
            slice.getSteps()[d] != 1)
          return false;
    }
    if (auto numbers = dyn_cast<graph::IotaOp>(op)) {
      size_t fromEnd = graph::rankOf(numbers.getResult()) - numbers.getAxis();
      if (fromEnd == rank - dimension || fromEnd == rank - dimension + 1)
        return false;
    }
    auto broadcast = dyn_cast<graph::BroadcastOp>(op);
    if (!broadcast)
      continue;
    DimVector from = graph::dimsOf(broadcast.getX()), to = graph::dimsOf(broadcast.getResult());
    auto kept = [&](size_t d) {
      int64_t inSource = (int64_t)d - (int64_t)(rank - from.size());
      return inSource >= 0 && !from[inSource].isConstant(1);
    };
    auto exact = [&](size_t d) {
      int64_t inSource = (int64_t)d - (int64_t)(rank - from.size());
      int64_t inResult = (int64_t)d - (int64_t)(rank - to.size());
      return inSource < 0 || from[inSource].isConstant(1) || from[inSource] == to[inResult];
    };
    if (kept(dimension - 1) != kept(dimension) || !exact(dimension - 1) || !exact(dimension))
      return false;
  }
  return true;
}

void ProductLayout::coalesceRows(const mechanism::Product &product) {
  for (auto [i, row] : llvm::enumerate(shape.rows)) {
    // Tiles are made of rows: a dimension of one row is left to the one before it.
    bool isBatch = !runs.empty() && llvm::is_contained(shape.batches, runs.back().dimension);
    if (row.extent.isConstant(1) && !runs.empty() && !isBatch &&
        !llvm::is_contained(shape.batches, (int64_t)i))
      continue;
    bool isNext = !runs.empty() && runs.back().dimension + 1 == (int64_t)i;
    if (isNext && row.joins && epilogueCoalesces(*this, product, i)) {
      runs.back() = {runs.back().extent * row.extent, row.aStride, (int64_t)i};
    } else {
      runs.push_back({row.extent, row.aStride, (int64_t)i});
    }
  }
}

std::pair<Value, Value> ProductLayout::placeOutside(Elements &e, Value outer,
                                                    Indices &place) const {
  Code &code = kernel.code();
  Value rest = outer, base = code.number(0);
  for (size_t i = runs.size() - 1; i-- > 0;) {
    Value extent = kernel.dim(runs[i].extent);
    bool isLast = i == 0 && shape.groups.isConstant(1);
    Value index = isLast ? rest : code.rem(rest, extent);
    if (!isLast)
      rest = code.div(rest, extent);
    place[runs[i].dimension] = e.uniform(index);
    base = code.add(base, code.mul(index, kernel.dim(runs[i].aStride)));
  }
  Value group = shape.groups.isConstant(1) ? code.number(0) : rest;
  return {group, code.add(base, code.mul(group, kernel.dim(shape.aGroupStride)))};
}

ProductLayout::Tiling ProductLayout::tiling() const {
  const Dim &rows = runs.back().extent;
  Tiling tiling{rows, rows.ceilDiv(Dim(tileRows)), false, tileRows, 0, shape.groups};
  if (auto known = rows.constant()) {
    int64_t tiles = llvm::divideCeil(*known, tileRows);
    tiling.isExact = true;
    tiling.base = tiles ? *known / tiles : tileRows;
    tiling.larger = tiles ? *known % tiles : 0;
  }
  for (const Run &run : ArrayRef<Run>(runs).drop_back())
    tiling.outer = tiling.outer * run.extent;
  return tiling;
}

estimate::Sharer ProductLayout::sharer() const {
  return {shape.root, schedule.knobs, kernel.machine};
}

int64_t ProductLayout::typicalPanelBytes() const {
  return graph::typicalSize(shape.root, shape.reduction) * panelWidth() * elementBytes();
}

int64_t ProductLayout::panelsOfChunk() const {
  return sharer().mostPanels(typicalPanelBytes(), panels);
}

Dim ProductLayout::panelsOfTask() const {
  Tiling tiles = tiling();
  Dim rowBytes = tiles.outer * tiles.rows * shape.reduction * Dim(elementBytes());
  if (!hasMatrices || rowBytes.constant()) // the chooser knows then
    return Dim(panelsOfChunk());
  return sharer().mostPanels(typicalPanelBytes(), panels, rowBytes);
}

Value ProductLayout::firstRowOf(const Tiling &tiling, Value tile) const {
  Code &code = kernel.code();
  Value row = code.mul(tile, code.number(tiling.base));
  return tiling.larger == 0 ? row : code.add(row, code.min(tile, code.number(tiling.larger)));
}

Dim ProductLayout::work() const {
  Dim rows = shape.groups;
  for (const Run &run : runs)
    rows = rows * run.extent;
  // With few rows it is reading the right operand that takes the time.
  Dim reads(std::max<int64_t>(1, 8 / tileRows));
  return (rows * shape.columns * shape.reduction * reads).floorDiv(Dim(kernel.machine.lanes));
}

Dim ProductLayout::operandBytes() const {
  return graph::elementCount(graph::dimsOf(shape.b)) * Dim(elementBytes());
}

} // namespace heddle::lower
