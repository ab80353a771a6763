// Picks: one element of each row, by an index that is data, as a loss takes the score of a target
// class. Whole rows that are computed only to pick from them, or only to hold the elements put
// there, follow from the element alone, or element by element in whatever kernel reads them.

#include "compiler/simplify/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {
namespace {

using Rewriter = PatternRewriter;

/// Whether the indices name one place along the axis for each row of `dims`, all of which they
/// have.
bool isOneOfEachRow(ArrayRef<Dim> dims, Value indices, size_t axis) {
  DimVector places = dimsOf(indices);
  for (auto [i, size, row] : llvm::enumerate(places, dims))
    if (i == axis ? !size.isConstant(1) || row.isConstant(1) : size != row)
      return false;
  return true;
}

/// A value that is constant along the axis, as one number for each row of the sizes `dims`; null
/// for others.
Value rowNumberOf(Rewriter &rewriter, Value value, size_t axis, ArrayRef<Dim> dims) {
  Build build(rewriter, value);
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (auto number = splatOf(value); number && !broadcast)
    return build.full(dims, elementOf(value), *number);
  if (!broadcast)
    return nullptr;
  DimVector from = dimsOf(broadcast.getX());
  from.insert(from.begin(), dims.size() - from.size(), Dim(1));
  if (!from[axis].isConstant(1))
    return nullptr;
  return build.broadcast(build.reshape(broadcast.getX(), from), dims);
}

// f(x, y)[i] = f(x[i], y[i])
LogicalResult pickOfElementwise(GatherElementsOp op, Rewriter &rewriter) {
  Operation *source = op.getX().getDefiningOp();
  size_t axis = op.getAxis();
  if (!source || !isElementwise(source) || source->getNumResults() != 1 ||
      !isOneOfEachRow(dimsOf(op.getX()), op.getIndices(), axis))
    return failure();
  DimVector dims = dimsOf(op.getResult());
  SmallVector<Value> operands;
  bool isPicked = false; // the index has to be looked at
  for (Value operand : source->getOperands()) {
    Value number = rowNumberOf(rewriter, operand, axis, dims);
    isPicked |= !number;
    operands.push_back(number);
  }
  if (!isPicked)
    return failure();
  for (auto [picked, operand] : llvm::zip(operands, source->getOperands()))
    if (!picked)
      picked = rewriter.create<GatherElementsOp>(
          op.getLoc(), tensorOf(rewriter.getContext(), dims, elementOf(operand)), operand,
          op.getIndices(), op.getAxis());
  rewriter.replaceOp(op, rebuild(rewriter, source, operands, op.getType()));
  return success();
}

/// Numbers along the axis, and the one of each row that the indices name, which a run checks.
std::pair<Value, Value> placesOf(Rewriter &rewriter, ScatterElementsOp op, ArrayRef<Dim> dims) {
  Build build(rewriter, op);
  int64_t axis = op.getAxis();
  auto size = dims[axis].constant();
  Type index = rewriter.getIntegerType(size && *size < INT32_MAX ? 32 : 64);
  Value numbers = build.typed<IotaOp>(dims, index, static_cast<uint64_t>(axis));
  Value place = build.typed<GatherElementsOp>(dimsOf(op.getIndices()), index, numbers,
                                              op.getIndices(), op.getAxis());
  return {numbers, place};
}

// scatter(c, i, u)[j] = i == j ? u : c, of one update a row onto one number; c + u where it adds
LogicalResult scatterOne(ScatterElementsOp op, Rewriter &rewriter) {
  DimVector dims = dimsOf(op.getX());
  bool adds = op.getReduction() == "add";
  auto fill = op.getX().getDefiningOp<BroadcastOp>();
  if ((!adds && op.getReduction() != "none") || !fill ||
      !elementCount(dimsOf(fill.getX())).isConstant(1) ||
      !isOneOfEachRow(dims, op.getIndices(), op.getAxis()) ||
      dimsOf(op.getUpdates()) != dimsOf(op.getIndices()))
    return failure();
  Build build(rewriter, op);
  auto [numbers, place] = placesOf(rewriter, op, dims);
  Value isPlace = build.compare<EqualOp>(numbers, build.broadcast(place, dims));
  Value update = op.getUpdates();
  if (adds && !isSplat(op.getX(), 0))
    update = build.add(build.broadcast(build.reshape(fill.getX(), {}), dimsOf(update)), update);
  rewriter.replaceOp(op, build.select(isPlace, build.broadcast(update, dims), op.getX()));
  return success();
}

/// Whether this holds at one place of each row along the axis, which is known to be in the row.
bool isAtOnePlace(Value condition, int64_t axis) {
  auto isPlace = condition.getDefiningOp<EqualOp>();
  auto numbers = isPlace ? isPlace.getX().getDefiningOp<IotaOp>() : IotaOp();
  auto place = isPlace ? isPlace.getY().getDefiningOp<BroadcastOp>() : BroadcastOp();
  auto picked = place ? place.getX().getDefiningOp<GatherElementsOp>() : GatherElementsOp();
  auto source = picked ? picked.getX().getDefiningOp<IotaOp>() : IotaOp();
  return numbers && source && (int64_t)numbers.getAxis() == axis &&
         (int64_t)source.getAxis() == axis && (int64_t)picked.getAxis() == axis &&
         dimsOf(source.getResult()) == dimsOf(condition) &&
         dimsOf(picked.getResult())[axis].isConstant(1);
}

// sum over j of (i == j ? u : 0) = u, and the same of its negation, where others read the row, too,
// so that the index is still checked
LogicalResult sumOfOne(ReduceSumOp op, Rewriter &rewriter) {
  auto negation = op.getX().getDefiningOp<NegOp>();
  auto select = (negation ? negation.getX() : op.getX()).getDefiningOp<SelectOp>();
  if (!select || select->hasOneUse() || op.getAxes().size() != 1 || !isSplat(select.getY(), 0) ||
      !isAtOnePlace(select.getCondition(), op.getAxes().front()))
    return failure();
  DimVector rows = dimsOf(op.getX());
  rows[op.getAxes().front()] = Dim(1);
  Value number = rowNumberOf(rewriter, select.getX(), op.getAxes().front(), rows);
  if (!number)
    return failure();
  Build build(rewriter, op);
  number = build.reshape(number, dimsOf(op.getResult()));
  rewriter.replaceOp(op, negation ? build.neg(number) : number);
  return success();
}

} // namespace

void addPickRules(RewritePatternSet &patterns) {
  patterns.add(pickOfElementwise);
  patterns.add(scatterOne);
  patterns.add(sumOfOne);
}

} // namespace heddle::simplify
