// Layout: roles of ops, and their attributes and types under a permutation.

#include "compiler/simplify/Layout.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

SmallVector<int64_t> channelsLastOrder(int64_t rank) {
  SmallVector<int64_t> order{0};
  for (int64_t axis = 2; axis < rank; ++axis)
    order.push_back(axis);
  order.push_back(1);
  return order;
}

static constexpr int64_t kLeastRank = 3; // of a tensor with channels and space
static constexpr StringLiteral kChannelsLast = "channels_last";

static bool isReduction(Operation *op) {
  return op->hasTrait<Reduction>() || op->hasTrait<ArgReduction>();
}

static bool keepsDims(Operation *op) {
  auto attr = op->getAttrOfType<BoolAttr>("keep_dims");
  return attr && attr.getValue();
}

/// Whether the dimensions that are left have one order, reduced in either layout.
static bool reducesToSameOrder(Operation *op) {
  SmallVector<int64_t> axes = combinedAxes(op), left;
  for (int64_t axis : channelsLastOrder(rankOf(op->getOperand(0))))
    if (!llvm::is_contained(axes, axis))
      left.push_back(axis);
  return llvm::is_sorted(left);
}

/// The sizes of x, with 1 before them up to `rank` of them.
static DimVector alignedSizes(Value x, int64_t rank) {
  DimVector sizes = dimsOf(x);
  sizes.insert(sizes.begin(), rank - sizes.size(), Dim(1));
  return sizes;
}

Role roleOf(Operation *op) {
  if (op->hasTrait<OnImages>()) {
    auto attr = op->getAttrOfType<BoolAttr>(kChannelsLast);
    return attr && attr.getValue() ? Role::Fixed : Role::Anchor;
  }
  if (!isa_and_nonnull<GraphDialect>(op->getDialect()) || op->getNumResults() == 0)
    return Role::Fixed;
  int64_t rank = rankOf(op->getNumOperands() ? op->getOperand(0) : op->getResult(0));
  bool isFlexible = false;
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    int64_t wide = rankOf(broadcast.getResult());
    return wide >= kLeastRank && (rank == wide || isReshape(alignedSizes(broadcast.getX(), wide),
                                                            channelsLastOrder(wide)))
               ? Role::Flexible
               : Role::Fixed;
  }
  if (auto gather = dyn_cast<GatherOp>(op))
    isFlexible = rankOf(gather.getIndices()) == 1;
  else if (isReduction(op))
    isFlexible = rank >= kLeastRank && (keepsDims(op) || reducesToSameOrder(op));
  else
    isFlexible = op->hasTrait<Elementwise>() || op->hasTrait<Reorderable>();
  return isFlexible && rank >= kLeastRank ? Role::Flexible : Role::Fixed;
}

bool isPermutedOperand(Operation *op, unsigned number) {
  if (op->hasTrait<Elementwise>() || isa<ConcatOp, ConvFilterGradientOp, UnpoolOp>(op))
    return true;
  if (isa<BroadcastOp>(op))
    return rankOf(op->getOperand(0)) == rankOf(op->getResult(0));
  return number == 0;
}

bool isPermutedResult(Operation *op) {
  return !isa<ConvFilterGradientOp>(op) && (!isReduction(op) || keepsDims(op));
}

bool hasBothLayouts(Value value) {
  return isConstant(value) || isa_and_nonnull<IotaOp>(value.getDefiningOp());
}

Value remakeChannelsLast(OpBuilder &builder, Value value) {
  Operation *op = value.getDefiningOp();
  if (isa<ConstantOp>(op))
    return Build(builder, value).transpose(value, channelsLastOrder(rankOf(value)));
  SmallVector<Value> operands(op->getOperands());
  if (isa<BroadcastOp>(op) && isPermutedOperand(op, 0))
    operands[0] =
        Build(builder, value).transpose(operands[0], channelsLastOrder(rankOf(operands[0])));
  return rebuildChannelsLast(builder, op, operands)->getResult(0);
}

/// Attributes that speak of dimensions, in the order of the permuted ones.
static void permuteAttributes(OpBuilder &builder, NamedAttrList &attrs, ArrayRef<int64_t> order) {
  SmallVector<int64_t> place = inverse(order);
  if (auto axis = dyn_cast_or_null<IntegerAttr>(attrs.get("axis")))
    attrs.set("axis", builder.getI64IntegerAttr(place[axis.getInt()]));
  if (auto axes = dyn_cast_or_null<DenseI64ArrayAttr>(attrs.get("axes"))) {
    SmallVector<int64_t> moved;
    for (int64_t axis : axes.asArrayRef())
      moved.push_back(place[axis]);
    llvm::sort(moved);
    attrs.set("axes", builder.getDenseI64ArrayAttr(moved));
  }
}

/// Attributes that hold one entry per dimension.
static void permuteEntries(OpBuilder &builder, NamedAttrList &attrs, ArrayRef<int64_t> order) {
  for (StringRef name : {"starts", "low", "high"})
    if (auto dims = dyn_cast_or_null<DimsAttr>(attrs.get(name)))
      attrs.set(name, dimsAttr(builder.getContext(), permuted(dimsOf(dims), order)));
  if (auto steps = dyn_cast_or_null<DenseI64ArrayAttr>(attrs.get("steps"))) {
    SmallVector<int64_t> moved;
    for (int64_t axis : order)
      moved.push_back(steps[axis]);
    attrs.set("steps", builder.getDenseI64ArrayAttr(moved));
  }
  if (auto scales = dyn_cast_or_null<DenseF64ArrayAttr>(attrs.get("scales"))) {
    SmallVector<double> moved;
    for (int64_t axis : order)
      moved.push_back(scales[axis]);
    attrs.set("scales", builder.getDenseF64ArrayAttr(moved));
  }
}

Operation *rebuildChannelsLast(OpBuilder &builder, Operation *op, ArrayRef<Value> operands) {
  bool isWide = isa<BroadcastOp, IotaOp>(op);
  int64_t rank = rankOf(isWide ? op->getResult(0) : op->getOperand(0));
  SmallVector<int64_t> order = channelsLastOrder(rank);
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  NamedAttrList attrs(op->getAttrs());
  if (op->hasTrait<OnImages>()) {
    attrs.set(kChannelsLast, builder.getBoolAttr(true));
  } else {
    permuteAttributes(builder, attrs, order);
    permuteEntries(builder, attrs, order);
  }
  state.addAttributes(attrs);
  if (isa<BroadcastOp>(op) && !isPermutedOperand(op, 0)) {
    Value x = Build(builder, op).reshape(operands[0], alignedSizes(operands[0], rank));
    state.operands[0] = Build(builder, op).transpose(x, order);
  }
  for (Value result : op->getResults())
    state.addTypes(
        isPermutedResult(op)
            ? tensorOf(builder.getContext(), permuted(dimsOf(result), order), elementOf(result))
            : result.getType());
  return builder.create(state);
}

} // namespace heddle::simplify
