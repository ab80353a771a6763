// Serial: ops whose elements depend on each other in order: a scatter, whose updates may meet in
// one place.
//
// Each task has a part of the result to itself: it stores what the result begins with there, and
// then walks all updates in order and takes those of its part. So an element's updates come in
// their order, however many tasks there are, and no two tasks write one element.

#include "compiler/graph/Typical.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

static Value legalPlace(Elements &e, Value raw, Value size) {
  Code &code = e.code();
  Value index = e.lanesOf(e.fromLanes(raw));
  Value wrapped = code.b.createOrFold<arith::SelectOp>(code.loc, code.less(index, code.number(0)),
                                                       code.add(index, size), index);
  return code.max(code.min(wrapped, code.sub(size, code.number(1))), code.number(0));
}

static Value combineUpdate(Code &code, StringRef reduction, Type element, Value old, Value update) {
  bool isFloat = isa<FloatType>(element);
  bool isUnsigned = element.isUnsignedInteger() || element.isSignlessInteger(1);
  using namespace arith;
  auto make = [&](auto floating, auto integer) -> Value {
    if (isFloat)
      return code.b.create<std::remove_pointer_t<decltype(floating)>>(code.loc, old, update);
    return code.b.create<std::remove_pointer_t<decltype(integer)>>(code.loc, old, update);
  };
  if (reduction == "add")
    return make((AddFOp *)0, (AddIOp *)0);
  if (reduction == "mul")
    return make((MulFOp *)0, (MulIOp *)0);
  if (reduction == "max")
    return isUnsigned ? make((MaximumFOp *)0, (MaxUIOp *)0) : make((MaximumFOp *)0, (MaxSIOp *)0);
  if (reduction == "min")
    return isUnsigned ? make((MinimumFOp *)0, (MinUIOp *)0) : make((MinimumFOp *)0, (MinSIOp *)0);
  return update;
}

static void forEachPlace(Elements &e, ArrayRef<Value> sizes, Indices &place, size_t depth,
                         llvm::function_ref<void()> body) {
  if (depth == sizes.size())
    return body();
  foldScoped(e, e.code().number(0), sizes[depth], {}, [&](Value i, ValueRange) {
    place[depth] = e.uniform(i);
    forEachPlace(e, sizes, place, depth + 1, body);
    return Values();
  });
}

namespace {
/// Places from `low` on and before `high`.
struct Range {
  Value low, high;
};

/// The common part of the two kinds of scatter.
class Scatter {
public:
  Scatter(KernelBuilder &kernel, Block *group, Operation *op, Value x, StringRef reduction)
      : kernel(kernel), group(group), op(op), x(x), result(op->getResult(0)), reduction(reduction),
        element(graph::storageOf(x)), dims(graph::dimsOf(x)) {}

protected:
  /// Begins the phase, whose loops are in lanes of elements that are whole bytes.
  void begin() {
    kernel.beginPhase();
    if (element.getIntOrFloatBitWidth() < 8)
      kernel.code().lanes = 1;
  }

  /// Most tasks that may share the result: those that write parts of one byte would meet in it.
  int64_t mostTasks() const {
    return element.getIntOrFloatBitWidth() < 8 ? 1 : kernel.machine.workers;
  }

  void end(int64_t tasks, const Dim &updates) {
    kernel.endPhase(Dim(tasks),
                    (graph::elementCount(dims) + updates).ceilDiv(Dim(kernel.code().lanes)));
  }

  /// The share of a task of so many places.
  Range shareOf(Value task, int64_t tasks, const Dim &places) {
    Code &code = kernel.code();
    Value size = kernel.dim(places), piece = kernel.dim(places.ceilDiv(Dim(tasks)));
    Value low = code.min(code.mul(task, piece), size);
    return {low, code.min(code.add(low, piece), size)};
  }

  /// Stores what the elements of these places of the result, as if it were a vector, begin with.
  void fill(Elements &e, Range part) {
    Code &code = e.code();
    if (isComputedIn(group, x)) { // one number everywhere
      Value one = cast<graph::BroadcastOp>(x.getDefiningOp()).getX();
      Indices first(graph::rankOf(one), e.uniform(code.number(0)));
      Value number = code.spread(e.at(one, first));
      forLanes(e, part.low, part.high, [&](Value i) {
        code.storeLanes(element, number, kernel.pointer(result), i, e.mask);
      });
      return;
    }
    Value from = kernel.pointer(x), to = kernel.pointer(result);
    auto wordOf = [&](Value pointer) { return code.b.create<program::WordOp>(code.loc, pointer); };
    Value isElsewhere =
        code.b.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ne, wordOf(from), wordOf(to));
    code.when(isElsewhere, [&] { copy(from, part.low, part.low, code.sub(part.high, part.low)); });
  }

  /// Copies `count` elements to the result.
  void copy(Value from, Value source, Value target, Value count) {
    Code &code = kernel.code();
    code.b.create<program::CopyOp>(code.loc, code.at(kernel.pointer(result), element, target),
                                   code.at(from, element, source),
                                   code.mul(count, code.number(graph::bytesOf(element))));
  }

  KernelBuilder &kernel;
  Block *group;
  Operation *op;
  Value x, result;
  StringRef reduction;
  Type element;
  DimVector dims;
};

/// An update names a place along one axis; along the others it stays where it is. So tasks share
/// another axis, and each walks only the updates of its part.
class ScatterElements : Scatter {
public:
  ScatterElements(KernelBuilder &kernel, Block *group, graph::ScatterElementsOp op)
      : Scatter(kernel, group, op, op.getX(), op.getReduction()), scatter(op),
        shared(sharedAxis()) {}

  void emit() {
    begin();
    int64_t tasks = shared ? mostTasks() : 1;
    Elements e(kernel, group);
    kernel.forEachTask([&](Value task) {
      Elements::Scope scope(e);
      Code &code = e.code();
      Value whole = kernel.dim(graph::elementCount(dims));
      if (!shared) {
        fill(e, {code.number(0), whole});
        return walk(e, {});
      }
      Range share = shareOf(task, tasks, dims[*shared]);
      fillShare(e, share);
      walk(e, share);
    });
    end(tasks, graph::elementCount(graph::dimsOf(scatter.getUpdates())));
  }

private:
  /// The axis with most places to share.
  std::optional<size_t> sharedAxis() {
    std::optional<size_t> best;
    auto sizeOf = [&](size_t axis) { return graph::typicalSize(group->getParentOp(), dims[axis]); };
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (axis != scatter.getAxis() && (!best || sizeOf(axis) > sizeOf(*best)))
        best = axis;
    return best;
  }

  void fillShare(Elements &e, Range share) {
    Code &code = e.code();
    ArrayRef<Dim> all = dims;
    Value inner = kernel.dim(graph::elementCount(all.drop_front(*shared + 1)));
    Value outer = kernel.dim(graph::elementCount(all.take_front(*shared)));
    Value row = code.mul(kernel.dim(dims[*shared]), inner);
    foldScoped(e, code.number(0), outer, {}, [&](Value i, ValueRange) {
      Value begin = code.mul(i, row);
      fill(e, {code.add(begin, code.mul(share.low, inner)),
               code.add(begin, code.mul(share.high, inner))});
      return Values();
    });
  }

  /// All updates, or those whose place along the shared axis is in the share.
  void walk(Elements &e, std::optional<Range> share) {
    Code &code = e.code();
    Values sizes = e.sizesOf(scatter.getUpdates());
    Value begin = code.number(0);
    if (share) {
      begin = share->low;
      Value end = code.min(sizes[*shared], share->high);
      sizes[*shared] = code.max(code.sub(end, begin), code.number(0));
    }
    Indices offset(sizes.size());
    forEachPlace(e, sizes, offset, 0, [&] {
      Indices place(offset);
      if (share)
        place[*shared] = e.shift(place[*shared], begin);
      update(e, place);
    });
  }

  void update(Elements &e, const Indices &place) {
    Code &code = e.code();
    Values target = e.sizesOf(x);
    Indices where(place);
    size_t axis = scatter.getAxis();
    where[axis] = e.uniform(legalPlace(e, e.at(scatter.getIndices(), place), target[axis]));
    Value at = e.linear(target, where).base;
    Value old = code.load(element, kernel.pointer(result), at);
    Value value = e.at(scatter.getUpdates(), place);
    code.store(element, combineUpdate(code, reduction, element, old, value), kernel.pointer(result),
               at);
  }

  graph::ScatterElementsOp scatter;
  std::optional<size_t> shared;
};

/// An update is a slice of the result, a row of it here, that a tuple of indices names. Tasks share
/// the columns of rows that are long enough, so that each has the same share of all updates;
/// otherwise they share the rows, and look at all tuples.
class ScatterRows : Scatter {
public:
  ScatterRows(KernelBuilder &kernel, Block *group, graph::ScatterNdOp op)
      : Scatter(kernel, group, op, op.getX(), op.getReduction()), scatter(op),
        depth(*graph::dimsOf(op.getIndices()).back().constant()),
        rows(graph::elementCount(ArrayRef<Dim>(dims).take_front(depth))),
        length(graph::elementCount(ArrayRef<Dim>(dims).drop_front(depth))) {}

  void emit() {
    begin();
    int64_t tasks = mostTasks();
    int64_t typical = graph::typicalSize(group->getParentOp(), length);
    bool sharesColumns = typical >= kLeastColumns * tasks;
    Code &code = kernel.code();
    if (auto known = length.constant(); known && *known * 2 <= code.lanes)
      code.lanes = 1;
    Elements e(kernel, group);
    kernel.forEachTask([&](Value task) {
      Elements::Scope scope(e);
      Range allRows{code.number(0), kernel.dim(rows)},
          allColumns{code.number(0), kernel.dim(length)};
      if (sharesColumns) {
        Range columns = shareOf(task, tasks, length);
        fillColumns(e, columns);
        walk(e, allRows, columns, /*isPart=*/false);
        return;
      }
      Range share = shareOf(task, tasks, rows);
      Value row = kernel.dim(length);
      fill(e, {code.mul(share.low, row), code.mul(share.high, row)});
      walk(e, share, allColumns, tasks > 1);
    });
    end(tasks, graph::elementCount(graph::dimsOf(scatter.getUpdates())));
  }

private:
  /// Fewest columns of a task that has columns: a few cache lines, lest rows are read in pieces.
  static constexpr int64_t kLeastColumns = 64;

  void fillColumns(Elements &e, Range columns) {
    Code &code = e.code();
    if (mostTasks() == 1)
      return fill(e, {code.number(0), kernel.dim(rows * length)});
    foldScoped(e, code.number(0), kernel.dim(rows), {}, [&](Value i, ValueRange) {
      Value begin = code.mul(i, kernel.dim(length));
      fill(e, {code.add(begin, columns.low), code.add(begin, columns.high)});
      return Values();
    });
  }

  /// All updates in order; where the rows are a part of all, those of others are passed over.
  void walk(Elements &e, Range own, Range columns, bool isPart) {
    Code &code = e.code();
    SmallVector<Value> sizes(e.sizesOf(scatter.getUpdates()));
    size_t tuples = graph::rankOf(scatter.getIndices()) - 1;
    sizes.truncate(tuples);
    Indices place(tuples);
    forEachPlace(e, sizes, place, 0, [&] {
      Value row = rowOf(e, place), from = e.linear(sizes, place).base;
      auto take = [&] { update(e, row, from, columns); };
      if (!isPart)
        return take();
      Value isOwn =
          code.both(code.less(row, own.high), code.less(own.low, code.add(row, code.number(1))));
      code.when(isOwn, take);
    });
  }

  /// The row that the tuple names.
  Value rowOf(Elements &e, const Indices &place) {
    SmallVector<Value> sizes(e.sizesOf(x));
    sizes.truncate(depth);
    Indices where;
    for (int64_t k = 0; k < depth; ++k) {
      Indices tuple(place);
      tuple.push_back(e.uniform(e.code().number(k)));
      where.push_back(e.uniform(legalPlace(e, e.at(scatter.getIndices(), tuple), sizes[k])));
    }
    return e.linear(sizes, where).base;
  }

  void update(Elements &e, Value row, Value from, Range columns) {
    Code &code = e.code();
    Value size = kernel.dim(length), target = code.mul(row, size), source = code.mul(from, size);
    Value updates = kernel.pointer(scatter.getUpdates());
    if (reduction == "none" && code.lanes > 1)
      return copy(updates, code.add(source, columns.low), code.add(target, columns.low),
                  code.sub(columns.high, columns.low));
    forLanes(e, columns.low, columns.high, [&](Value i) {
      Value at = code.add(target, i);
      Value old = code.loadLanes(element, kernel.pointer(result), at, e.mask);
      Value value = code.loadLanes(element, updates, code.add(source, i), e.mask);
      code.storeLanes(element, combineUpdate(code, reduction, element, old, value),
                      kernel.pointer(result), at, e.mask);
    });
  }

  graph::ScatterNdOp scatter;
  int64_t depth; // of a tuple
  Dim rows, length;
};
} // namespace

LogicalResult emitSerial(KernelBuilder &kernel, Block *group, const Schedule &) {
  for (Operation &op : *group) {
    if (!graph::isScatter(&op))
      continue;
    if (kernel.isTrial)
      return success();
    if (auto scatter = dyn_cast<graph::ScatterElementsOp>(op))
      ScatterElements(kernel, group, scatter).emit();
    else
      ScatterRows(kernel, group, cast<graph::ScatterNdOp>(op)).emit();
    return success();
  }
  return failure();
}

} // namespace heddle::lower
