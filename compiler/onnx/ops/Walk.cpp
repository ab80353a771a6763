// Walk: the region of a graph.scan is filled first, for it tells the types of the results.

#include "compiler/onnx/ops/Walk.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// Sizes of x's slice in an iteration; refuses a scalar.
static DimVector rowOf(Value x) {
  DimVector dims = dimsOf(x);
  dims.erase(&dims.front());
  return dims;
}

SmallVector<Value> walk(Emitter &e, ArrayRef<Value> states, ArrayRef<Value> scanned, Step step,
                        bool reverse) {
  SmallVector<Value> operands(states);
  operands.append(scanned.begin(), scanned.end());
  SmallVector<Type> arguments, results;
  for (Value state : states)
    arguments.push_back(state.getType());
  for (Value x : scanned)
    arguments.push_back(e.tensor(rowOf(x), elementOf(x)));
  OperationState draftState(e.location, ScanOp::getOperationName(), operands, {},
                            {e.integer("state_count", states.size())});
  draftState.addRegion();
  Operation *draft = e.builder.create(draftState);
  SmallVector<Value> yielded;
  {
    OpBuilder::InsertionGuard guard(e.builder);
    SmallVector<Value> inside = e.beginRegion(draft, 0, arguments);
    yielded = step(ArrayRef<Value>(inside).take_front(states.size()),
                   ArrayRef<Value>(inside).drop_front(states.size()));
    for (size_t i = 0; i < states.size(); ++i)
      yielded[i] = e.broadcast(yielded[i], dimsOf(states[i]));
    e.yield(yielded);
  }
  Ints reversed;
  for (size_t i = 0; i < yielded.size(); ++i) {
    if (i < states.size()) {
      results.push_back(states[i].getType());
      continue;
    }
    DimVector dims = {dimsOf(scanned[0])[0]};
    dims.append(dimsOf(yielded[i]));
    results.push_back(e.tensor(dims, elementOf(yielded[i])));
    reversed.push_back(i - states.size());
  }
  Ints reversedInputs = llvm::to_vector(llvm::seq<int64_t>(0, scanned.size()));
  OperationState state(e.location, ScanOp::getOperationName(), operands, results,
                       {e.integer("state_count", states.size()),
                        e.list("reverse_inputs", reverse ? reversedInputs : Ints()),
                        e.list("reverse_outputs", reverse ? reversed : Ints())});
  state.addRegion()->takeBody(draft->getRegion(0));
  draft->erase();
  Operation *scan = e.emit(state);
  return SmallVector<Value>(scan->getResults());
}

SmallVector<Value> repeat(Emitter &e, Value count, ArrayRef<Value> states, Round step) {
  Value always = e.integerScalar(e.i1(), 1);
  SmallVector<Value> operands = {count, always};
  operands.append(states.begin(), states.end());
  SmallVector<Type> arguments = {e.tensor({}, e.i64()), e.tensor({}, e.i1())}, results;
  for (Value state : states)
    results.push_back(state.getType());
  arguments.append(results);
  OperationState loopState(e.location, LoopOp::getOperationName(), operands, results,
                           {e.integer("scan_count", 0)});
  loopState.addRegion();
  Operation *loop = e.builder.create(loopState);
  {
    OpBuilder::InsertionGuard guard(e.builder);
    SmallVector<Value> inside = e.beginRegion(loop, 0, arguments);
    SmallVector<Value> yielded = step(inside[0], ArrayRef<Value>(inside).drop_front(2));
    if (yielded.size() == states.size())
      yielded.push_back(inside[1]);
    std::rotate(yielded.begin(), yielded.end() - 1, yielded.end());
    for (size_t i = 0; i < states.size(); ++i)
      yielded[i + 1] = e.broadcast(yielded[i + 1], dimsOf(states[i]));
    e.yield(yielded);
  }
  e.check(loop);
  return SmallVector<Value>(loop->getResults());
}

static Value chooseAxis(Emitter &e, Value axis, int64_t next, int64_t rank,
                        llvm::function_ref<Value(int64_t)> make) {
  if (next == rank - 1)
    return make(next);
  Value isThis = e.compare<EqualOp>(axis, e.integerScalar(e.i64(), next));
  OperationState state(e.location, IfOp::getOperationName(), isThis, {});
  state.addRegion();
  state.addRegion();
  Operation *draft = e.builder.create(state);
  Type types[2];
  for (unsigned region : {0, 1}) {
    OpBuilder::InsertionGuard guard(e.builder);
    e.beginRegion(draft, region, {});
    Value value = region ? chooseAxis(e, axis, next + 1, rank, make) : make(next);
    types[region] = value.getType();
    e.yield(value);
  }
  DimVector dims = dimsOf(types[0]);
  for (auto [size, other] : llvm::zip(dims, dimsOf(types[1])))
    if (size != other)
      size = e.freshSymbol("axis");
  Type type = e.tensor(dims, cast<RankedTensorType>(types[0]).getElementType());
  OperationState whole(e.location, IfOp::getOperationName(), isThis, type);
  for (unsigned region : {0, 1})
    whole.addRegion()->takeBody(draft->getRegion(region));
  draft->erase();
  return e.emit(whole)->getResult(0);
}

Value onAxis(Emitter &e, Value axis, int64_t rank, llvm::function_ref<Value(int64_t)> make) {
  if (elementCount(dimsOf(axis)).constant().value_or(1) != 1)
    refuse("'axis' must be one integer, but has the shape " + textOf(dimsOf(axis)));
  if (rank < 1)
    refuse("a scalar has no axis");
  axis = e.cast(e.reshape(axis, {}), e.i64());
  auto known = shapeValue(axis);
  if (known && (*known)[0].constant()) {
    int64_t value = *(*known)[0].constant();
    if (value < -rank || value >= rank)
      refuse("axis " + Twine(value) + " is outside of rank " + Twine(rank));
    return make(value < 0 ? value + rank : value);
  }
  Value wrapped = e.add(axis, e.integerScalar(e.i64(), rank));
  Value isNegative = e.compare<LessOp>(axis, e.integerScalar(e.i64(), 0));
  axis = e.select(isNegative, wrapped, axis);
  Value above = e.sub(e.integerScalar(e.i64(), rank - 1), axis);
  e.requireNotNegative(e.binary<MinOp>(axis, above),
                       "an axis is outside of rank " + Twine(rank) + " by %lld");
  return chooseAxis(e, axis, 0, rank, make);
}

Value axisToFront(Emitter &e, Value x, int64_t axis) {
  Ints order = {axis};
  for (int64_t i = 0; i < rankOf(x); ++i)
    if (i != axis)
      order.push_back(i);
  return e.transpose(x, order);
}

Value frontToAxis(Emitter &e, Value x, int64_t axis) {
  Ints order = llvm::to_vector(llvm::seq<int64_t>(1, rankOf(x)));
  order.insert(order.begin() + axis, 0);
  return e.transpose(x, order);
}

} // namespace heddle::onnx
