// Control: If, Loop and Scan. Bodies are imported in place; they see the names around them.
//
// Sizes that a body makes have symbols of their own, which nothing outside may use: a result gets a
// fresh symbol wherever its size is not one that was known before the body.

#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/algebra/Stepwise.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// How many fresh symbols there are; those made later are local to what is imported then.
static int64_t symbolCount(Node &n) {
  Operation *top = n.builder.getInsertionBlock()->getParentOp();
  while (top->getParentOp())
    top = top->getParentOp();
  auto counter = top->getAttrOfType<IntegerAttr>(GraphDialect::kSymbolCounter);
  return counter ? counter.getInt() : 0;
}

static bool isLocal(const Dim &dim, int64_t before) {
  SmallVector<std::string> names;
  dim.collectSymbols(names);
  return llvm::any_of(names, [&](StringRef name) {
    int64_t number;
    return name.starts_with("$") && !name.rsplit('.').second.getAsInteger(10, number) &&
           number >= before;
  });
}

/// dims, with a fresh symbol for each size that is local or differs from `other`.
static DimVector outerDims(Node &n, ArrayRef<Dim> dims, ArrayRef<Dim> other, int64_t before,
                           StringRef stem) {
  DimVector result(dims);
  for (size_t i = 0; i < result.size(); ++i)
    if (isLocal(result[i], before) || result[i] != other[i])
      result[i] = n.freshSymbol(stem);
  return result;
}

/// The type of a list that is one of two; null where no list is both.
static Type joined(Node &n, ListType a, ListType b) {
  if (a.getElement() != b.getElement())
    return {};
  // -1: there is no tensor yet; -2: their ranks differ.
  int64_t rank = a.getRank() == b.getRank() || b.getRank() == -1 ? a.getRank()
                 : a.getRank() == -1                             ? b.getRank()
                                                                 : -2;
  StringRef kind = a.getKind();
  if (kind != b.getKind()) {
    if (kind == "optional" || b.getKind() == "optional")
      return {};
    kind = "optional_sequence";
  }
  return listTensor(n.context(), kind, a.getElement(), rank);
}

/// A list as another type of list, and one element in another rank; what is neither stays.
static Value asType(Node &n, Value value, Type type) {
  if (auto list = dyn_cast<ListType>(getElementTypeOrSelf(type)))
    return listOf(value) ? n.asList(value, list.getKind(), list.getRank()) : value;
  bool isOne =
      elementCount(dimsOf(value)).isConstant(1) && elementCount(dimsOf(type)).isConstant(1);
  return isOne ? n.reshape(value, dimsOf(type)) : value;
}

/// The type of result `i`, where branches yield lists, or one element in different ranks: the rank
/// that the model declares, or else the larger one, which broadcasts as the smaller one does.
static Type commonType(Node &n, size_t i, Value x, Value y) {
  if (ListType a = listOf(x), b = listOf(y); a && b)
    return joined(n, a, b);
  auto isOne = [](Value value) { return elementCount(dimsOf(value)).isConstant(1); };
  if (elementOf(x) != elementOf(y) || rankOf(x) == rankOf(y) || !isOne(x) || !isOne(y))
    return {};
  int64_t rank = n.declaredRank(i).value_or(std::max(rankOf(x), rankOf(y)));
  return n.tensor(DimVector(rank, Dim(1)), elementOf(x));
}

static void takeBranch(Node &n, const proto::GraphProto &graph) {
  SmallVector<Value> values = n.reader.readSubgraph(graph, n.scope, {});
  for (auto [i, value] : llvm::enumerate(values))
    if (n.wants(i))
      n.set(i, value);
}

/// PyTorch exports squeeze(axis) as "if the size is 1, Squeeze, else Identity". A tensor has one
/// rank, so the squeeze is taken where the ranks differ; the run refuses a size that is not 1.
static bool isSqueeze(const proto::GraphProto &graph) {
  return graph.output_size() == 1 && llvm::any_of(graph.node(), [&](const proto::NodeProto &node) {
           return node.op_type() == "Squeeze" && node.output_size() == 1 &&
                  node.output(0) == graph.output(0).name();
         });
}

/// Ends both regions of an if, the second of which the builder is in.
static void yieldJoined(Node &n, Region &first, MutableArrayRef<Value> yes,
                        MutableArrayRef<Value> no) {
  SmallVector<Type> types(std::min(yes.size(), no.size()));
  for (auto [i, type] : llvm::enumerate(types))
    type = commonType(n, i, yes[i], no[i]);
  auto finish = [&](MutableArrayRef<Value> values) {
    for (auto [value, type] : llvm::zip(values, types))
      if (type)
        value = asType(n, value, type);
    n.yield(values);
  };
  finish(no);
  OpBuilder::InsertionGuard guard(n.builder);
  n.builder.setInsertionPointToEnd(&first.front());
  finish(yes);
}

static void importIf(Node &n) {
  Value condition = n.reshape(n.in(0), {});
  const auto &thenGraph = n.getGraph("then_branch"), &elseGraph = n.getGraph("else_branch");
  if (auto known = shapeValue(condition); known && (*known)[0].constant())
    return takeBranch(n, (*known)[0].isConstant(0) ? elseGraph : thenGraph);
  int64_t before = symbolCount(n);
  // The regions are filled before the op exists, for only they tell the types of its results.
  Region regions[2];
  SmallVector<Value> yielded[2];
  const proto::GraphProto *graphs[2] = {&thenGraph, &elseGraph};
  for (int i = 0; i < 2; ++i) {
    OpBuilder::InsertionGuard guard(n.builder);
    OperationState holder(n.location, IfOp::getOperationName());
    // A placeholder keeps the region inside of the module while it is filled.
    holder.addOperands(condition);
    holder.addRegion();
    holder.addRegion();
    Operation *placeholder = n.builder.create(holder);
    n.beginRegion(placeholder, 0, {});
    yielded[i] = n.reader.readSubgraph(*graphs[i], n.scope, {});
    // Lists of the second branch are made those of the first; the first one's end comes later.
    if (i == 1)
      yieldJoined(n, regions[0], yielded[0], yielded[1]);
    regions[i].takeBody(placeholder->getRegion(0));
    placeholder->erase();
  }
  if (yielded[0].size() != yielded[1].size() || yielded[0].size() < n.outputs())
    refuse("the branches have " + Twine(yielded[0].size()) + " and " + Twine(yielded[1].size()) +
           " outputs, but the node has " + Twine(n.outputs()));
  SmallVector<Type> types;
  for (auto [x, y] : llvm::zip(yielded[0], yielded[1])) {
    if (rankOf(x) < rankOf(y) && isSqueeze(thenGraph))
      return takeBranch(n, thenGraph);
    if (elementOf(x) != elementOf(y) || rankOf(x) != rankOf(y))
      refuse("the branches yield " + nameOf(elementOf(x)) + textOf(dimsOf(x)) + " and " +
                 nameOf(elementOf(y)) + textOf(dimsOf(y)) + " for one result",
             "branches of different ranks are supported only where the condition is constant");
    types.push_back(n.tensor(outerDims(n, dimsOf(x), dimsOf(y), before, "if"), elementOf(x)));
  }
  OperationState state(n.location, IfOp::getOperationName(), condition, types);
  for (Region &region : regions)
    state.addRegion()->takeBody(region);
  Operation *op = n.emit(state);
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
    if (Type both = list && listOf(value) ? joined(n, list, listOf(value)) : Type()) {
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

/// The value of which reshapes made this one.
static Value reshaped(Value value) {
  while (auto op = value.getDefiningOp<ReshapeOp>())
    value = op.getOperand();
  return value;
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
       "branches of one rank, unless the condition is constant, one is a squeeze, or both yield "
       "one element"},
      {"Loop", "", 1, 27, importLoop, false, "carried values keep their rank"},
      {"Scan", "", 8, 27, importScan, false, "carried values keep their rank"},
  };
  return rows;
}

} // namespace heddle::onnx
