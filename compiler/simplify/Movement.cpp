// Movement: equations on ops that move elements. One function is one equation.

#include "compiler/simplify/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {
namespace {

using Rewriter = PatternRewriter;

/// Whether the op gives back its first operand, as far as types can tell.
bool keepsType(Operation *op) { return op->getOperand(0).getType() == op->getResult(0).getType(); }

LogicalResult forward(Operation *op, Rewriter &rewriter) {
  rewriter.replaceOp(op, op->getOperand(0));
  return success();
}

// reshape x = x, to its own type
LogicalResult reshapeSame(ReshapeOp op, Rewriter &rewriter) {
  return keepsType(op) ? forward(op, rewriter) : failure();
}
// reshape(reshape x) = reshape x, but where a run would find that one of them cannot be
LogicalResult reshapeReshape(ReshapeOp op, Rewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<ReshapeOp>();
  if (!inner)
    return failure();
  auto from = elementCount(dimsOf(inner.getX())).constant(),
       to = elementCount(dimsOf(op.getResult())).constant();
  if (from && to && *from != *to)
    return failure();
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getX());
  return success();
}
// reshape(broadcast x) = broadcast x, where x has one element
LogicalResult reshapeSplat(ReshapeOp op, Rewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<BroadcastOp>();
  if (!inner || !elementCount(dimsOf(inner.getX())).isConstant(1))
    return failure();
  Value one = Build(rewriter, op).reshape(inner.getX(), {});
  rewriter.replaceOp(op, Build(rewriter, op).broadcast(one, dimsOf(op.getResult())));
  return success();
}

// broadcast x = x, to its own type
LogicalResult broadcastSame(BroadcastOp op, Rewriter &rewriter) {
  return keepsType(op) ? forward(op, rewriter) : failure();
}
// broadcast(broadcast x) = broadcast x, with the same exception
LogicalResult broadcastBroadcast(BroadcastOp op, Rewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<BroadcastOp>();
  if (!inner)
    return failure();
  DimVector from = dimsOf(inner.getX()), to = dimsOf(op.getResult());
  for (auto [size, wanted] : llvm::zip(llvm::reverse(from), llvm::reverse(to)))
    if (size.constant() && wanted.constant() && size != wanted && !size.isConstant(1))
      return failure();
  rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getX());
  return success();
}
// broadcast x = reshape x, where it adds dimensions of size 1 only
LogicalResult broadcastOnes(BroadcastOp op, Rewriter &rewriter) {
  DimVector from = dimsOf(op.getX()), to = dimsOf(op.getResult());
  size_t added = to.size() - from.size();
  for (auto [i, size] : llvm::enumerate(to))
    if (i < added ? !size.isConstant(1) : size != from[i - added])
      return failure();
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getX());
  return success();
}
// broadcast(reshape x) = broadcast x, where the reshape only adds leading dimensions of size 1
LogicalResult broadcastReshape(BroadcastOp op, Rewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<ReshapeOp>();
  if (!inner)
    return failure();
  DimVector from = dimsOf(inner.getX()), to = dimsOf(inner.getResult());
  if (from.size() >= to.size())
    return failure();
  size_t added = to.size() - from.size();
  for (auto [i, size] : llvm::enumerate(to))
    if (i < added ? !size.isConstant(1) : size != from[i - added])
      return failure();
  rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getX());
  return success();
}

// transpose x = x, by the identity; transpose x = reshape x, where only sizes of 1 move
LogicalResult transposeOnes(TransposeOp op, Rewriter &rewriter) {
  if (!isReshape(dimsOf(op.getX()), op.getPermutation()))
    return failure();
  rewriter.replaceOp(op, Build(rewriter, op).reshape(op.getX(), dimsOf(op.getResult())));
  return success();
}
// transpose(transpose x) = transpose x
LogicalResult transposeTranspose(TransposeOp op, Rewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<TransposeOp>();
  if (!inner)
    return failure();
  SmallVector<int64_t> both;
  for (int64_t axis : op.getPermutation())
    both.push_back(inner.getPermutation()[axis]);
  rewriter.replaceOp(op, Build(rewriter, op).transpose(inner.getX(), both));
  return success();
}
// transpose(broadcast x) = broadcast(transpose x), where x is smaller
LogicalResult transposeBroadcast(TransposeOp op, Rewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<BroadcastOp>();
  if (!inner)
    return failure();
  DimVector from = dimsOf(inner.getX());
  if (elementCount(from) == elementCount(dimsOf(inner.getResult())))
    return failure();
  while (from.size() < op.getPermutation().size())
    from.insert(from.begin(), Dim(1));
  Value x = Build(rewriter, op).reshape(inner.getX(), from);
  x = Build(rewriter, op).transpose(x, op.getPermutation());
  rewriter.replaceOp(op, Build(rewriter, op).broadcast(x, dimsOf(op.getResult())));
  return success();
}

// slice x = x, of everything
LogicalResult sliceAll(SliceOp op, Rewriter &rewriter) {
  bool isAll =
      keepsType(op) && llvm::all_of(op.getSteps(), [](int64_t step) { return step == 1; }) &&
      llvm::all_of(dimsOf(op.getStarts()), [](const Dim &dim) { return dim.isConstant(0); });
  return isAll ? forward(op, rewriter) : failure();
}
// slice(broadcast x) = broadcast x, where x has one element
LogicalResult sliceSplat(SliceOp op, Rewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<BroadcastOp>();
  if (!inner || !elementCount(dimsOf(inner.getX())).isConstant(1))
    return failure();
  rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getX());
  return success();
}
/// A slice along one axis in place of a gather of it.
LogicalResult sliceAlong(GatherOp op, const Dim &start, const Dim &size, int64_t step,
                         Rewriter &rewriter) {
  DimVector sizes = dimsOf(op.getX());
  DimVector starts(sizes.size(), Dim(0));
  SmallVector<int64_t> steps(sizes.size(), 1);
  starts[op.getAxis()] = start;
  steps[op.getAxis()] = step;
  sizes[op.getAxis()] = size;
  Build build(rewriter, op);
  Value slice = build.slice(op.getX(), starts, sizes, steps);
  rewriter.replaceOp(op, build.reshape(slice, dimsOf(op.getResult())));
  return success();
}
// gather x at constant places = slice x, where these lie at equal distances
LogicalResult gatherEvenly(GatherOp op, Rewriter &rewriter) {
  DimVector sizes = dimsOf(op.getX());
  int64_t axis = op.getAxis();
  auto places = constantIntegers(op.getIndices());
  auto extent = sizes[axis].constant();
  if (!places || places->empty() || !extent)
    return failure();
  for (int64_t &place : *places) {
    place += place < 0 ? *extent : 0;
    if (place < 0 || place >= *extent)
      return failure(); // the run's error
  }
  int64_t step = places->size() > 1 ? (*places)[1] - (*places)[0] : 1;
  for (size_t i = 1; i < places->size(); ++i)
    if (step == 0 || (*places)[i] - (*places)[i - 1] != step)
      return failure();
  return sliceAlong(op, Dim((*places)[0]), Dim(places->size()), step, rewriter);
}
// gather x at c, c + 1, ... = slice x
LogicalResult gatherCounted(GatherOp op, Rewriter &rewriter) {
  Value places = op.getIndices();
  Dim start(0);
  if (auto sum = places.getDefiningOp<AddOp>()) {
    auto first = splatOf(sum.getY());
    if (!first || !(*first >= 0 && *first <= INT32_MAX))
      return failure();
    start = Dim(static_cast<int64_t>(*first));
    places = sum.getX();
  }
  if (auto reshape = places.getDefiningOp<ReshapeOp>())
    places = reshape.getX();
  auto numbers = places.getDefiningOp<IotaOp>();
  if (!numbers)
    return failure();
  DimVector counted = dimsOf(places);
  Dim size = counted[numbers.getAxis()];
  Dim left = dimsOf(op.getX())[op.getAxis()] - start - size;
  // A range that is known to be wrong is the run's error.
  if (elementCount(counted) != size || elementCount(dimsOf(op.getIndices())) != size ||
      (left.constant() && *left.constant() < 0))
    return failure();
  return sliceAlong(op, start, size, 1, rewriter);
}
// i = 0 along an axis of size 1
LogicalResult iotaOfOne(IotaOp op, Rewriter &rewriter) {
  DimVector dims = dimsOf(op.getResult());
  if (!dims[op.getAxis()].isConstant(1))
    return failure();
  rewriter.replaceOp(op, Build(rewriter, op).full(dims, elementOf(op.getResult()), 0));
  return success();
}
// concat(x) = x
LogicalResult concatOne(ConcatOp op, Rewriter &rewriter) {
  return op.getXs().size() == 1 ? forward(op, rewriter) : failure();
}
// concat(x, y) = x, where y has no elements
LogicalResult concatEmpty(ConcatOp op, Rewriter &rewriter) {
  SmallVector<Value> kept;
  for (Value x : op.getXs())
    if (!dimsOf(x)[op.getAxis()].isConstant(0))
      kept.push_back(x);
  if (kept.empty() || kept.size() == op.getXs().size())
    return failure();
  auto fresh = rewriter.create<ConcatOp>(op.getLoc(), kept, op.getAxis());
  rewriter.replaceOp(op, Build(rewriter, op).reshape(fresh, dimsOf(op.getResult())));
  return success();
}
// concat(x0, x1, ...) = concat(concat(x0, ...), concat(...), ...), if it has very many operands:
// a kernel has code for each, and what LLVM does grows faster than the code
constexpr size_t kMostParts = 64, kPartsTogether = 32;
LogicalResult concatMany(ConcatOp op, Rewriter &rewriter) {
  SmallVector<Value> parts(op.getXs()), joined;
  if (parts.size() <= kMostParts)
    return failure();
  for (size_t i = 0; i < parts.size(); i += kPartsTogether) {
    auto some = ArrayRef<Value>(parts).slice(i, std::min(kPartsTogether, parts.size() - i));
    joined.push_back(rewriter.create<ConcatOp>(op.getLoc(), some, op.getAxis()));
  }
  auto fresh = rewriter.create<ConcatOp>(op.getLoc(), joined, op.getAxis());
  rewriter.replaceOp(op, Build(rewriter, op).reshape(fresh, dimsOf(op.getResult())));
  return success();
}
// pad x = x, by nothing
LogicalResult padNothing(PadOp op, Rewriter &rewriter) {
  auto isZero = [](const Dim &dim) { return dim.isConstant(0); };
  bool isNothing = keepsType(op) && llvm::all_of(dimsOf(op.getLow()), isZero) &&
                   llvm::all_of(dimsOf(op.getHigh()), isZero);
  return isNothing ? forward(op, rewriter) : failure();
}
/// Whether sizes and constants alone decide the value.
bool followsFromSizes(Value value, int depth = 16) {
  Operation *op = value.getDefiningOp();
  bool passes = op && (isElementwise(op) || isLeaf(op) || isa<BroadcastOp, ReshapeOp>(op));
  return passes && depth > 0 && llvm::all_of(op->getOperands(), [&](Value operand) {
           return followsFromSizes(operand, depth - 1);
         });
}
// gather(broadcast of one element, i) = broadcast of it; an index that is data is still checked
LogicalResult gatherSplat(GatherOp op, Rewriter &rewriter) {
  auto broadcast = op.getX().getDefiningOp<BroadcastOp>();
  if (!broadcast || !elementCount(dimsOf(broadcast.getX())).isConstant(1) ||
      !followsFromSizes(op.getIndices()))
    return failure();
  Build build(rewriter, op);
  rewriter.replaceOp(op,
                     build.broadcast(build.reshape(broadcast.getX(), {}), dimsOf(op.getResult())));
  return success();
}
// sum over no axes = x, likewise products, largest and smallest
template <typename Op> LogicalResult reduceNothing(Op op, Rewriter &rewriter) {
  return op.getAxes().empty() && keepsType(op) ? forward(op, rewriter) : failure();
}
// sum over axes a and b = sum over b, where a has one element: what is left may be whole rows
template <typename Op> LogicalResult reduceOnes(Op op, Rewriter &rewriter) {
  DimVector dims = dimsOf(op.getX());
  SmallVector<int64_t> axes(op.getAxes());
  llvm::erase_if(axes, [&](int64_t axis) { return dims[axis].isConstant(1); });
  if (axes.empty() || axes.size() == op.getAxes().size())
    return failure();
  auto fresh = rewriter.create<Op>(op.getLoc(), op.getX(), axes, op.getKeepDims());
  rewriter.replaceOp(op, Build(rewriter, op).reshape(fresh, dimsOf(op.getResult())));
  return success();
}
// sum over axes a and c, but not b = sum over a of the sum over c: then rows lie in memory, which a
// kernel of rows reads, and what else it needs of them
template <typename Op> LogicalResult reduceInnerFirst(Op op, Rewriter &rewriter) {
  DimVector dims = dimsOf(op.getX());
  int64_t first = dims.size(); // first of the trailing axes that are reduced
  while (first > 0 && llvm::is_contained(op.getAxes(), first - 1))
    --first;
  SmallVector<int64_t> inner, outer;
  for (int64_t axis : op.getAxes())
    (axis >= first ? inner : outer).push_back(axis);
  // A narrow sum would be rounded between the two.
  bool isWide = storageOf(op.getX()).getIntOrFloatBitWidth() >= 32;
  if (inner.empty() || outer.empty() || !isWide)
    return failure();
  Value rows = rewriter.create<Op>(op.getLoc(), op.getX(), inner, false);
  Value whole = rewriter.create<Op>(op.getLoc(), rows, outer, false);
  rewriter.replaceOp(op, Build(rewriter, op).reshape(whole, dimsOf(op.getResult())));
  return success();
}

} // namespace

void addMovementRules(RewritePatternSet &patterns) {
  patterns.add(reshapeSame).add(reshapeReshape).add(reshapeSplat);
  patterns.add(broadcastSame).add(broadcastBroadcast).add(broadcastOnes).add(broadcastReshape);
  patterns.add(transposeOnes).add(transposeTranspose).add(transposeBroadcast);
  patterns.add(sliceAll)
      .add(sliceSplat)
      .add(gatherEvenly)
      .add(gatherCounted)
      .add(iotaOfOne)
      .add(gatherSplat)
      .add(concatOne)
      .add(concatEmpty)
      .add(concatMany)
      .add(padNothing);
  patterns.add(reduceNothing<ReduceSumOp>).add(reduceNothing<ReduceProdOp>);
  patterns.add(reduceNothing<ReduceMaxOp>).add(reduceNothing<ReduceMinOp>);
  patterns.add(reduceOnes<ReduceSumOp>).add(reduceOnes<ReduceProdOp>);
  patterns.add(reduceOnes<ReduceMaxOp>).add(reduceOnes<ReduceMinOp>);
  patterns.add(reduceInnerFirst<ReduceSumOp>).add(reduceInnerFirst<ReduceProdOp>);
  patterns.add(reduceInnerFirst<ReduceMaxOp>).add(reduceInnerFirst<ReduceMinOp>);
}

} // namespace heddle::simplify
