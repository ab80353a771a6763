// IndexChecks: whether indices that are data lie inside of the dimension they index.
//
// A phase before the group's own looks at every index once and ends the run at the first that is
// outside, so that no form of schedule reads or writes beyond a tensor, and none has to check. On a
// device, where a launch costs more than a comparison, elements that threads gather one by one are
// checked as they are gathered.

#include "compiler/graph/edit/Words.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

namespace {
/// Entries of `indices` must lie in [lowest, highest]; only those at `entry` of the last dimension
/// where that is given.
struct Bounds {
  Value indices;
  Dim lowest, highest;
  std::optional<int64_t> entry;
};
} // namespace

static SmallVector<Bounds> boundsOf(Operation *op) {
  SmallVector<Bounds> result;
  auto into = [&](Value indices, const Dim &size, std::optional<int64_t> entry = {}) {
    result.push_back({indices, size * Dim(-1), size - Dim(1), entry});
  };
  auto tuples = [&](Value indices, Value x, int64_t first) {
    int64_t depth = graph::dimsOf(indices).back().constant().value_or(0);
    for (int64_t k = 0; k < depth; ++k)
      into(indices, graph::dimsOf(x)[first + k], k);
  };
  TypeSwitch<Operation *>(op)
      .Case<graph::GatherOp, graph::GatherElementsOp, graph::ScatterElementsOp>(
          [&](auto op) { into(op.getIndices(), graph::dimsOf(op.getX())[op.getAxis()]); })
      .Case([&](graph::GatherNdOp op) { tuples(op.getIndices(), op.getX(), op.getBatchDims()); })
      .Case([&](graph::ScatterNdOp op) { tuples(op.getIndices(), op.getX(), 0); })
      .Case([&](graph::ReverseSequenceOp op) {
        result.push_back({op.getLengths(), Dim(0), graph::dimsOf(op.getX())[op.getTimeAxis()], {}});
      });
  return result;
}

/// Whether the model alone says that all entries are inside, whatever the sizes turn out to be.
static bool isKnown(const Bounds &bounds) {
  auto values = graph::shapeValue(bounds.indices);
  if (!values)
    return false;
  for (auto [i, value] : llvm::enumerate(*values)) {
    if (bounds.entry &&
        (int64_t)i % *graph::dimsOf(bounds.indices).back().constant() != *bounds.entry)
      continue;
    if (!(value - bounds.lowest).isNeverNegative() || !(bounds.highest - value).isNeverNegative())
      return false;
  }
  return true;
}

static Value foldLanesOf(Code &code, Value value, bool wantLargest) {
  if (!Code::isVector(value))
    return value;
  int64_t lanes = cast<VectorType>(value.getType()).getNumElements();
  for (; lanes > 1; lanes /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < lanes / 2; ++i) {
      low.push_back(i);
      high.push_back(i + lanes / 2);
    }
    Value a = code.b.create<vector::ShuffleOp>(code.loc, value, value, low);
    Value b = code.b.create<vector::ShuffleOp>(code.loc, value, value, high);
    value = wantLargest ? code.max(a, b) : code.min(a, b);
  }
  return code.b.create<vector::ExtractOp>(code.loc, value, ArrayRef<int64_t>{0});
}

static void fail(KernelBuilder &kernel, StringRef message, Value value, Value limit) {
  Code &code = kernel.code();
  Value number = kernel.message(message), run = kernel.call();
  code.b.create<program::FailOp>(code.loc, run, number, value, limit);
}

/// The message about a value that is outside.
static std::string messageOf(Operation *op) {
  return graph::nodeText(op->getLoc()) +
         (isa<graph::ReverseSequenceOp>(op)
              ? ": a sequence of %lld is longer than the dimension, or negative: it has %lld"
              : ": index %lld is outside of a dimension of %lld");
}

/// The smallest and the largest entry of one row, along the last dimension or at one entry of it;
/// twice the entry at `place` where each has a task.
static std::pair<Value, Value> extremes(Elements &e, const Bounds &bounds, Indices place,
                                        bool isOfEach) {
  Code &code = e.code();
  if (isOfEach || bounds.entry) {
    if (bounds.entry)
      place.back() = e.uniform(code.number(*bounds.entry));
    Value value = e.lanesOf(e.fromLanes(e.at(bounds.indices, place)));
    return {value, value};
  }
  Value none = code.spread(code.number(0));
  Values found =
      foldLanes(e, code.number(0), e.kernel.dim(graph::dimsOf(bounds.indices).back()), {none, none},
                [&](Value i, ValueRange in) {
                  place.back() = {i, code.lanes == 1 ? 0 : 1, {}};
                  Value value = code.spread(e.lanesOf(e.fromLanes(e.at(bounds.indices, place))));
                  if (e.mask)
                    value = code.b.create<arith::SelectOp>(code.loc, e.mask, value, none);
                  return Values{code.min(in[0], value), code.max(in[1], value)};
                });
  return {foldLanesOf(code, found[0], false), foldLanesOf(code, found[1], true)};
}

static void emitCheck(KernelBuilder &kernel, Block *group, Operation *op, const Bounds &bounds) {
  DimVector dims = graph::dimsOf(bounds.indices);
  bool isOfEach = dims.empty() || (kernel.machine.form == program::Form::Threads && !bounds.entry);
  DimVector outer(ArrayRef<Dim>(dims).drop_back(isOfEach ? 0 : 1));
  Dim rows = graph::elementCount(outer);
  // A row without entries would pass for one of zeros.
  Dim tasks = dims.empty() ? Dim(1) : Dim::min(rows, graph::elementCount(dims));
  std::string message = messageOf(op);
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Indices place(dims.size(), e.uniform(code.number(0)));
    for (int64_t i = (int64_t)outer.size() - 1; i >= 0; --i) {
      Value size = kernel.dim(outer[i]);
      place[i] = e.uniform(code.rem(task, size));
      task = code.div(task, size);
    }
    auto [lowest, highest] = extremes(e, bounds, place, isOfEach);
    Value size =
        kernel.dim(isa<graph::ReverseSequenceOp>(op) ? bounds.highest : bounds.highest + Dim(1));
    code.when(code.less(lowest, kernel.dim(bounds.lowest)),
              [&] { fail(kernel, message, lowest, size); });
    code.when(code.less(kernel.dim(bounds.highest), highest),
              [&] { fail(kernel, message, highest, size); });
  });
  kernel.endPhase(tasks, graph::elementCount(dims));
}

/// Whether threads check what they gather for each element of the result.
static bool checksReads(const KernelBuilder &kernel, Operation *op) {
  return kernel.checksReads && isa<graph::GatherOp, graph::GatherElementsOp, graph::GatherNdOp>(op);
}

void checkRead(Elements &e, Operation *op, Value index, Value size) {
  if (!checksReads(e.kernel, op) || llvm::all_of(boundsOf(op), isKnown))
    return;
  Code &code = e.code();
  Value isBefore = code.less(index, code.sub(code.number(0), size));
  Value isAfter = code.less(code.sub(size, code.number(1)), index);
  Value isOutside = code.b.create<arith::OrIOp>(code.loc, isBefore, isAfter);
  code.when(isOutside, [&] { fail(e.kernel, messageOf(op), index, size); });
}

void emitIndexChecks(KernelBuilder &kernel, graph::GroupOp group) {
  kernel.checksReads =
      kernel.machine.form == program::Form::Threads &&
      llvm::all_of(versionsOf(group), [](const Version &version) {
        const mechanism::Mechanism *mechanism = version.schedule.mechanism;
        return mechanism == &mechanism::kPointwise || mechanism == &mechanism::kRows;
      });
  Block *body = &group.getBody().front();
  for (Operation &op : *body)
    for (const Bounds &bounds : boundsOf(&op))
      if (!isKnown(bounds) && !checksReads(kernel, &op))
        emitCheck(kernel, body, &op, bounds);
}

} // namespace heddle::lower
