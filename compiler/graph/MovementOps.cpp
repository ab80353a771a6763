// MovementOps: shape rules and verifiers of ops that move elements.

#include "compiler/graph/Constants.h"
#include "compiler/graph/ragged/Ragged.h"

using namespace mlir;

namespace heddle::graph {

/// A shape rule, told what it needs once attributes are of their kinds.
#define INFER(OP)                                                                                  \
  static LogicalResult infer##OP(MLIRContext *context, std::optional<Location> location,           \
                                 ValueRange operands, OP::Adaptor adaptor,                         \
                                 SmallVectorImpl<Type> &results);                                  \
  LogicalResult OP::inferReturnTypes(MLIRContext *context, std::optional<Location> location,       \
                                     ValueRange operands, DictionaryAttr attributes,               \
                                     OpaqueProperties properties, RegionRange regions,             \
                                     SmallVectorImpl<Type> &results) {                             \
    Adaptor adaptor(operands, attributes, properties, regions);                                    \
    if (failed(adaptor.verify(location.value_or(UnknownLoc::get(context)))))                       \
      return failure();                                                                            \
    return infer##OP(context, location, operands, adaptor, results);                               \
  }                                                                                                \
  static LogicalResult infer##OP(MLIRContext *context, std::optional<Location> location,           \
                                 ValueRange operands, OP::Adaptor adaptor,                         \
                                 SmallVectorImpl<Type> &results)

INFER(ConstantOp) {
  results.push_back(adaptor.getValue().getType());
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ConstantOp::verify() {
  if (std::string why = valueRefusal(getValue()); !why.empty())
    return emitOpError("CO1: the value ") << why;
  return success();
}

LogicalResult IotaOp::verify() {
  const auto axis = static_cast<int64_t>(getAxis());
  if (axis < 0 || axis >= rankOf(getResult()))
    return emitOpError("AX1: axis ") << axis << " is outside of rank " << rankOf(getResult());
  return success();
}

LogicalResult SizesOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (type.getRank() > 1 || !type.hasStaticShape() ||
      type.getNumElements() != (int64_t)getValues().getSizes().size())
    return emitOpError("SZ1: has ") << getValues().getSizes().size() << " values for " << type;
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

/// An operand that holds `count` integers.
static LogicalResult checkIntegers(Operation *op, Value x, int64_t count, StringRef label) {
  auto type = cast<RankedTensorType>(x.getType());
  if (type.getRank() != 1 || type.getShape()[0] != count ||
      !isa<IntegerType>(type.getElementType()))
    return op->emitOpError() << label << ": needs a vector of " << count << " integers, but found "
                             << type;
  return success();
}

LogicalResult DynamicReshapeOp::verify() {
  return checkIntegers(*this, getShape(), rankOf(getResult()), "DR1");
}

LogicalResult DynamicBroadcastOp::verify() {
  int64_t rank = rankOf(getResult()),
          entries = rankOf(getShape()) == 1 ? dimsOf(getShape())[0].constant().value_or(-1) : -1;
  if (entries > rank || rankOf(getX()) > rank)
    return emitOpError("DB1: the result has rank ")
           << rank << ", but x has " << rankOf(getX()) << " and the shape asks for " << entries;
  return checkIntegers(*this, getShape(), entries, "DB1");
}

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
    return emitOpError("S1: needs one start, one step and one size per dimension");
  if (llvm::is_contained(getSteps(), 0))
    return emitOpError("S2: a step must not be 0");
  DimVector from = dimsOf(getX()), to = dimsOf(getResult()), starts = dimsOf(getStarts());
  for (auto [i, step] : llvm::enumerate(getSteps())) {
    auto first = starts[i].constant(), size = from[i].constant();
    auto last = (starts[i] + (to[i] - Dim(1)) * Dim(step)).constant();
    auto isInside = [&](int64_t place) { return place >= 0 && place < *size; };
    if (first && last && size && !to[i].isConstant(0) && !(isInside(*first) && isInside(*last)))
      return emitOpError("S3: elements ") << *first << " to " << *last << " of dimension " << i
                                          << " are asked for, which has " << *size;
  }
  return success();
}

LogicalResult DynamicSliceOp::verify() {
  int64_t rank = rankOf(getX());
  for (int64_t axis : getAxes())
    if (axis < 0 || axis >= rank)
      return emitOpError("AX1: axis ") << axis << " is outside of rank " << rank;
  if (rankOf(getResult()) != rank)
    return emitOpError("DS1: the result has rank ") << rankOf(getResult()) << ", x has " << rank;
  for (Value bound : {getStarts(), getEnds(), getSteps()})
    if (failed(checkIntegers(*this, bound, getAxes().size(), "DS2")))
      return failure();
  return success();
}

INFER(ConcatOp) {
  if (operands.empty())
    return emitOptionalError(location, "CC1: needs at least one operand");
  DimVector dims = dimsOf(operands.front());
  int64_t axis = adaptor.getAxis();
  if (axis < 0 || axis >= (int64_t)dims.size())
    return emitOptionalError(location, "AX1: axis ", axis, " is outside of rank ", dims.size());
  for (Value operand : operands.drop_front()) {
    DimVector other = dimsOf(operand);
    if (other.size() != dims.size())
      return emitOptionalError(location, "CC2: operands have rank ", dims.size(), " and ",
                               other.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      if ((int64_t)i == axis)
        continue;
      auto ours = dims[i].constant(), theirs = other[i].constant();
      if (ours && theirs && *ours != *theirs)
        return emitOptionalError(location, "CC3: sizes of dimension ", i, " differ: ", *ours,
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
  DimVector dims = dimsOf(adaptor.getX());
  DimVector low = dimsOf(adaptor.getLow()), high = dimsOf(adaptor.getHigh());
  if (low.size() != dims.size() || high.size() != dims.size())
    return emitOptionalError(location, "P1: 'low' and 'high' need one entry per dimension");
  for (size_t i = 0; i < dims.size(); ++i)
    dims[i] = dims[i] + low[i] + high[i];
  results.push_back(tensorOf(context, dims, elementOf(adaptor.getX())));
  return success();
}

static LogicalResult checkAxis(std::optional<Location> location, int64_t axis, size_t rank) {
  if (axis < 0 || axis >= (int64_t)rank)
    return emitOptionalError(location, "AX1: axis ", axis, " is outside of rank ", rank);
  return success();
}

/// Whether two sizes are constants and differ.
static bool mayDiffer(const Dim &a, const Dim &b) {
  auto x = a.constant(), y = b.constant();
  return x && y && *x != *y;
}

/// Whether sizes of `part`, but for that of `axis`, are constants beyond those of `whole`.
static bool reachesBeyond(ArrayRef<Dim> part, ArrayRef<Dim> whole, int64_t axis) {
  for (size_t i = 0; i < part.size(); ++i) {
    auto inner = part[i].constant(), outer = whole[i].constant();
    if ((int64_t)i != axis && inner && outer && *inner > *outer)
      return true;
  }
  return false;
}

/// AX1, GE1 and GE2 of x and indices, also of a scatter.
static LogicalResult checkElementIndices(std::optional<Location> location, Value x, Value indices,
                                         int64_t axis) {
  DimVector from = dimsOf(x), places = dimsOf(indices);
  if (failed(checkAxis(location, axis, from.size())))
    return failure();
  if (places.size() != from.size())
    return emitOptionalError(location, "GE1: x has rank ", from.size(), ", but indices have rank ",
                             places.size());
  if (reachesBeyond(places, from, axis))
    return emitOptionalError(location, "GE2: indices of shape ", indices.getType(),
                             " reach beyond x of shape ", x.getType());
  return success();
}

INFER(GatherOp) {
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
  if (failed(
          checkElementIndices(location, adaptor.getX(), adaptor.getIndices(), adaptor.getAxis())))
    return failure();
  results.push_back(tensorOf(context, dimsOf(adaptor.getIndices()), elementOf(adaptor.getX())));
  return success();
}

INFER(GatherNdOp) {
  DimVector from = dimsOf(adaptor.getX()), indices = dimsOf(adaptor.getIndices());
  int64_t batch = adaptor.getBatchDims();
  auto depth = indices.empty() ? std::nullopt : indices.back().constant();
  if (!depth || *depth < 0 || batch < 0 || *depth > (int64_t)from.size() - batch)
    return emitOptionalError(location,
                             "G1: the last size of 'indices' must be constant and at most ",
                             "the rank of x less batch_dims");
  if (batch >= (int64_t)indices.size())
    return emitOptionalError(location, "G2: indices of rank ", indices.size(),
                             " have no batch of rank ", batch);
  for (int64_t i = 0; i < batch; ++i)
    if (mayDiffer(from[i], indices[i]))
      return emitOptionalError(location, "G3: x has a batch of ", from[i].str(), ", indices of ",
                               indices[i].str());
  DimVector to(indices.begin(), indices.end() - 1);
  to.append(from.begin() + batch + *depth, from.end());
  results.push_back(tensorOf(context, to, elementOf(adaptor.getX())));
  return success();
}

INFER(ScatterElementsOp) {
  if (failed(
          checkElementIndices(location, adaptor.getX(), adaptor.getIndices(), adaptor.getAxis())))
    return failure();
  DimVector updates = dimsOf(adaptor.getUpdates()), indices = dimsOf(adaptor.getIndices());
  bool fit = updates.size() == indices.size();
  for (size_t i = 0; fit && i < updates.size(); ++i)
    fit = !mayDiffer(updates[i], indices[i]);
  if (!fit)
    return emitOptionalError(location, "SE1: updates of shape ", adaptor.getUpdates().getType(),
                             " do not have the shape of indices, ", adaptor.getIndices().getType());
  results.push_back(adaptor.getX().getType());
  return success();
}

INFER(ScatterNdOp) {
  DimVector x = dimsOf(adaptor.getX()), wanted = dimsOf(adaptor.getIndices());
  auto depth = wanted.empty() ? std::nullopt : wanted.back().constant();
  if (!depth || *depth < 0 || *depth > (int64_t)x.size())
    return emitOptionalError(location, "SN1: the last size of 'indices' must be constant and at ",
                             "most the rank of x, ", x.size());
  wanted.pop_back();
  wanted.append(x.begin() + *depth, x.end());
  DimVector updates = dimsOf(adaptor.getUpdates());
  bool fit = updates.size() == wanted.size();
  for (size_t i = 0; fit && i < updates.size(); ++i)
    fit = !mayDiffer(updates[i], wanted[i]);
  if (!fit)
    return emitOptionalError(location, "SN2: updates of shape ", adaptor.getUpdates().getType(),
                             " do not have the shape of what indices of shape ",
                             adaptor.getIndices().getType(), " take of x");
  results.push_back(adaptor.getX().getType());
  return success();
}

INFER(ReverseSequenceOp) {
  DimVector x = dimsOf(adaptor.getX()), lengths = dimsOf(adaptor.getLengths());
  int64_t rank = x.size(), time = adaptor.getTimeAxis(), batch = adaptor.getBatchAxis();
  if (time < 0 || time >= rank || batch < 0 || batch >= rank || time == batch)
    return emitOptionalError(location, "RS1: 'time_axis' ", time, " and 'batch_axis' ", batch,
                             " must be two dimensions of x, whose rank is ", rank);
  if (lengths.size() != 1 || mayDiffer(lengths[0], x[batch]))
    return emitOptionalError(location, "RS2: lengths of shape ", adaptor.getLengths().getType(),
                             " must be a vector of ", x[batch].str(),
                             ", one an entry of the batch");
  results.push_back(adaptor.getX().getType());
  return success();
}

LogicalResult ResizeOp::verify() {
  if ((int64_t)getScales().size() != rankOf(getX()) || rankOf(getX()) != rankOf(getResult()))
    return emitOpError("RZ1: needs one scale per dimension");
  return success();
}

LogicalResult RangeOp::verify() {
  for (Value bound : {getStart(), getLimit(), getDelta()})
    if (!elementCount(dimsOf(bound)).isConstant(1) || elementOf(bound) != elementOf(getResult()))
      return emitOpError("RG1: start, limit and delta must be scalars of one type, but found ")
             << bound.getType() << " for " << getResult().getType();
  if (rankOf(getResult()) != 1)
    return emitOpError("RG1: the result must be a vector");
  return success();
}

LogicalResult BindSizesOp::verify() {
  auto type = cast<RankedTensorType>(getX().getType());
  DimVector symbols = dimsOf(getSymbols());
  if (!type.hasStaticShape() || !type.getElementType().isIntOrIndex() ||
      type.getNumElements() != (int64_t)symbols.size())
    return emitOpError("BS1: ") << type << " is no static tensor of integers with "
                                << symbols.size() << " elements";
  if (Value told = getTold();
      told && (!elementOf(told).isIntOrIndex() || dimsOf(told) != DimVector{Dim(2)}))
    return emitOpError("BS2: ") << told.getType() << " is not two integers";
  return success();
}

/// Whether one of the tensors has this size, and not only one that names it.
static bool hasSize(TypeRange types, const Dim &size) {
  return llvm::any_of(types, [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && llvm::is_contained(dimsOf(tensor), size);
  });
}

LogicalResult RowLengthsOp::verify() {
  DimVector dims = dimsOf(getX()), rows = {Dim::symbol(getOf())};
  bool isMask = dims.size() == 2;
  auto size = Dim::parse(getSize());
  bool fits = size && size->symbolName() == getSize() && dims.size() <= 2 && !dims.empty() &&
              dims[0] == rows[0] && (!isMask || dims[1] == Dim::symbol(getSize())) &&
              (isMask ? elementOf(getX()).isIntOrFloat() : elementOf(getX()).isIntOrIndex());
  if (!fits ||
      getLengths().getType() != tensorOf(getContext(), rows, IntegerType::get(getContext(), 64)))
    return emitOpError("RL1: ") << getX().getType() << " are no lengths of rows '" << getOf()
                                << "', nor a mask of these and '" << getSize() << "'";
  auto argument = dyn_cast<BlockArgument>(getX());
  if (!argument || argument.getOwner() != (*this)->getBlock() ||
      !isa_and_nonnull<func::FuncOp>((*this)->getParentOp()))
    return emitOpError("RL2: x must be an argument of the function around it");
  Block *block = (*this)->getBlock();
  if (!hasSize(block->getArgumentTypes(), Dim::symbol(getSize())))
    return emitOpError("RL5: no argument of the function has the size '")
           << getSize() << "', which is the most that a row may have; give one that size";
  llvm::StringSet<> known = symbolsOf(block->getArgumentTypes());
  bool isBefore = true;
  for (Operation &op : *block) {
    isBefore &= &op != *this;
    if (rowsOf(&op) != getOf())
      continue;
    if (isBefore)
      return emitOpError("RL3: '")
             << op.getName() << "' before it has sizes of rows '" << getOf() << "'";
    for (const auto &symbol : symbolsOf(op.getResultTypes()))
      if (rowsOf(symbol.getKey()).empty() && !summedBy(symbol.getKey()) &&
          !known.contains(symbol.getKey()))
        return emitOpError("RL4: '")
               << op.getName() << "' of rows '" << getOf() << "' has the size '" << symbol.getKey()
               << "', which no argument has";
  }
  return success();
}

bool ReshapeOp::keepsIndices() {
  auto significant = [](Value value) {
    DimVector dims;
    for (const Dim &dim : dimsOf(value))
      if (!dim.isConstant(1))
        dims.push_back(dim);
    return dims;
  };
  return significant(getX()) == significant(getResult());
}

bool isView(Operation *op) {
  auto reshape = dyn_cast<ReshapeOp>(op);
  return reshape && reshape.keepsIndices();
}

Value unshaped(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    if (reshape->getParentOfType<GroupOp>())
      break;
    value = reshape.getX();
  }
  return value;
}

bool isFree(Operation *op) { return isView(op) || isLeaf(op) || isa<BroadcastOp>(op); }

} // namespace heddle::graph
