// RoutineOps: what operands and results of routines must be. Generated code hands them to C code
// as they are, so all that this relies on is checked here.

#include "compiler/graph/Graph.h"

using namespace mlir;

namespace heddle::graph {

/// AX1: `axis` is a dimension of x.
static LogicalResult checkAxis(Operation *op, int64_t axis, int64_t rank) {
  if (axis >= 0 && axis < rank)
    return success();
  return op->emitOpError("AX1: axis ") << axis << " is outside of rank " << rank;
}

/// RT1: a tensor of this element type and rank.
static LogicalResult checkTensor(Operation *op, Value value, Type element, int64_t rank,
                                 StringRef what) {
  if (elementOf(value) == element && rankOf(value) == rank)
    return success();
  return op->emitOpError("RT1: ") << what << " must be of " << element << " and rank " << rank
                                  << ", but is " << value.getType();
}

/// RT3: elements that a routine can order or add: as wide as they are in memory.
static LogicalResult checkElement(Operation *op, Value x) {
  Type element = elementOf(x);
  bool isNumber = element.isF16() || element.isBF16() || element.isF32() || element.isF64() ||
                  (isa<IntegerType>(element) && element.getIntOrFloatBitWidth() >= 8);
  if (isNumber || element.isInteger(1))
    return success();
  return op->emitOpError("RT3: elements of ") << element << " cannot be ordered or added";
}

static LogicalResult checkSizes(Operation *op, Value value, ArrayRef<Dim> dims, StringRef what) {
  if (dimsOf(value) == DimVector(dims))
    return success();
  return op->emitOpError("RT2: the sizes of ")
         << what << " do not follow from the operands: " << value.getType();
}

LogicalResult CumsumOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location,
                                         ValueRange operands, DictionaryAttr attributes,
                                         OpaqueProperties properties, RegionRange regions,
                                         SmallVectorImpl<Type> &results) {
  Adaptor adaptor(operands, attributes, properties, regions);
  if (failed(adaptor.verify(location.value_or(UnknownLoc::get(context)))))
    return failure();
  int64_t axis = adaptor.getAxis(), rank = rankOf(adaptor.getX());
  if (axis < 0 || axis >= rank)
    return emitOptionalError(location, "AX1: axis ", axis, " is outside of rank ", rank);
  results.push_back(operands.front().getType());
  return success();
}

LogicalResult TopkOp::verify() {
  DimVector x = dimsOf(getX()), values = dimsOf(getValues()), indices = dimsOf(getIndices());
  int64_t axis = getAxis();
  if (axis < 0 || axis >= (int64_t)x.size())
    return emitOpError("AX1: axis ") << axis << " is outside of rank " << x.size();
  if (values != indices || values.size() != x.size())
    return emitOpError("TK1: values and indices must have one shape, of the rank of x");
  for (size_t i = 0; i < x.size(); ++i)
    if ((int64_t)i == axis ? (x[i] - values[i]).constant().value_or(0) < 0 : x[i] != values[i])
      return emitOpError("TK2: ") << values[i].str() << " elements of dimension " << i
                                  << " are asked for, which has " << x[i].str();
  Type i64 = IntegerType::get(getContext(), 64);
  if (failed(checkElement(*this, getX())) ||
      failed(checkTensor(*this, getValues(), elementOf(getX()), rankOf(getX()), "the values")))
    return failure();
  return checkTensor(*this, getIndices(), i64, rankOf(getX()), "the indices");
}

LogicalResult NonzeroOp::verify() {
  Builder b(getContext());
  if (failed(checkTensor(*this, getX(), b.getI1Type(), rankOf(getX()), "x")) ||
      failed(checkTensor(*this, getResult(), b.getI64Type(), 2, "the result")))
    return failure();
  return checkSizes(*this, getResult(), {Dim(rankOf(getX())), dimsOf(getResult())[1]},
                    "the result");
}

LogicalResult CustomOp::verify() {
  auto about = getAbout().getDefiningOp<ConstantOp>();
  std::vector<char> storage;
  ArrayRef<char> text;
  if (about && elementOf(getAbout()).isUnsignedInteger(8))
    text = constantBytes(about.getValue(), storage);
  if (llvm::count(text, '\0') != 4 || text.back() != '\0')
    return emitOpError("CU1: about must be constant text of four parts that end with 0");
  for (Value result : getResults())
    for (const Dim &size : dimsOf(result))
      if (!size.symbolName())
        return emitOpError("CU2: the sizes of results must be symbols, but one is ") << size.str();
  return success();
}

LogicalResult UniqueOp::verify() {
  Type i64 = IntegerType::get(getContext(), 64);
  if (failed(checkTensor(*this, getX(), elementOf(getX()), 2, "x")) ||
      failed(checkElement(*this, getX())))
    return failure();
  for (Value result : getResults())
    if (failed(checkTensor(*this, result, i64, 1, "a result")))
      return failure();
  if (failed(checkSizes(*this, getInverse(), dimsOf(getX())[0], "the inverse")))
    return failure();
  return checkSizes(*this, getCounts(), dimsOf(getFirst())[0], "the counts");
}

LogicalResult SuppressOp::verify() {
  Builder b(getContext());
  Type f32 = b.getF32Type(), i64 = b.getI64Type();
  if (failed(checkTensor(*this, getBoxes(), f32, 3, "the boxes")) ||
      failed(checkTensor(*this, getScores(), f32, 3, "the scores")) ||
      failed(checkTensor(*this, getMost(), i64, 0, "the most")) ||
      failed(checkTensor(*this, getOverlap(), f32, 0, "the overlap")) ||
      failed(checkTensor(*this, getLeast(), f32, 0, "the least score")) ||
      failed(checkTensor(*this, getResult(), i64, 2, "the result")))
    return failure();
  DimVector scores = dimsOf(getScores());
  if (failed(checkSizes(*this, getBoxes(), {scores[0], scores[2], Dim(4)}, "the boxes")))
    return failure();
  return checkSizes(*this, getResult(), {dimsOf(getResult())[0], Dim(3)}, "the result");
}

/// FO1: constant nodes whose children and features are there. Walks take as many steps as a root
/// says, so they end whatever the children are.
static LogicalResult checkNodes(ForestOp op, ArrayRef<int64_t> nodes, ArrayRef<int64_t> roots,
                                int64_t features) {
  int64_t count = nodes.size() / 2;
  for (int64_t i = 0; i < count; ++i) {
    int64_t child = nodes[2 * i + 1] >> 32, feature = nodes[2 * i + 1] & 0xffffffff;
    bool isLeaf = nodes[2 * i] == INT64_MAX && child == i;
    if (!isLeaf && (child < 0 || child + 1 >= count))
      return op.emitOpError("FO1: node ") << i << " has child " << child << " of " << count;
    if (feature > INT32_MAX || feature >= features * (op.getMirrored() ? 2 : 1))
      return op.emitOpError("FO1: node ") << i << " asks for feature " << feature;
  }
  for (size_t i = 0; i < roots.size(); i += 2)
    if (roots[i] < 0 || roots[i] >= count || roots[i + 1] < 0 || roots[i + 1] > count)
      return op.emitOpError("FO1: root ") << roots[i] << " of " << count << " nodes";
  return success();
}

LogicalResult ForestOp::verify() {
  Builder b(getContext());
  Type element = elementOf(getX());
  if (!element.isF32() && !element.isF64())
    return emitOpError("RT1: x must be of f32 or f64, but is ") << getX().getType();
  if (failed(checkTensor(*this, getX(), element, 2, "x")) ||
      failed(checkTensor(*this, getNodes(), b.getI64Type(), 2, "the nodes")) ||
      failed(checkTensor(*this, getRoots(), b.getI64Type(), 2, "the roots")) ||
      failed(checkTensor(*this, getWeights(), element, 2, "the weights")) ||
      failed(checkTensor(*this, getResult(), element, 2, "the result")))
    return failure();
  DimVector weights = dimsOf(getWeights());
  auto nodes = constantIntegers(getNodes()), roots = constantIntegers(getRoots());
  if (!nodes || !roots || !dimsOf(getNodes())[1].isConstant(2) ||
      !dimsOf(getRoots())[1].isConstant(2))
    return emitOpError("FO1: nodes and roots must be constants of pairs");
  if (failed(checkSizes(*this, getWeights(), {dimsOf(getNodes())[0], weights[1]}, "the weights")) ||
      failed(checkSizes(*this, getResult(), {dimsOf(getX())[0], weights[1]}, "the result")))
    return failure();
  auto features = dimsOf(getX())[1].constant();
  if (!features)
    return emitOpError("FO1: x must have a constant number of features, but is ")
           << getX().getType();
  return checkNodes(*this, *nodes, *roots, *features);
}

/// FT1: x has at least two dimensions. FT2: there is one length.
LogicalResult FourierOp::verify() {
  int64_t rank = rankOf(getX());
  Type element = elementOf(getX());
  if (!element.isF32() && !element.isF64())
    return emitOpError("RT1: x must be of f32 or f64, but is ") << getX().getType();
  if (rank < 2)
    return emitOpError("FT1: x must have an axis of signals and one of real and imaginary parts, "
                       "but is ")
           << getX().getType();
  if (getLength().getSizes().size() != 1)
    return emitOpError("FT2: there must be one length, but there are ")
           << getLength().getSizes().size();
  if (failed(checkAxis(*this, getAxis(), rank - 1)) ||
      failed(checkTensor(*this, getResult(), element, rank, "the result")))
    return failure();
  DimVector dims = dimsOf(getX());
  Dim length = dimsOf(getLength())[0];
  dims[getAxis()] = getOnesided() && !getInverse() ? length.floorDiv(Dim(2)) + Dim(1) : length;
  dims[rank - 1] = Dim(getOnesided() && getInverse() ? 1 : 2);
  return checkSizes(*this, getResult(), dims, "the result");
}

} // namespace heddle::graph
