// OneRow: products of which each matrix of the right operand meets a single row, so that each of
// its elements is read once.
//
// Packing would cost more than the product, and a tile would read a line or two of each row, which
// lie pages apart. So the sums of many columns stay in the L1, and some rows at a time are added to
// them, each read as it lies in memory.

#include "compiler/estimate/Thresholds.h"
#include "compiler/lower/contraction/Contraction.h"
#include "compiler/lower/contraction/PanelWriter.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

/// Rows of the right operand that are added at once: a sum is loaded and stored once for them.
static constexpr int64_t kRows = 8;
/// Columns of a task: at least some lines of each row, and at most what leaves room in the L1.
static constexpr int64_t kLeastColumns = 1024, kMostColumns = 2048;

void emitOneRow(ProductLayout &layout) {
  KernelBuilder &kernel = layout.kernel;
  const ProductShape &shape = layout.shape;
  Type element = layout.element;
  Epilogue epilogue(layout);
  int64_t lanes = kernel.machine.lanes, workers = std::max<int64_t>(1, kernel.machine.workers);
  layout.vectors = layout.parts; // of what the epilogue stores at a time
  Dim batches = layout.tiling().outer, ofTask(kMostColumns);
  if (workers > 1) {
    int64_t tasks = estimate::thresholdAt(shape.root, estimate::kProductTasks) * workers;
    Dim share = (batches * layout.partColumns).ceilDiv(Dim(tasks * lanes)) * Dim(lanes);
    ofTask = Dim::max(Dim(kLeastColumns), Dim::min(ofTask, share));
  }
  Dim chunks = layout.partColumns.ceilDiv(ofTask);
  kernel.beginPhase();
  Elements e(kernel, layout.group);
  Code &code = kernel.code();
  Value zero = code.number(0);
  auto sumAt = [&](int64_t part, Value i) { return code.add(kernel.dim(ofTask * Dim(part)), i); };
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Indices place(shape.rows.size() + 1, e.uniform(zero));
    Value aFirst = layout.placeOutside(e, code.div(task, kernel.dim(chunks)), place).second;
    Value first = code.mul(code.rem(task, kernel.dim(chunks)), kernel.dim(ofTask));
    Value count = code.min(kernel.dim(ofTask), code.sub(kernel.dim(layout.partColumns), first));
    Indices matrix;
    for (auto [i, size] : llvm::enumerate(shape.bBatch))
      matrix.push_back(size.isConstant(1) ? e.uniform(zero) : place[i]);
    auto forEachSum = [&](llvm::function_ref<void(Value i, int64_t part)> body) {
      for (int64_t part = 0; part < layout.parts; ++part)
        forLanes(e, zero, count, [&](Value i) { body(i, part); });
    };
    auto addRows = [&](Value k, int64_t rows) {
      Values factors;
      for (int64_t row = 0; row < rows; ++row) {
        Value step = code.mul(code.add(k, code.number(row)), kernel.dim(shape.aStep));
        factors.push_back(
            code.spread(code.load(element, kernel.pointer(shape.a), code.add(aFirst, step))));
      }
      forEachSum([&](Value i, int64_t part) {
        Value at = sumAt(part, i), sum = code.loadLanes(element, kernel.scratch(), at, {});
        Value column = code.add(kernel.dim(layout.partColumns * Dim(part)), code.add(first, i));
        for (auto [row, factor] : llvm::enumerate(factors)) {
          Indices right = placeInRight(e, shape, matrix, code.add(k, code.number(row)), column);
          sum =
              code.b.create<math::FmaOp>(code.loc, factor, code.spread(e.at(shape.b, right)), sum);
        }
        code.storeLanes(element, sum, kernel.scratch(), at, {});
      });
    };
    forEachSum([&](Value i, int64_t part) {
      code.storeLanes(element, code.spread(code.constantOf(element, 0)), kernel.scratch(),
                      sumAt(part, i), {});
    });
    Value depth = kernel.dim(shape.reduction);
    Value whole = code.mul(code.div(depth, code.number(kRows)), code.number(kRows));
    code.forEach(zero, whole, kRows, [&](Value k) { addRows(k, kRows); });
    code.forEach(whole, depth, 1, [&](Value k) { addRows(k, 1); });
    code.forEach(zero, count, lanes, [&](Value i) {
      Elements::Scope scope(e);
      Values sums;
      for (int64_t part = 0; part < layout.parts; ++part)
        sums.push_back(code.loadLanes(element, kernel.scratch(), sumAt(part, i), {}));
      epilogue.emit(e, sums, place, {zero}, code.add(first, i));
    });
  });
  Dim scratch = (ofTask * Dim(layout.parts) + Dim(lanes)) * Dim(layout.elementBytes());
  kernel.endPhase(batches * chunks, layout.work(), scratch);
}

} // namespace heddle::lower
