// Sequences: sequences and optionals of tensors, which are lists in the graph. An element of a list
// has sizes known only at run time; its rank is the list's, or the declared one.

#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static ListType listIn(Node &n, size_t i) {
  ListType list = listOf(n.in(i));
  if (!list)
    refuse("input " + Twine(i) + " is " + nameOf(elementOf(n.in(i))) +
           ", but must be a sequence or an optional");
  return list;
}

static Value position(Node &n, size_t i) { return n.has(i) ? n.reshape(n.in(i), {}) : Value(); }

static SmallVector<Value> operandsOf(std::initializer_list<Value> values) {
  SmallVector<Value> given;
  llvm::copy_if(values, std::back_inserter(given), [](Value value) { return value; });
  return given;
}

/// A tensor of unknown sizes that comes out of list operand 0.
static RankedTensorType takenOut(Node &n, ListType list, int64_t more) {
  int64_t rank = list.getRank() < 0 ? list.getRank() : list.getRank() + more;
  if (rank < 0)
    rank = n.declaredRank(0).value_or(-1);
  if (rank < 0)
    refuse("the rank of the tensors in the sequence is not known",
           "declare the shape of '" + n.message.output(0) + "' in the model's value_info");
  DimVector dims;
  for (int64_t i = 0; i < rank; ++i)
    dims.push_back(n.freshSymbol("taken"));
  return n.tensor(dims, list.getElement());
}

static Type listOfKind(Node &n, StringRef kind, Type element, int64_t rank) {
  return listTensor(n.context(), kind, element, rank);
}

static void importSequenceEmpty(Node &n) {
  n.set(n.typed<ListMakeOp>(listOfKind(n, "sequence", n.getElement("dtype", n.f32()), -1), {}));
}

static void importSequenceConstruct(Node &n) {
  int64_t rank = rankOf(n.in(0));
  for (size_t i = 0; i < n.inputs(); ++i) {
    if (listOf(n.in(i)))
      refuse("sequences of sequences are not supported");
    if (rankOf(n.in(i)) != rank)
      rank = -2;
  }
  Type type = listOfKind(n, "sequence", elementOf(n.in(0)), rank);
  n.set(n.typed<ListMakeOp>(type, n.operands));
}

static void importSequenceInsert(Node &n) {
  ListType list = listIn(n, 0);
  int64_t own = rankOf(n.in(1)), rank = list.getRank();
  Type type = listOfKind(n, "sequence", list.getElement(), rank == -1 || rank == own ? own : -2);
  n.set(n.typed<ListInsertOp>(type, operandsOf({n.in(0), n.in(1), position(n, 2)})));
}

static void importSequenceErase(Node &n) {
  listIn(n, 0);
  n.set(n.typed<ListEraseOp>(n.in(0).getType(), operandsOf({n.in(0), position(n, 1)})));
}

static void importSequenceAt(Node &n) {
  Type type = takenOut(n, listIn(n, 0), 0);
  n.set(n.typed<ListAtOp>(type, {n.in(0), n.reshape(n.in(1), {})}));
}

static void importSequenceLength(Node &n) {
  listIn(n, 0);
  n.set(n.typed<ListLengthOp>(n.tensor({}, n.i64()), n.in(0)));
}

static void importConcatFromSequence(Node &n) {
  bool isNew = n.getInt("new_axis", 0);
  RankedTensorType type = takenOut(n, listIn(n, 0), isNew);
  int64_t axis = n.axis(n.getInt("axis", 0), type.getRank());
  n.set(n.typed<ListConcatOp>(type, n.in(0), {n.integer("axis", axis), n.flag("new_axis", isNew)}));
}

static void importSplitToSequence(Node &n) {
  Value x = n.in(0), sizes = n.has(1) ? n.cast(n.in(1), n.i64()) : Value();
  int64_t rank = rankOf(x), axis = n.axis(n.getInt("axis", 0), rank);
  // The attribute does not count if there are sizes.
  bool keepDims = sizes || n.getInt("keepdims", 1);
  Type type = listOfKind(n, "sequence", elementOf(x), keepDims ? rank : rank - 1);
  n.set(n.typed<ListSplitOp>(type, operandsOf({x, sizes}),
                             {n.integer("axis", axis), n.flag("keep_dims", keepDims)}));
}

static void importOptional(Node &n) {
  if (n.has(0) && listOf(n.in(0)))
    return n.set(n.asList(n.in(0), "optional_sequence", listIn(n, 0).getRank()));
  if (n.has(0)) {
    Type type = listOfKind(n, "optional", elementOf(n.in(0)), rankOf(n.in(0)));
    return n.set(n.typed<ListMakeOp>(type, n.in(0)));
  }
  const auto *type = n.attribute("type");
  if (!type || !type->has_tp())
    refuse("it needs an input or the attribute 'type'");
  proto::TypeProto optional;
  *optional.mutable_optional_type()->mutable_elem_type() = type->tp();
  ListType list = cast<ListType>(getElementTypeOrSelf(n.reader.listType(optional)));
  n.set(n.typed<ListMakeOp>(listOfKind(n, list.getKind(), list.getElement(), -1), {}));
}

static void importOptionalHasElement(Node &n) {
  bool isThere = n.has(0);
  if (!isThere || !listOf(n.in(0)) || listIn(n, 0).getKind() == "sequence")
    return n.set(n.integerScalar(n.i1(), isThere));
  Value length = n.typed<ListLengthOp>(n.tensor({}, n.i64()), n.in(0));
  n.set(n.compare<GreaterEqualOp>(length, n.integerScalar(n.i64(), 0)));
}

static void importOptionalGetElement(Node &n) {
  ListType list = listOf(n.in(0));
  if (!list)
    return n.set(n.in(0));
  if (list.getKind() != "optional")
    return n.set(n.asList(n.in(0), "sequence", list.getRank()));
  n.set(n.typed<ListAtOp>(takenOut(n, list, 0), n.in(0)));
}

/// A loop over the first sequence, whose body takes one tensor of each sequence and puts its
/// results at the end of lists.
static void importSequenceMap(Node &n) {
  const proto::GraphProto &graph = n.getGraph("body");
  listIn(n, 0);
  Value trips = n.typed<ListLengthOp>(n.tensor({}, n.i64()), n.in(0));
  if ((size_t)graph.input_size() != n.inputs())
    refuse("the body takes " + Twine(graph.input_size()) + " inputs, but the node has " +
           Twine(n.inputs()));
  SmallVector<Value> operands = {trips, n.integerScalar(n.i1(), 1)};
  OperationState state(n.location, LoopOp::getOperationName(), operands, {});
  state.addRegion();
  Operation *draft = n.builder.create(state);
  SmallVector<Type> types;
  {
    OpBuilder::InsertionGuard guard(n.builder);
    SmallVector<Value> arguments =
        n.beginRegion(draft, 0, {n.tensor({}, n.i64()), n.tensor({}, n.i1())});
    SmallVector<Value> given;
    for (size_t i = 0; i < n.inputs(); ++i) {
      ListType list = listOf(n.in(i));
      if (!list) {
        given.push_back(n.in(i));
        continue;
      }
      int64_t rank = list.getRank();
      if (rank < 0)
        if (const auto &type = graph.input(i).type().tensor_type(); type.has_shape())
          rank = type.shape().dim_size();
      if (rank < 0)
        refuse("the rank of the tensors in input " + Twine(i) + " is not known",
               "declare the shape of '" + graph.input(i).name() + "' in the body");
      DimVector dims;
      for (int64_t d = 0; d < rank; ++d)
        dims.push_back(n.freshSymbol("taken"));
      given.push_back(
          n.typed<ListAtOp>(n.tensor(dims, list.getElement()), {n.in(i), arguments[0]}));
    }
    SmallVector<Value> yielded = {arguments[1]};
    for (Value value : n.reader.readSubgraph(graph, n.scope, given)) {
      if (listOf(value))
        refuse("the body yields a sequence, but must yield tensors");
      types.push_back(listOfKind(n, "sequence", elementOf(value), rankOf(value)));
      Value grown = draft->getRegion(0).front().addArgument(types.back(), n.location);
      yielded.push_back(n.typed<ListInsertOp>(types.back(), {grown, value}));
    }
    n.yield(yielded);
  }
  for (Type type : types)
    operands.push_back(n.typed<ListMakeOp>(type, {}));
  OperationState whole(n.location, LoopOp::getOperationName(), operands, types,
                       {n.integer("scan_count", 0)});
  whole.addRegion()->takeBody(draft->getRegion(0));
  draft->erase();
  Operation *op = n.emit(whole);
  for (size_t i = 0; i < std::min<size_t>(n.outputs(), types.size()); ++i)
    n.set(i, op->getResult(i));
}

OpRows sequenceRows() {
  static const char rank[] = "the rank of what is taken out must be known or declared";
  static const OpRow rows[] = {
      {"SequenceEmpty", "", 11, 27, importSequenceEmpty},
      {"SequenceConstruct", "", 11, 27, importSequenceConstruct},
      {"SequenceInsert", "", 11, 27, importSequenceInsert},
      {"SequenceErase", "", 11, 27, importSequenceErase},
      {"SequenceAt", "", 11, 27, importSequenceAt, false, rank},
      {"SequenceLength", "", 11, 27, importSequenceLength},
      {"SequenceMap", "", 17, 27, importSequenceMap},
      {"ConcatFromSequence", "", 11, 27, importConcatFromSequence, false, rank},
      {"SplitToSequence", "", 11, 27, importSplitToSequence},
      {"Optional", "", 15, 27, importOptional},
      {"OptionalHasElement", "", 15, 27, importOptionalHasElement},
      {"OptionalGetElement", "", 15, 27, importOptionalGetElement, false, rank},
  };
  return rows;
}

} // namespace heddle::onnx
