// Topk: few results by selection, O(n k) without memory; more by merge sort, O(n log n).

#include "compiler/lower/serial/Topk.h"

#include "compiler/lower/Definitions.h"

using namespace mlir;

namespace heddle::lower {

/// Up to so many are selected: a pass over the row each, where sorting takes log2(n) and two
/// writes.
static constexpr int64_t kMostSelected = 8;

Topk::Topk(KernelBuilder &kernel, Elements &e, graph::TopkOp op)
    : kernel(kernel), e(e), op(op), code(kernel.code()), element(graph::elementOf(op.getX())),
      axis(op.getAxis()), length(graph::dimsOf(op.getX())[axis]) {}

Value Topk::isBetter(Value x, Value y) { return isBefore(code, element, op.getLargest(), x, y); }

Value Topk::isEither(Value x, Value y) { return code.b.create<arith::OrIOp>(code.loc, x, y); }

Topk::Entry Topk::choose(Value condition, const Entry &yes, const Entry &no) {
  return {code.b.create<arith::SelectOp>(code.loc, condition, yes.value, no.value),
          code.b.create<arith::SelectOp>(code.loc, condition, yes.index, no.index)};
}

Value Topk::read(Value index) {
  Indices here(place);
  here[axis] = e.uniform(index);
  return e.at(op.getX(), here);
}

void Topk::write(Value rank, const Entry &entry) {
  Indices here(place);
  here[axis] = e.uniform(rank);
  e.store(op.getValues(), entry.value, here);
  e.store(op.getIndices(), entry.index, here);
}

void Topk::emit() {
  DimVector rows = graph::dimsOf(op.getX());
  rows[axis] = Dim(1);
  Dim tasks = graph::elementCount(rows), count = graph::dimsOf(op.getValues())[axis];
  bool isFew = count.constant() && *count.constant() <= kMostSelected;
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    place.assign(rows.size(), e.uniform(code.number(0)));
    Value rest = task;
    for (size_t i = rows.size(); i-- > 0;) {
      Value extent = kernel.dim(rows[i]);
      place[i] = e.uniform(code.rem(rest, extent));
      rest = code.div(rest, extent);
    }
    isFew ? select() : sort();
  });
  Dim scratch = length * Dim(2 * (8 + graph::bytesOf(element)));
  kernel.endPhase(tasks, tasks * length * (isFew ? count : Dim(16)), isFew ? Dim(0) : scratch);
}

/// Result k is the best entry worse than result k - 1, where of equal ones a later one is worse.
void Topk::select() {
  Value zero = code.constantOf(element, 0), none = code.number(-1);
  Value one = code.integerOf(code.b.getI1Type(), 1);
  Value count = kernel.dim(graph::dimsOf(op.getValues())[axis]);
  foldScoped(e, code.number(0), count, {zero, none}, [&](Value k, ValueRange last) {
    Values best = foldScoped(
        e, code.number(0), kernel.dim(length), {zero, none}, [&](Value i, ValueRange found) {
          Value x = read(i);
          Value isWorse = isBetter(last[0], x);
          Value isEqual =
              code.b.create<arith::XOrIOp>(code.loc, isEither(isWorse, isBetter(x, last[0])), one);
          Value isLeft = isEither(isWorse, code.both(isEqual, code.less(last[1], i)));
          isLeft = isEither(isLeft, code.less(last[1], code.number(0))); // nothing is taken yet
          Value wins = isEither(code.less(found[1], code.number(0)), isBetter(x, found[0]));
          Entry next = choose(code.both(wins, isLeft), {x, i}, {found[0], found[1]});
          return Values{next.value, next.index};
        });
    write(k, {best[0], best[1]});
    return best;
  });
}

Topk::Entry Topk::loadRun(Value at) {
  return {code.load(element, values, at), code.load(code.b.getI64Type(), indices, at)};
}

void Topk::storeRun(Value at, const Entry &entry) {
  code.store(element, entry.value, values, at);
  code.store(code.b.getI64Type(), entry.index, indices, at);
}

/// Pairs of sorted runs of `width` entries in the half that begins at `from` become runs of twice
/// the width at `to`.
void Topk::merge(Value from, Value to, Value width) {
  Value size = kernel.dim(length), two = code.number(2);
  Value last = code.sub(size, code.number(1));
  Value both = code.mul(width, two);
  Value pairs = code.div(code.add(size, code.sub(both, code.number(1))), both);
  code.forEach(code.number(0), pairs, 1, [&](Value pair) {
    Value begin = code.mul(pair, both), middle = code.min(code.add(begin, width), size);
    Value end = code.min(code.add(begin, both), size);
    code.fold(begin, end, 1, {begin, middle}, [&](Value at, ValueRange next) {
      Entry left = loadRun(code.add(from, next[0]));
      Entry right = loadRun(code.add(from, code.min(next[1], last)));
      Value isRight = isEither(isBetter(right.value, left.value),
                               code.less(code.sub(middle, code.number(1)), next[0]));
      isRight = code.both(isRight, code.less(next[1], end));
      storeRun(code.add(to, at), choose(isRight, right, left));
      Value step = code.b.create<arith::ExtUIOp>(code.loc, code.b.getI64Type(), isRight);
      return Values{code.add(next[0], code.sub(code.number(1), step)), code.add(next[1], step)};
    });
  });
}

/// From the bottom up, so that equal entries keep their order.
void Topk::sort() {
  Value size = kernel.dim(length);
  indices = kernel.scratch();
  values = code.at(indices, code.b.getI64Type(), code.mul(size, code.number(2)));
  foldScoped(e, code.number(0), size, {}, [&](Value i, ValueRange) {
    storeRun(i, {read(i), i});
    return Values();
  });
  // Widths are powers of two; those of an entry's row or more have nothing to merge.
  Values sorted = code.fold(
      code.number(0), code.number(62), 1, {code.number(0)}, [&](Value i, ValueRange from) {
        Value width = code.b.create<arith::ShLIOp>(code.loc, code.number(1), i);
        return code.choose(
            code.less(width, size), from.getTypes(),
            [&] {
              Value to = code.sub(size, from[0]);
              merge(from[0], to, width);
              return Values{to};
            },
            [&] { return Values{from[0]}; });
      });
  Value count = kernel.dim(graph::dimsOf(op.getValues())[axis]);
  code.forEach(code.number(0), count, 1,
               [&](Value k) { write(k, loadRun(code.add(sorted[0], k))); });
}

} // namespace heddle::lower
