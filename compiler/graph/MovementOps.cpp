// MovementOps: shape rules and verifiers of ops that move elements.

#include "compiler/graph/Graph.h"

using namespace mlir;

namespace heddle::graph {

#define INFER(OP)                                                                                  \
  LogicalResult OP::inferReturnTypes(MLIRContext *context, std::optional<Location> location,       \
                                     ValueRange operands, DictionaryAttr attributes,               \
                                     OpaqueProperties properties, RegionRange regions,             \
                                     SmallVectorImpl<Type> &results)

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                           ValueRange operands, DictionaryAttr attributes,
                                           OpaqueProperties properties, RegionRange regions,
                                           SmallVectorImpl<Type> &results) {
  Adaptor adaptor(operands, attributes, properties, regions);
  results.push_back(adaptor.getValue().getType());
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult IotaOp::verify() {
  if (getAxis() < 0 || static_cast<int64_t>(getAxis()) >= rankOf(getResult()))
    return emitOpError("axis ") << getAxis() << " is outside of rank " << rankOf(getResult());
  return success();
}

LogicalResult SizesOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (type.getRank() > 1 || type.getNumElements() != (int64_t)getValues().getSizes().size())
    return emitOpError("has ") << getValues().getSizes().size() << " values for " << type;
  return success();
}

LogicalResult ReshapeOp::verify() {
  auto from = elementCount(dimsOf(getX())).constant();
  auto to = elementCount(dimsOf(getResult())).constant();
  if (from && to && *from != *to)
    return emitOpError("R1: ") << *from << " elements cannot have the shape of "
                               << getResult().getType() << ", which has " << *to;
  return success();
}

LogicalResult DynamicReshapeOp::verify() { return success(); }
LogicalResult DynamicBroadcastOp::verify() { return success(); }

LogicalResult BroadcastOp::verify() {
  DimVector from = dimsOf(getX()), to = dimsOf(getResult());
  if (from.size() > to.size())
    return emitOpError("B1: rank ") << from.size() << " cannot broadcast to rank " << to.size();
  for (size_t i = 0; i < from.size(); ++i) {
    auto small = from[i].constant(), large = to[to.size() - from.size() + i].constant();
    if (small && large && *small != 1 && *small != *large)
      return emitOpError("B2: size ") << *small << " cannot broadcast to " << *large;
  }
  return success();
}

INFER(TransposeOp) {
  Adaptor adaptor(operands, attributes, properties, regions);
  DimVector from = dimsOf(adaptor.getX()), to;
  if (adaptor.getPermutation().size() != from.size())
    return emitOptionalError(location, "T1: 'permutation' needs ", from.size(), " entries");
  SmallVector<bool> seen(from.size(), false);
  for (int64_t axis : adaptor.getPermutation()) {
    if (axis < 0 || axis >= (int64_t)from.size() || seen[axis])
      return emitOptionalError(location, "T1: 'permutation' must hold each axis once");
    seen[axis] = true;
    to.push_back(from[axis]);
  }
  results.push_back(tensorOf(context, to, elementOf(adaptor.getX())));
  return success();
}

LogicalResult SliceOp::verify() {
  size_t rank = rankOf(getX());
  if (getStarts().getSizes().size() != rank || getSteps().size() != rank ||
      rankOf(getResult()) != (int64_t)rank)
    return emitOpError("S1: needs one start, one step and one size a dimension");
  if (llvm::is_contained(getSteps(), 0))
    return emitOpError("S2: a step must not be 0");
  return success();
}

LogicalResult DynamicSliceOp::verify() { return success(); }

INFER(ConcatOp) {
  Adaptor adaptor(operands, attributes, properties, regions);
  if (operands.empty())
    return emitOptionalError(location, "CC1: needs at least one operand");
  DimVector dims = dimsOf(operands.front());
  int64_t axis = adaptor.getAxis();
  if (axis < 0 || axis >= (int64_t)dims.size())
    return emitOptionalError(location, "CC2: axis ", axis, " is outside of rank ", dims.size());
  for (Value operand : operands.drop_front()) {
    DimVector other = dimsOf(operand);
    if (other.size() != dims.size())
      return emitOptionalError(location, "CC3: operands have rank ", dims.size(), " and ",
                               other.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      if ((int64_t)i == axis)
        continue;
      auto ours = dims[i].constant(), theirs = other[i].constant();
      if (ours && theirs && *ours != *theirs)
        return emitOptionalError(location, "CC4: sizes of dimension ", i, " differ: ", *ours,
                                 " and ", *theirs);
      if (theirs)
        dims[i] = other[i];
    }
    dims[axis] = dims[axis] + other[axis];
  }
  results.push_back(tensorOf(context, dims, elementOf(operands.front())));
  return success();
}

INFER(PadOp) {
  Adaptor adaptor(operands, attributes, properties, regions);
  DimVector dims = dimsOf(adaptor.getX());
  DimVector low = dimsOf(adaptor.getLow()), high = dimsOf(adaptor.getHigh());
  if (low.size() != dims.size() || high.size() != dims.size())
    return emitOptionalError(location, "P1: 'low' and 'high' need one entry a dimension");
  for (size_t i = 0; i < dims.size(); ++i)
    dims[i] = dims[i] + low[i] + high[i];
  results.push_back(tensorOf(context, dims, elementOf(adaptor.getX())));
  return success();
}

static LogicalResult checkAxis(std::optional<Location> location, int64_t axis, size_t rank) {
  if (axis < 0 || axis >= (int64_t)rank)
    return emitOptionalError(location, "axis ", axis, " is outside of rank ", rank);
  return success();
}

INFER(GatherOp) {
  Adaptor adaptor(operands, attributes, properties, regions);
  DimVector from = dimsOf(adaptor.getX()), indices = dimsOf(adaptor.getIndices()), to;
  if (failed(checkAxis(location, adaptor.getAxis(), from.size())))
    return failure();
  to.append(from.begin(), from.begin() + adaptor.getAxis());
  to.append(indices.begin(), indices.end());
  to.append(from.begin() + adaptor.getAxis() + 1, from.end());
  results.push_back(tensorOf(context, to, elementOf(adaptor.getX())));
  return success();
}

INFER(GatherElementsOp) {
  Adaptor adaptor(operands, attributes, properties, regions);
  if (failed(checkAxis(location, adaptor.getAxis(), rankOf(adaptor.getX()))))
    return failure();
  results.push_back(tensorOf(context, dimsOf(adaptor.getIndices()), elementOf(adaptor.getX())));
  return success();
}

INFER(GatherNdOp) {
  Adaptor adaptor(operands, attributes, properties, regions);
  DimVector from = dimsOf(adaptor.getX()), indices = dimsOf(adaptor.getIndices());
  int64_t batch = adaptor.getBatchDims();
  auto depth = indices.empty() ? std::nullopt : indices.back().constant();
  if (!depth || *depth < 0 || batch < 0 || batch + *depth > (int64_t)from.size())
    return emitOptionalError(location,
                             "G1: the last size of 'indices' must be constant and at most ",
                             "the rank of x less batch_dims");
  DimVector to(indices.begin(), indices.end() - 1);
  to.append(from.begin() + batch + *depth, from.end());
  results.push_back(tensorOf(context, to, elementOf(adaptor.getX())));
  return success();
}

INFER(ScatterElementsOp) {
  Adaptor adaptor(operands, attributes, properties, regions);
  if (failed(checkAxis(location, adaptor.getAxis(), rankOf(adaptor.getX()))))
    return failure();
  results.push_back(adaptor.getX().getType());
  return success();
}

INFER(ScatterNdOp) {
  Adaptor adaptor(operands, attributes, properties, regions);
  results.push_back(adaptor.getX().getType());
  return success();
}

INFER(ReverseSequenceOp) {
  Adaptor adaptor(operands, attributes, properties, regions);
  results.push_back(adaptor.getX().getType());
  return success();
}

LogicalResult ResizeOp::verify() {
  if ((int64_t)getScales().size() != rankOf(getX()) || rankOf(getX()) != rankOf(getResult()))
    return emitOpError("needs one scale a dimension");
  return success();
}

LogicalResult RangeOp::verify() { return success(); }

LogicalResult BindSizesOp::verify() {
  auto type = cast<RankedTensorType>(getX().getType());
  DimVector symbols = dimsOf(getSymbols());
  if (!type.hasStaticShape() || !type.getElementType().isIntOrIndex() ||
      type.getNumElements() != (int64_t)symbols.size())
    return emitOpError("BS1: ") << type << " is no static tensor of integers with "
                                << symbols.size() << " elements";
  return success();
}

} // namespace heddle::graph
