// Serial: ops whose elements depend on each other in order: a scatter, one task since its updates
// may meet in one place.

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

static void copyAll(KernelBuilder &kernel, Elements &e, Value from, Value to) {
  Code &code = kernel.code();
  Value bytes = code.mul(kernel.dim(graph::elementCount(graph::dimsOf(from))),
                         code.number(graph::bytesOf(graph::elementOf(from))));
  code.b.create<program::CopyOp>(code.loc, kernel.pointer(to), kernel.pointer(from), bytes);
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
  // A slice of the target, as long as what its tuple leaves open.
  DimVector open = graph::dimsOf(op.getX());
  Dim length = graph::elementCount(ArrayRef<Dim>(open).drop_front(depth));
  Value inner = kernel.dim(length), step = code.number(graph::bytesOf(element));
  bool isCopied = op.getReduction() == "none" && !length.isConstant(1);
  Indices place(tuples);
  forEachPlace(e, ArrayRef<Value>(sizes).take_front(tuples), place, 0, [&] {
    Indices where;
    for (int64_t k = 0; k < depth; ++k) {
      Indices tuple(place);
      tuple.push_back(e.uniform(code.number(k)));
      where.push_back(e.uniform(legalPlace(e, e.at(op.getIndices(), tuple), target[k])));
    }
    where.append(target.size() - depth, e.uniform(code.number(0)));
    Indices whole(place);
    whole.append(sizes.size() - tuples, e.uniform(code.number(0)));
    Value at = e.linear(target, where).base;
    Value from = e.linear(sizes, whole).base;
    if (isCopied) {
      code.b.create<program::CopyOp>(code.loc, code.at(kernel.pointer(result), element, at),
                                     code.at(kernel.pointer(op.getUpdates()), element, from),
                                     code.mul(inner, step));
      return;
    }
    code.forEach(code.number(0), inner, 1, [&](Value i) {
      Value to = code.add(at, i);
      Value old = code.load(element, kernel.pointer(result), to);
      Value update = code.load(element, kernel.pointer(op.getUpdates()), code.add(from, i));
      code.store(element, combineUpdate(code, op.getReduction(), element, old, update),
                 kernel.pointer(result), to);
    });
  });
}

LogicalResult emitSerial(KernelBuilder &kernel, Block *group, const Schedule &) {
  Operation *op = &group->front();
  while (isa<graph::ConstantOp>(op))
    op = op->getNextNode();
  if (!isa<graph::ScatterElementsOp, graph::ScatterNdOp>(op))
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
    else
      emitScatterNd(kernel, e, cast<graph::ScatterNdOp>(op));
  });
  kernel.endPhase(Dim(1), Dim(0));
  return success();
}

} // namespace heddle::lower
