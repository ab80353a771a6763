// Columns: reductions over leading dimensions: bias gradients, the statistics of a batch.
//
// Lanes lie along the columns, so memory is read as it lies, and all reductions of the group walk
// it once. Where there are fewer blocks of columns than tasks, the rows are shared too: each task
// stores what its rows come to, and whoever wants a result combines these, in their order. How
// many there are is known when the kernel is made, so results do not depend on who runs it.

#include "compiler/lower/pointwise/Columns.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/estimate/Traffic.h"
#include "compiler/graph/Typical.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::lower {

namespace {
/// Accumulators of one reduction: more leave no registers for what is accumulated.
constexpr int64_t kMostVectors = 8;
/// Sums that do not wait for each other, where a block of columns is a vector or two.
constexpr int64_t kSideBySide = 4;
/// Tasks of a worker.
constexpr int64_t kTasks = 4;
/// Bytes of the rows of a piece: what an L2 cache holds.
constexpr int64_t kPieceBytes = 256 << 10;
/// Pieces that are made for the cache.
constexpr int64_t kMostPieces = 64;

class ColumnKernel {
public:
  ColumnKernel(KernelBuilder &kernel, Block *group, const mechanism::Columns &columns)
      : kernel(kernel), group(group), reductions(columns.reductions), full(columns.full),
        column(full.back()), lanes(kernel.machine.lanes) {}

  /// Shares out columns and rows.
  void layOut() {
    int64_t most = std::max<int64_t>(1, kMostVectors / (int64_t)reductions.size());
    vectors = std::clamp<int64_t>(llvm::divideCeil(typical(column), lanes), 1, most);
    rowsAtOnce = std::max<int64_t>(1, std::min(kSideBySide, most) / vectors);
    blocks = column.ceilDiv(Dim(vectors * lanes));
    for (size_t axis = 0; axis + 1 < full.size(); ++axis)
      if (typical(full[axis]) > typical(full[sharedAxis]))
        sharedAxis = axis;
    int64_t wanted = kernel.machine.workers > 1 ? kTasks * kernel.machine.workers : 1;
    pieces = llvm::divideCeil(wanted, std::max<int64_t>(1, typical(blocks)));
    if (typical(blocks) > 1) // one after the other walks the rows of a piece, from the cache
      pieces = std::max(pieces, std::min<int64_t>(bytesRead() / kPieceBytes, kMostPieces));
    pieces = std::clamp<int64_t>(pieces, 1, std::max<int64_t>(1, typical(full[sharedAxis])));
  }

  /// Whether lanes of single results, one block after the other, would do worse.
  bool pays() const {
    int64_t elements = typical(graph::elementCount(full));
    bool isLarge = elements >= estimate::thresholdAt(group->getParentOp(), estimate::kParallelWork);
    return isLarge && (reductions.size() > 1 || typical(column) * 2 <= lanes || pieces > 1);
  }

  void emit(const Schedule &schedule) {
    for (Operation *reduction : reductions) {
      Type type = accumulatorOf(reduction);
      int64_t bytes = llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
      temporaries.push_back(kernel.addTemporary(column * Dim(pieces * bytes)));
    }
    emitPieces();
    emitPointwise(kernel, group, schedule, [&](Elements &e) { bindTotals(e); });
  }

private:
  /// The share of one task: a block of columns, and a range of places of the shared axis.
  struct Part {
    SmallVector<Value> columns, masks; // the first of each vector, and its lanes that count
    Value low, high;
  };

  int64_t typical(const Dim &dim) const { return graph::typicalSize(group->getParentOp(), dim); }

  /// Bytes of all that the reductions read and the group does not compute.
  int64_t bytesRead() const {
    llvm::DenseSet<Value> seen;
    int64_t bytes = 0;
    for (Operation &op : *group)
      for (Value operand : op.getOperands())
        if (!isComputedIn(group, operand) && graph::dimsOf(operand) == full &&
            seen.insert(operand).second)
          bytes += typical(estimate::bytesOf(operand));
    return bytes;
  }

  static Type accumulatorOf(Operation *reduction) {
    return accumulatorType(graph::storageOf(reduction->getOperand(0)));
  }

  void emitPieces() {
    kernel.beginPhase();
    Elements e(kernel, group);
    Code &code = kernel.code();
    kernel.forEachTask([&](Value task) {
      Elements::Scope scope(e);
      Value count = kernel.dim(blocks), number = code.div(task, count);
      Part part = partOf(code.rem(task, count), number);
      Indices place(full.size(), e.uniform(code.number(0)));
      Values totals = walk(e, part, 0, place, initialValues());
      Value first = code.mul(number, kernel.dim(column));
      for (auto [i, reduction] : llvm::enumerate(reductions))
        for (int64_t v = 0; v < vectors; ++v)
          code.storeLanes(accumulatorOf(reduction), totals[i * vectors + v],
                          kernel.temporary(temporaries[i]), code.add(first, part.columns[v]),
                          part.masks[v]);
    });
    Dim work = graph::elementCount(full) * Dim(estimate::opsPerElement(group));
    kernel.endPhase(blocks * Dim(pieces), work);
  }

  Part partOf(Value block, Value piece) {
    Code &code = kernel.code();
    Part part;
    auto known = column.constant();
    bool isWhole = known && *known % (vectors * lanes) == 0;
    for (int64_t v = 0; v < vectors; ++v) {
      Value first = code.add(code.mul(block, code.number(vectors * lanes)), code.number(v * lanes));
      Value rest = code.max(code.sub(kernel.dim(column), first), code.number(0));
      part.columns.push_back(first);
      part.masks.push_back(isWhole ? Value() : code.maskOf(code.min(rest, code.number(lanes))));
    }
    const Dim &extent = full[sharedAxis];
    Value size = kernel.dim(extent.ceilDiv(Dim(pieces)));
    part.low = code.min(code.mul(piece, size), kernel.dim(extent));
    part.high = code.min(code.add(part.low, size), kernel.dim(extent));
    return part;
  }

  /// Initial vectors of each reduction, one reduction after the other.
  Values initialValues() {
    Code &code = kernel.code();
    Values initial;
    for (Operation *reduction : reductions)
      initial.append(vectors, code.spread(neutral(code, reduction, accumulatorOf(reduction))));
    return initial;
  }

  /// Folds what lies along the axis and those after it, but for the columns.
  Values walk(Elements &e, const Part &part, size_t axis, Indices place, ValueRange carried) {
    Code &code = e.code();
    bool isShared = axis == sharedAxis, isLast = axis + 2 == full.size();
    Value low = isShared ? part.low : code.number(0);
    Value high = isShared ? part.high : kernel.dim(full[axis]);
    if (!isLast)
      return foldScoped(e, low, high, carried, [&](Value i, ValueRange in) {
        place[axis] = e.uniform(i);
        return walk(e, part, axis + 1, place, in);
      });
    Values totals(carried.begin(), carried.end());
    if (rowsAtOnce > 1)
      std::tie(low, totals) = foldSideBySide(e, part, place, low, high, totals);
    return foldScoped(e, low, high, totals, [&](Value i, ValueRange in) {
      place[axis] = e.uniform(i);
      return step(e, part, place, in);
    });
  }

  /// Folds as many rows as make whole groups of `rowsAtOnce`; where they end, and the totals.
  std::pair<Value, Values> foldSideBySide(Elements &e, const Part &part, Indices place, Value low,
                                          Value high, const Values &start) {
    Code &code = e.code();
    size_t axis = full.size() - 2, each = start.size();
    Value groups = code.div(code.sub(high, low), code.number(rowsAtOnce));
    Value end = code.add(low, code.mul(groups, code.number(rowsAtOnce)));
    Values initial = start;
    for (int64_t k = 1; k < rowsAtOnce; ++k)
      llvm::append_range(initial, initialValues());
    Values parts = code.fold(low, end, rowsAtOnce, initial, [&](Value i, ValueRange in) {
      Elements::Scope scope(e);
      Values next;
      for (int64_t k = 0; k < rowsAtOnce; ++k) {
        place[axis] = e.uniform(code.add(i, code.number(k)));
        llvm::append_range(next, step(e, part, place, in.slice(k * each, each)));
      }
      return next;
    });
    Values totals(parts.begin(), parts.begin() + each);
    for (int64_t k = 1; k < rowsAtOnce; ++k)
      for (size_t i = 0; i < each; ++i)
        totals[i] = combine(code, reductions[i / vectors], totals[i], parts[k * each + i]);
    return {end, totals};
  }

  /// One row of the block.
  Values step(Elements &e, const Part &part, Indices place, ValueRange carried) {
    Code &code = e.code();
    Values next;
    for (auto [i, reduction] : llvm::enumerate(reductions))
      for (int64_t v = 0; v < vectors; ++v) {
        e.mask = part.masks[v];
        place.back() = {part.columns[v], 1, {}};
        Value x = e.at(reduction->getOperand(0), place);
        next.push_back(combine(code, reduction, carried[i * vectors + v],
                               code.spread(widen(e, x, accumulatorOf(reduction)))));
      }
    e.mask = nullptr;
    return next;
  }

  void bindTotals(Elements &e) {
    for (auto [reduction, temporary] : llvm::zip(reductions, temporaries))
      e.bind(reduction->getResult(0), [this, &e, reduction, temporary](ArrayRef<Index> place) {
        Code &code = e.code();
        Type type = accumulatorOf(reduction);
        Values sizes = {code.number(pieces), kernel.dim(column)};
        auto partOf = [&](Value piece) {
          return e.read(type, kernel.temporary(temporary), sizes, {e.uniform(piece), place.back()});
        };
        Value total = code.fold(code.number(1), code.number(pieces), 1, partOf(code.number(0)),
                                [&](Value piece, ValueRange in) -> Values {
                                  return {combine(code, reduction, in[0], partOf(piece))};
                                })[0];
        return narrow(e, total, graph::storageOf(reduction->getOperand(0)));
      });
  }

  KernelBuilder &kernel;
  Block *group;
  SmallVector<Operation *> reductions;
  DimVector full;
  Dim column, blocks;
  int64_t lanes, vectors = 1, rowsAtOnce = 1, pieces = 1;
  size_t sharedAxis = 0;
  SmallVector<int64_t> temporaries;
};
} // namespace

bool emitColumns(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  std::string why;
  auto columns = mechanism::readColumns(mechanism::opsOf(*group), outputsOf(group), why);
  if (!columns || kernel.machine.lanes < 2)
    return false;
  for (Operation *reduction : columns->reductions)
    if (graph::storageOf(reduction->getOperand(0)).getIntOrFloatBitWidth() < 8)
      return false;
  ColumnKernel made(kernel, group, *columns);
  made.layOut();
  if (!made.pays())
    return false;
  made.emit(schedule);
  return true;
}

} // namespace heddle::lower
