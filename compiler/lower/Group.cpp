// Group: carries out the schedule of a group; and the ops whose elements depend on each other in
// order.

#include "compiler/loop/Calls.h"
#include "compiler/lower/Definitions.h"
#include "compiler/lower/Schedule.h"

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
  bool isFloat = isa<FloatType>(element), isUnsigned = element.isUnsignedInteger();
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

static void copyAll(KernelBuilder &kernel, Elements &e, Value from, Value to) {
  Code &code = kernel.code();
  Value bytes = code.mul(kernel.dim(graph::elementCount(graph::dimsOf(from))),
                         code.number(graph::bytesOf(graph::elementOf(from))));
  code.b.create<LLVM::MemcpyOp>(code.loc, kernel.pointer(to), kernel.pointer(from), bytes, false);
}

static void emitScatterElements(KernelBuilder &kernel, Elements &e, graph::ScatterElementsOp op) {
  Code &code = kernel.code();
  Value result = op.getResult();
  copyAll(kernel, e, op.getX(), result);
  Type element = graph::elementOf(op.getX());
  Values target = e.sizesOf(op.getX());
  Indices place(target.size());
  forEachPlace(e, e.sizesOf(op.getUpdates()), place, 0, [&] {
    Indices where(place);
    Value raw = e.at(op.getIndices(), place);
    where[op.getAxis()] = e.uniform(legalPlace(e, raw, target[op.getAxis()]));
    Value at = e.linear(target, where).base;
    Value old = code.load(element, kernel.pointer(result), at);
    Value update = e.at(op.getUpdates(), place);
    code.store(element, combineUpdate(code, op.getReduction(), element, old, update),
               kernel.pointer(result), at);
  });
}

static void emitScatterNd(KernelBuilder &kernel, Elements &e, graph::ScatterNdOp op) {
  Code &code = kernel.code();
  Value result = op.getResult();
  copyAll(kernel, e, op.getX(), result);
  Type element = graph::elementOf(op.getX());
  int64_t depth = *graph::dimsOf(op.getIndices()).back().constant();
  size_t tuples = graph::rankOf(op.getIndices()) - 1;
  Values target = e.sizesOf(op.getX());
  Values sizes = e.sizesOf(op.getUpdates());
  Indices place(sizes.size());
  forEachPlace(e, sizes, place, 0, [&] {
    Indices where;
    for (int64_t k = 0; k < depth; ++k) {
      Indices tuple(ArrayRef<Index>(place).take_front(tuples));
      tuple.push_back(e.uniform(code.number(k)));
      where.push_back(e.uniform(legalPlace(e, e.at(op.getIndices(), tuple), target[k])));
    }
    where.append(place.begin() + tuples, place.end());
    Value at = e.linear(target, where).base;
    Value old = code.load(element, kernel.pointer(result), at);
    Value update = e.at(op.getUpdates(), place);
    code.store(element, combineUpdate(code, op.getReduction(), element, old, update),
               kernel.pointer(result), at);
  });
}

/// Selection: result k is the best element worse than result k - 1, ties by index. O(n k), stable,
/// no memory.
static void emitTopk(KernelBuilder &kernel, Elements &e, graph::TopkOp op) {
  Code &code = kernel.code();
  Type element = graph::elementOf(op.getX());
  int64_t axis = op.getAxis();
  Values from = e.sizesOf(op.getX()), to = e.sizesOf(op.getValues());
  Values outer(to);
  outer[axis] = code.number(1);
  Indices place(to.size());
  auto isBetter = [&](Value a, Value b) { return isBefore(code, element, op.getLargest(), a, b); };
  forEachPlace(e, outer, place, 0, [&] {
    Value zero = code.constantOf(element, 0);
    foldScoped(e, code.number(0), to[axis], {zero, code.number(-1)}, [&](Value k, ValueRange last) {
      // The best candidate after (last value, last index).
      Values best = foldScoped(
          e, code.number(0), from[axis], {zero, code.number(-1)}, [&](Value i, ValueRange found) {
            Indices here(place);
            here[axis] = e.uniform(i);
            Value x = e.at(op.getX(), here);
            Value isFirst = code.less(last[1], code.number(0));
            Value worse = isBetter(last[0], x), better = isBetter(x, last[0]);
            Value later = code.less(last[1], i);
            Value one = code.integerOf(code.b.getI1Type(), 1);
            Value tie = code.b.create<arith::XOrIOp>(
                code.loc, code.b.create<arith::OrIOp>(code.loc, worse, better), one);
            Value isLeft = code.b.create<arith::OrIOp>(
                code.loc, worse, code.b.create<arith::AndIOp>(code.loc, tie, later));
            isLeft = code.b.create<arith::OrIOp>(code.loc, isLeft, isFirst);
            Value isNone = code.less(found[1], code.number(0));
            Value wins = code.b.create<arith::OrIOp>(code.loc, isNone, isBetter(x, found[0]));
            wins = code.b.create<arith::AndIOp>(code.loc, wins, isLeft);
            return Values{code.b.create<arith::SelectOp>(code.loc, wins, x, found[0]),
                          code.b.create<arith::SelectOp>(code.loc, wins, i, found[1])};
          });
      Indices here(place);
      here[axis] = e.uniform(k);
      e.store(op.getValues(), best[0], here);
      e.store(op.getIndices(), best[1], here);
      return best;
    });
  });
}

LogicalResult emitSerial(KernelBuilder &kernel, Block *group, const Schedule &) {
  Operation *op = &group->front();
  while (isa<graph::ConstantOp>(op))
    op = op->getNextNode();
  if (!isa<graph::ScatterElementsOp, graph::ScatterNdOp, graph::TopkOp>(op))
    return failure();
  if (kernel.isTrial)
    return success();
  kernel.beginPhase();
  kernel.code().lanes = 1;
  Elements e(kernel, group);
  kernel.forEachTask([&](Value) {
    Elements::Scope scope(e);
    if (auto scatter = dyn_cast<graph::ScatterElementsOp>(op))
      emitScatterElements(kernel, e, scatter);
    else if (auto scatter = dyn_cast<graph::ScatterNdOp>(op))
      emitScatterNd(kernel, e, scatter);
    else
      emitTopk(kernel, e, cast<graph::TopkOp>(op));
  });
  kernel.endPhase(Dim(1), Dim(0));
  return success();
}

using Emit = LogicalResult (*)(KernelBuilder &, Block *, const Schedule &);

/// Null for the pointwise form, which is for all groups.
static Emit mechanismOf(StringRef form) {
  return llvm::StringSwitch<Emit>(form)
      .Case("rows", emitRows)
      .Case("contraction", emitContraction)
      .Case("winograd", emitWinograd)
      .Case("stitch", emitStitch)
      .Case("attention", emitAttention)
      .Case("window", emitWindow)
      .Case("serial", emitSerial)
      .Cases("kernel.product", "kernel.rows", emitHandwritten)
      .Default(loop::isLibraryFunction(form) ? emitCall : nullptr);
}

Refusal refusal(Block *group, const Schedule &schedule, const loop::Machine &machine) {
  Emit emit = mechanismOf(schedule.form);
  OwningOpRef<ModuleOp> nowhere = ModuleOp::create(UnknownLoc::get(group->front().getContext()));
  KernelBuilder kernel(*nowhere, "trial", nowhere->getLoc(), machine);
  kernel.isTrial = true;
  if (!emit || succeeded(emit(kernel, group, schedule)))
    return {"", false};
  if (kernel.refusal.empty())
    return {"the mechanism '" + schedule.form + "' does not serve it", false};
  return {kernel.refusal, kernel.isAdvice};
}

StringRef emitGroup(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  Emit emit = mechanismOf(schedule.form);
  emitIndexChecks(kernel, group);
  if (emit && succeeded(emit(kernel, group, schedule)))
    return schedule.form;
  emitPointwise(kernel, group, schedule);
  return "pointwise";
}

} // namespace heddle::lower
