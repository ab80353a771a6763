// ContractionOps: shape rules and verifiers of products, convolutions, pools and reductions.

#include "compiler/graph/Graph.h"

using namespace mlir;

namespace heddle::graph {

static bool mayDiffer(const Dim &a, const Dim &b) {
  auto x = a.constant(), y = b.constant();
  return x && y && *x != *y;
}

/// C3: every stride, dilation and size of a window is at least 1.
static LogicalResult checkSteps(Operation *op, ArrayRef<int64_t> steps, StringRef what) {
  for (int64_t step : steps)
    if (step < 1)
      return op->emitOpError("C3: ") << what << " of " << step << ", but at least 1 is needed";
  return success();
}

LogicalResult MatmulOp::verify() {
  DimVector a = dimsOf(getA()), b = dimsOf(getB()), c = dimsOf(getResult());
  size_t rank = a.size();
  if (rank < 2 || b.size() != rank || c.size() != rank)
    return emitOpError("M1: operands and result must have one rank, at least 2, but found ")
           << a.size() << ", " << b.size() << " and " << c.size();
  for (size_t i = 0; i + 2 < rank; ++i)
    if (mayDiffer(a[i], b[i]) && !a[i].isConstant(1) && !b[i].isConstant(1))
      return emitOpError("M2: batch sizes ") << a[i].str() << " and " << b[i].str() << " differ";
  if (mayDiffer(a[rank - 1], b[rank - 2]))
    return emitOpError("M3: a row of a has ")
           << a[rank - 1].str() << " elements, a column of b has " << b[rank - 2].str();
  if (mayDiffer(a[rank - 2], c[rank - 2]) || mayDiffer(b[rank - 1], c[rank - 1]))
    return emitOpError("M4: the result must be [..., m, n]");
  auto block = static_cast<int64_t>(getBlock());
  bool isWhole = block > 0 && a[rank - 1].mod(Dim(block)).isConstant(0);
  bool areFloats = elementOf(getA()).isF32() && elementOf(getB()).isF32();
  if (block != 0 && !(isWhole && areFloats))
    return emitOpError("M5: a block of ")
           << block << " needs rows of f32 of a multiple of it, but they have " << a[rank - 1].str()
           << " " << elementOf(getA());
  return success();
}

/// How the windows of a convolution lie on its image.
template <typename Op> static LogicalResult checkWindow(Op op, size_t spatial) {
  if (op.getStrides().size() != spatial || op.getDilations().size() != spatial ||
      op.getLow().size() != spatial || op.getHigh().size() != spatial)
    return op.emitOpError("C3: needs one stride, dilation and two paddings per spatial dimension");
  if (failed(checkSteps(op, op.getStrides(), "a stride")))
    return failure();
  return checkSteps(op, op.getDilations(), "a dilation");
}

LogicalResult ConvOp::verify() {
  DimVector x = dimsOf(getX()), w = dimsOf(getW());
  size_t spatial = x.size() - 2;
  if (x.size() < 3 || w.size() != x.size() || rankOf(getResult()) != (int64_t)x.size())
    return emitOpError("C1: x, w and the result must have one rank, at least 3");
  if (static_cast<int64_t>(getGroups()) < 1)
    return emitOpError("C2: groups is ")
           << static_cast<int64_t>(getGroups()) << ", but must be at least 1";
  const Dim &channels = getChannelsLast() ? x.back() : x[1];
  if (mayDiffer(channels, w[1] * Dim(getGroups())))
    return emitOpError("C2: x has ")
           << channels.str() << " channels, but w takes " << (w[1] * Dim(getGroups())).str();
  if (auto out = w[0].constant(); out && *out % getGroups() != 0)
    return emitOpError("C2: ") << *out << " filters cannot be split into " << getGroups()
                               << " groups";
  return checkWindow(*this, spatial);
}

LogicalResult ConvTransposeOp::verify() {
  size_t spatial = rankOf(getX()) - 2;
  if (rankOf(getX()) < 3 || rankOf(getW()) != rankOf(getX()) ||
      rankOf(getResult()) != rankOf(getX()))
    return emitOpError("C1: x, w and the result must have one rank, at least 3");
  int64_t groups = getGroups();
  Dim channels = getChannelsLast() ? dimsOf(getX()).back() : dimsOf(getX())[1];
  if (groups < 1 || mayDiffer(channels, dimsOf(getW())[0]) ||
      channels.constant().value_or(0) % groups != 0)
    return emitOpError("C2: x has ") << channels.str() << " channels, w takes "
                                     << dimsOf(getW())[0].str() << " in " << groups << " groups";
  if (getStrides().size() != spatial || getDilations().size() != spatial ||
      getLow().size() != spatial || getHigh().size() != spatial ||
      getOutputPadding().size() != spatial)
    return emitOpError("C3: needs one stride, dilation and three paddings per spatial dimension");
  if (failed(checkSteps(*this, getStrides(), "a stride")))
    return failure();
  return checkSteps(*this, getDilations(), "a dilation");
}

LogicalResult ConvFilterGradientOp::verify() {
  DimVector x = dimsOf(getX()), dy = dimsOf(getDy()), made = dimsOf(getResult());
  size_t rank = x.size(), spatial = rank - 2;
  if (rank < 3 || dy.size() != rank || made.size() != rank)
    return emitOpError("C1: x, dy and the result must have one rank, at least 3");
  int64_t groups = getGroups();
  if (groups < 1)
    return emitOpError("C2: groups is ") << groups << ", but must be at least 1";
  const Dim &channels = getChannelsLast() ? x.back() : x[1],
            &filters = getChannelsLast() ? dy.back() : dy[1];
  if (mayDiffer(channels, made[1] * Dim(groups)) || mayDiffer(filters, made[0]) ||
      made[0].constant().value_or(0) % groups != 0)
    return emitOpError("C2: x has ")
           << channels.str() << " channels, dy has " << filters.str() << " in " << groups
           << " groups, which does not suit filters " << made[0].str() << " x " << made[1].str();
  return checkWindow(*this, spatial);
}

LogicalResult UnpoolOp::verify() {
  size_t rank = rankOf(getResult()), spatial = rank - 2;
  if (rank < 3 || rankOf(getShare()) != (int64_t)rank)
    return emitOpError("C1: share and the result must have one rank, at least 3");
  if (getWindow().size() != spatial || getStrides().size() != spatial ||
      getDilations().size() != spatial || getLow().size() != spatial)
    return emitOpError("C3: needs one window, stride, dilation and padding per spatial dimension");
  if (failed(checkSteps(*this, getWindow(), "a window")) ||
      failed(checkSteps(*this, getStrides(), "a stride")) ||
      failed(checkSteps(*this, getDilations(), "a dilation")))
    return failure();
  ValueRange images = getImages();
  if (!images.empty() && (images.size() != 2 || dimsOf(images[0]) != dimsOf(getResult()) ||
                          dimsOf(images[1]) != dimsOf(getShare())))
    return emitOpError("U1: images must be none, or one of the result's shape and one of the shape "
                       "of share");
  return success();
}

LogicalResult PoolOp::verify() {
  size_t spatial = rankOf(getX()) - 2;
  if (rankOf(getX()) < 3 || rankOf(getResult()) != rankOf(getX()))
    return emitOpError("C1: x and the result must have one rank, at least 3");
  if (getWindow().size() != spatial || getStrides().size() != spatial ||
      getDilations().size() != spatial || getLow().size() != spatial || getHigh().size() != spatial)
    return emitOpError(
        "C3: needs one window, stride, dilation and two paddings per spatial dimension");
  if (failed(checkSteps(*this, getWindow(), "a window")) ||
      failed(checkSteps(*this, getStrides(), "a stride")) ||
      failed(checkSteps(*this, getDilations(), "a dilation")))
    return failure();
  if (getKind() != "max" && getKind() != "average")
    return emitOpError("PO1: kind is '") << getKind() << "', but must be 'max' or 'average'";
  return success();
}

static LogicalResult inferReduction(MLIRContext *context, std::optional<Location> location, Value x,
                                    ArrayRef<int64_t> axes, bool keepDims, Type element,
                                    SmallVectorImpl<Type> &results) {
  DimVector from = dimsOf(x), to;
  for (int64_t axis : axes)
    if (axis < 0 || axis >= (int64_t)from.size())
      return emitOptionalError(location, "AX1: axis ", axis, " is outside of rank ", from.size());
  for (auto [i, dim] : llvm::enumerate(from)) {
    if (!llvm::is_contained(axes, (int64_t)i))
      to.push_back(dim);
    else if (keepDims)
      to.push_back(Dim(1));
  }
  results.push_back(tensorOf(context, to, element));
  return success();
}

#define INFER_REDUCTION(OP, AXES, ELEMENT)                                                         \
  LogicalResult OP::inferReturnTypes(MLIRContext *context, std::optional<Location> location,       \
                                     ValueRange operands, DictionaryAttr attributes,               \
                                     OpaqueProperties properties, RegionRange regions,             \
                                     SmallVectorImpl<Type> &results) {                             \
    Adaptor adaptor(operands, attributes, properties, regions);                                    \
    if (failed(adaptor.verify(location.value_or(UnknownLoc::get(context)))))                       \
      return failure();                                                                            \
    return inferReduction(context, location, adaptor.getX(), AXES, adaptor.getKeepDims(), ELEMENT, \
                          results);                                                                \
  }
INFER_REDUCTION(ReduceSumOp, adaptor.getAxes(), elementOf(adaptor.getX()))
INFER_REDUCTION(ReduceProdOp, adaptor.getAxes(), elementOf(adaptor.getX()))
INFER_REDUCTION(ReduceMaxOp, adaptor.getAxes(), elementOf(adaptor.getX()))
INFER_REDUCTION(ReduceMinOp, adaptor.getAxes(), elementOf(adaptor.getX()))
INFER_REDUCTION(ArgMaxOp, {(int64_t)adaptor.getAxis()}, IntegerType::get(context, 64))
INFER_REDUCTION(ArgMinOp, {(int64_t)adaptor.getAxis()}, IntegerType::get(context, 64))
#undef INFER_REDUCTION

ArrayRef<int64_t> reducedAxes(Operation *op) {
  return op->hasTrait<Reduction>() ? op->getAttrOfType<DenseI64ArrayAttr>("axes").asArrayRef()
                                   : ArrayRef<int64_t>();
}

SmallVector<int64_t> combinedAxes(Operation *op) {
  if (op->hasTrait<ArgReduction>())
    return {op->getAttrOfType<IntegerAttr>("axis").getInt()};
  return llvm::to_vector(reducedAxes(op));
}

} // namespace heddle::graph
