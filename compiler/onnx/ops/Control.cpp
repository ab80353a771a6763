// Control: If, Loop and Scan. Bodies are imported in place; they see the names around them.
//
// Sizes that a body makes have symbols of their own, which nothing outside may use: a result gets a
// fresh symbol wherever its size is not one that was known before the body.

#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/algebra/Stepwise.h"
#include "compiler/onnx/ranks/Branches.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// The type of result `i`, where branches yield lists, or one element in different ranks: the rank
/// that the model declares, or else the larger one, which broadcasts as the smaller one does.
static Type commonType(Node &n, size_t i, Value x, Value y) {
  if (ListType a = listOf(x), b = listOf(y); a && b)
    return joinedList(n, a, b);
  auto isOne = [](Value value) { return elementCount(dimsOf(value)).isConstant(1); };
  if (elementOf(x) != elementOf(y) || rankOf(x) == rankOf(y) || !isOne(x) || !isOne(y))
    return {};
  int64_t rank = n.declaredRank(i).value_or(std::max(rankOf(x), rankOf(y)));
  return n.tensor(DimVector(rank, Dim(1)), elementOf(x));
}

/// The value before reshapes.
static Value reshaped(Value value) {
  while (auto op = value.getDefiningOp<ReshapeOp>())
    value = op.getOperand();
  return value;
}

static void takeBranch(Node &n, const proto::GraphProto &graph) {
  SmallVector<Value> values = n.reader.readSubgraph(graph, n.scope, {});
  for (auto [i, value] : llvm::enumerate(values))
    if (n.wants(i))
      n.set(i, value);
}

/// The size that is compared with 1, where the condition is nothing else.
static std::optional<Dim> sizeComparedWithOne(Value condition) {
  auto equal = reshaped(condition).getDefiningOp<EqualOp>();
  if (!equal)
    return std::nullopt;
  auto x = shapeValue(equal->getOperand(0)), y = shapeValue(equal->getOperand(1));
  if (!x || !y || x->size() != 1 || y->size() != 1)
    return std::nullopt;
  return (*x)[0].isConstant(1) ? (*y)[0] : (*y)[0].isConstant(1) ? (*x)[0] : std::optional<Dim>();
}

static void importIf(Node &n) {
  Value condition = n.reshape(n.in(0), {});
  const proto::GraphProto *graphs[2] = {&n.getGraph("then_branch"), &n.getGraph("else_branch")};
  if (auto known = shapeValue(condition); known && (*known)[0].constant())
    return takeBranch(n, *graphs[(*known)[0].isConstant(0)]);
  Question question = holds(n.in(0), nodeName(n.message));
  std::optional<bool> likely;
  if (auto size = sizeComparedWithOne(n.in(0))) { // as PyTorch exports squeeze(axis)
    question = isOne(*size);
    likely = true;
  }
  if (auto answer = n.reader.answered(n, question))
    return takeBranch(n, *graphs[!*answer]);
  Branches branches(n, condition);
  for (int i : {0, 1})
    branches.fill(i, [&] { return n.reader.readSubgraph(*graphs[i], n.scope, {}); });
  size_t counts[2] = {branches.yielded[0].size(), branches.yielded[1].size()};
  if (counts[0] != counts[1] || counts[0] < n.outputs())
    refuse("the branches have " + Twine(counts[0]) + " and " + Twine(counts[1]) +
           " outputs, but the node has " + Twine(n.outputs()));
  branches.join([&](size_t i, Value x, Value y) { return commonType(n, i, x, y); });
  bool isOfOneRank = llvm::all_of(llvm::zip(branches.yielded[0], branches.yielded[1]), [](auto xy) {
    return rankOf(std::get<0>(xy)) == rankOf(std::get<1>(xy));
  });
  if (!isOfOneRank)
    return takeBranch(n, *graphs[!n.reader.ask(n, question, likely)]);
  Operation *op = branches.make();
  for (size_t i = 0; i < n.outputs(); ++i)
    n.set(i, op->getResult(i));
}

namespace {
/// A body with carried values, imported again with more general sizes until they hold for every
/// iteration.
struct Body {
  const proto::GraphProto &graph;
  SmallVector<Type> leading; // arguments before the carried ones
  SmallVector<Type> carried;
  SmallVector<Type> trailing; // arguments after them
  size_t skipped;             // yielded values before the carried ones
  StringRef stem;
  SmallVector<Value> yielded;
  int64_t start = 0; // symbols when the first import began
};
} // namespace

/// Gives a fresh symbol to every size of `carried` that the body changes; whether there was any.
static bool generalise(Node &n, Body &body) {
  bool changed = false;
  for (auto [i, type] : llvm::enumerate(body.carried)) {
    Value value = body.yielded[body.skipped + i];
    auto list = dyn_cast<ListType>(getElementTypeOrSelf(type));
    if (Type both = list && listOf(value) ? joinedList(n, list, listOf(value)) : Type()) {
      changed |= both != type;
      type = both;
      continue;
    }
    DimVector argument = dimsOf(type), result = dimsOf(value);
    if (argument.size() != result.size() ||
        elementOf(value) != cast<RankedTensorType>(type).getElementType())
      refuse("carried value " + Twine(i) + " begins as " + textOf(argument) +
             ", but an iteration makes it " + nameOf(elementOf(value)) + textOf(result));
    bool differs = false;
    for (auto [size, next] : llvm::zip(argument, result)) {
      bool isGeneral = isLocal(size, body.start);
      if (size == next || isGeneral)
        continue;
      size = n.freshSymbol(body.stem);
      differs = true;
    }
    if (differs)
      type = n.tensor(argument, elementOf(value));
    changed |= differs;
  }
  return changed;
}

/// Values of one element in the rank that the body declares for them: exporters give the counter of
/// a loop, and its condition, the shape [1].
static void declareLeading(Node &n, const Body &body, MutableArrayRef<Value> inside) {
  for (size_t i = 0; i < body.leading.size() && (int)i < body.graph.input_size(); ++i) {
    const auto &type = body.graph.input(i).type().tensor_type();
    if (type.has_shape() && type.shape().dim_size() == 1)
      inside[i] = n.reshape(inside[i], {Dim(1)});
  }
}

/// Fills region 0 of `op`, whose carried types may become more general meanwhile.
static void importBody(Node &n, Operation *op, Body &body) {
  body.start = symbolCount(n);
  for (;;) {
    OpBuilder::InsertionGuard guard(n.builder);
    SmallVector<Type> arguments(body.leading);
    arguments.append(body.carried);
    arguments.append(body.trailing);
    SmallVector<Value> inside = n.beginRegion(op, 0, arguments);
    declareLeading(n, body, inside);
    body.yielded = n.reader.readSubgraph(body.graph, n.scope, inside);
    if (body.yielded.size() < body.skipped + body.carried.size())
      refuse("the body has " + Twine(body.yielded.size()) + " outputs, but needs at least " +
             Twine(body.skipped + body.carried.size()));
    if (!generalise(n, body)) {
      for (auto [i, type] : llvm::enumerate(body.carried))
        body.yielded[body.skipped + i] = asType(n, body.yielded[body.skipped + i], type);
      if (body.skipped) // the condition
        body.yielded[0] = asType(n, body.yielded[0], body.leading[1]);
      n.yield(body.yielded);
      return;
    }
    op->getRegion(0).getBlocks().clear();
  }
}

/// Type of a carried value after the loop.
static Type carriedResult(Node &n, const Body &body, size_t i, Value init) {
  if (listOf(init))
    return body.carried[i];
  DimVector argument = dimsOf(body.carried[i]), initial = dimsOf(init);
  for (auto [size, first] : llvm::zip(argument, initial))
    if (size != first)
      size = n.freshSymbol(body.stem);
  return n.tensor(argument, elementOf(init));
}

static Type stackedResult(Node &n, const Body &body, Value each, const Dim &count) {
  if (listOf(each))
    refuse("sequences cannot be stacked");
  DimVector own = dimsOf(each), dims = {count};
  dims.append(outerDims(n, own, own, body.start, body.stem));
  return n.tensor(dims, elementOf(each));
}

static bool isTrue(Value value) {
  auto known = shapeValue(value);
  return known && known->size() == 1 && (*known)[0].isConstant(1);
}

/// Makes the op anew with its final result types around the filled body. Carried values are in
/// the operands from `carried` on.
static Operation *finish(Node &n, Operation *draft, const Body &body, size_t carried,
                         ArrayRef<Type> results, ArrayRef<NamedAttribute> attributes) {
  SmallVector<Value> operands(draft->getOperands());
  for (auto [i, type] : llvm::enumerate(body.carried))
    operands[carried + i] = asType(n, operands[carried + i], type);
  OperationState state(n.location, draft->getName().getStringRef(), operands, results, attributes);
  state.addRegion()->takeBody(draft->getRegion(0));
  draft->erase();
  return n.emit(state);
}

static void importLoop(Node &n) {
  if (n.inputs() < 2)
    refuse("it needs at least the inputs M and cond");
  Value trips =
      n.has(0) ? n.reshape(n.cast(n.in(0), n.i64()), {}) : n.integerScalar(n.i64(), INT64_MAX);
  Value condition = n.has(1) ? n.reshape(n.in(1), {}) : n.integerScalar(n.i1(), 1);
  SmallVector<Value> operands = {trips, condition};
  Body body{
      n.getGraph("body"), {n.tensor({}, n.i64()), n.tensor({}, n.i1())}, {}, {}, 1, "loop", {}};
  for (size_t i = 2; i < n.inputs(); ++i) {
    operands.push_back(n.in(i));
    body.carried.push_back(n.in(i).getType());
  }
  OperationState state(n.location, LoopOp::getOperationName(), operands, {});
  state.addRegion();
  Operation *draft = n.builder.create(state);
  importBody(n, draft, body);

  size_t carried = body.carried.size();
  size_t stacked = body.yielded.size() - 1 - carried;
  Value again = body.yielded[0], given = draft->getRegion(0).getArgument(1);
  bool runsAll = isTrue(condition) && (reshaped(again) == given || isTrue(again));
  auto count = n.has(0) && runsAll ? shapeValue(trips) : std::nullopt;
  Dim iterations = count ? Dim::max((*count)[0], Dim(0)) : n.freshSymbol("loop");
  SmallVector<Type> results;
  for (size_t i = 0; i < carried; ++i)
    results.push_back(carriedResult(n, body, i, operands[2 + i]));
  for (size_t i = 0; i < stacked; ++i)
    results.push_back(stackedResult(n, body, body.yielded[1 + carried + i], iterations));
  Operation *op = finish(n, draft, body, 2, results, {n.integer("scan_count", stacked)});
  for (size_t i = 0; i < std::min<size_t>(n.outputs(), results.size()); ++i)
    n.set(i, op->getResult(i));
}

/// Permutation that moves `axis` to the front, or back.
static Ints axisToFront(int64_t axis, int64_t rank, bool back) {
  Ints order;
  for (int64_t i = 0; i < rank; ++i) {
    if (back)
      order.push_back(i < axis ? i + 1 : i == axis ? 0 : i);
    else
      order.push_back(i == 0 ? axis : i <= axis ? i - 1 : i);
  }
  return order;
}

static void importScan(Node &n) {
  if (n.opset < 9)
    return importBatchedScan(n);
  int64_t scanned = n.getInt("num_scan_inputs", 0), states = n.inputs() - scanned;
  if (scanned < 1 || states < 0)
    refuse("'num_scan_inputs' is " + Twine(scanned) + ", but the node has " + Twine(n.inputs()) +
           " inputs");
  Ints inputAxes = n.getInts("scan_input_axes", Ints(scanned, 0));
  Ints inputDirections = n.getInts("scan_input_directions", Ints(scanned, 0));
  if ((int64_t)inputAxes.size() != scanned || (int64_t)inputDirections.size() != scanned)
    refuse("'scan_input_axes' and 'scan_input_directions' need " + Twine(scanned) + " entries");
  SmallVector<Value> operands;
  Body body{n.getGraph("body"), {}, {}, {}, 0, "scan", {}};
  for (int64_t i = 0; i < states; ++i) {
    operands.push_back(n.in(i));
    body.carried.push_back(n.in(i).getType());
  }
  Ints reversedInputs, reversedOutputs;
  for (int64_t i = 0; i < scanned; ++i) {
    Value x = n.in(states + i);
    if (rankOf(x) == 0)
      refuse("input " + Twine(states + i) + " is a scalar, which has no axis to scan");
    x = n.transpose(x, axisToFront(n.axis(inputAxes[i], rankOf(x)), rankOf(x), false));
    operands.push_back(x);
    body.trailing.push_back(n.tensor(ArrayRef<Dim>(dimsOf(x)).drop_front(), elementOf(x)));
    if (inputDirections[i])
      reversedInputs.push_back(i);
  }
  OperationState state(n.location, ScanOp::getOperationName(), operands, {},
                       {n.integer("state_count", states)});
  state.addRegion();
  Operation *draft = n.builder.create(state);
  importBody(n, draft, body);

  int64_t stacked = body.yielded.size() - states;
  Ints outputDirections = n.getInts("scan_output_directions", Ints(stacked, 0));
  Ints outputAxes = n.getInts("scan_output_axes", Ints(stacked, 0));
  if ((int64_t)outputAxes.size() != stacked || (int64_t)outputDirections.size() != stacked)
    refuse("'scan_output_axes' and 'scan_output_directions' need " + Twine(stacked) + " entries");
  Dim length = dimsOf(operands[states])[0];
  SmallVector<Type> results;
  for (int64_t i = 0; i < states; ++i)
    results.push_back(carriedResult(n, body, i, operands[i]));
  for (int64_t i = 0; i < stacked; ++i) {
    results.push_back(stackedResult(n, body, body.yielded[states + i], length));
    if (outputDirections[i])
      reversedOutputs.push_back(i);
  }
  Operation *op =
      finish(n, draft, body, 0, results,
             {n.integer("state_count", states), n.list("reverse_inputs", reversedInputs),
              n.list("reverse_outputs", reversedOutputs)});
  for (int64_t i = 0; i < (int64_t)std::min<size_t>(n.outputs(), results.size()); ++i) {
    Value value = op->getResult(i);
    if (i >= states) {
      int64_t rank = rankOf(value), axis = n.axis(outputAxes[i - states], rank);
      value = n.transpose(value, axisToFront(axis, rank, true));
    }
    n.set(i, value);
  }
}

OpRows controlRows() {
  static const OpRow rows[] = {
      {"If", "", 1, 27, importIf, false,
       "branches of one rank inside of other branches and of loops"},
      {"Loop", "", 1, 27, importLoop, false, "carried values keep their rank"},
      {"Scan", "", 8, 27, importScan, false, "carried values keep their rank"},
  };
  return rows;
}

} // namespace heddle::onnx
