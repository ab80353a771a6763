// Slices: elements that nothing reads are not computed. A model that classifies by one word of a
// text needs no product, normalisation or query of the others in its last layer.

#include "compiler/simplify/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {
namespace {

/// A range of one dimension: `size` elements from `start` on.
struct Cut {
  Dim start, size;
  int64_t step = 1;
};
using Cuts = SmallVector<Cut, 6>;

Cuts cutsOf(SliceOp op) {
  Cuts cuts;
  for (auto [start, size, step] :
       llvm::zip(dimsOf(op.getStarts()), dimsOf(op.getResult()), op.getSteps()))
    cuts.push_back({start, size, step});
  return cuts;
}

Cut wholeOf(const Dim &size) { return {Dim(0), size}; }
Cuts wholeOf(Value x) {
  DimVector dims = dimsOf(x);
  return llvm::map_to_vector<6>(dims, [](const Dim &size) { return wholeOf(size); });
}
bool isWhole(const Cut &cut, const Dim &size) {
  return cut.start.isConstant(0) && cut.step == 1 && cut.size == size;
}
/// Whether a cut of so many elements lies in them, as constants tell.
bool isWithin(const Cut &cut, const Dim &size) {
  auto start = cut.start.constant(), count = cut.size.constant(), extent = size.constant();
  if (!start || !count || !extent || *count < 1 || *start < 0 || *start >= *extent)
    return isWhole(cut, size);
  Dim last = Dim(*start) + Dim(*count - 1) * Dim(cut.step);
  return last.constant() && *last.constant() >= 0 && *last.constant() < *extent;
}

Value slice(Build &build, Value x, ArrayRef<Cut> cuts) {
  DimVector starts, sizes;
  SmallVector<int64_t> steps;
  for (const Cut &cut : cuts) {
    starts.push_back(cut.start);
    sizes.push_back(cut.size);
    steps.push_back(cut.step);
  }
  return build.slice(x, starts, sizes, steps);
}

/// A slice whose source is computed for it, or for equal ones, alone.
struct Sliced {
  Operation *source;
  SmallVector<SliceOp> readers;
  Cuts cuts;

  static std::optional<Sliced> of(SliceOp op);
  /// The dimensions that lose elements.
  SmallVector<size_t> axes() const;
  /// The source's op on these operands, in place of all readers.
  LogicalResult replace(PatternRewriter &rewriter, ValueRange operands) const;
};

std::optional<Sliced> Sliced::of(SliceOp op) {
  Operation *source = op.getX().getDefiningOp();
  if (!source || source->getNumResults() != 1 || source->hasAttr(kIsStored))
    return std::nullopt;
  Sliced result{source, {}, cutsOf(op)};
  for (Operation *user : source->getUsers()) {
    auto reader = dyn_cast<SliceOp>(user);
    if (!reader || reader->getAttrDictionary() != op->getAttrDictionary() ||
        reader.getType() != op.getType() || reader->getBlock() != source->getBlock())
      return std::nullopt;
    result.readers.push_back(reader);
  }
  if (result.axes().empty())
    return std::nullopt; // an order alone
  return result;
}

SmallVector<size_t> Sliced::axes() const {
  SmallVector<size_t> result;
  for (auto [i, size] : llvm::enumerate(dimsOf(source->getResult(0))))
    if (cuts[i].size != size)
      result.push_back(i);
  return result;
}

LogicalResult Sliced::replace(PatternRewriter &rewriter, ValueRange operands) const {
  SliceOp first = readers.front();
  Operation *op = rebuild(rewriter, source, operands, first.getType());
  for (SliceOp reader : readers)
    rewriter.replaceOp(reader, op->getResults());
  return success();
}

// slice(slice x) = slice x
LogicalResult sliceOfSlice(SliceOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<SliceOp>();
  if (!inner || !llvm::all_of(llvm::zip(cutsOf(op), dimsOf(inner.getResult())), [](auto pair) {
        return isWithin(std::get<0>(pair), std::get<1>(pair));
      }))
    return failure();
  Cuts cuts = cutsOf(op);
  for (auto [cut, under] : llvm::zip(cuts, cutsOf(inner))) {
    if (under.step != 1 && cut.step != 1)
      return failure();
    cut.start = under.start + cut.start * Dim(under.step);
    cut.step *= under.step;
  }
  Build build(rewriter, op);
  rewriter.replaceOp(op, slice(build, inner.getX(), cuts));
  return success();
}

// slice(broadcast x) = broadcast(slice x)
LogicalResult sliceOfBroadcast(SliceOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<BroadcastOp>();
  if (!inner)
    return failure();
  DimVector from = dimsOf(inner.getX()), to = dimsOf(inner.getResult());
  Cuts all = cutsOf(op), cuts;
  size_t added = to.size() - from.size();
  for (auto [i, cut] : llvm::enumerate(all)) {
    bool isRepeated = i < added || from[i - added] != to[i];
    if (isRepeated && !isWithin(cut, to[i]))
      return failure(); // the run's check
    if (i >= added)
      cuts.push_back(isRepeated ? wholeOf(from[i - added]) : cut);
  }
  Build build(rewriter, op);
  rewriter.replaceOp(op, build.broadcast(slice(build, inner.getX(), cuts), dimsOf(op.getResult())));
  return success();
}

// slice(f(x, y)) = f(slice x, slice y)
LogicalResult sliceOfElementwise(SliceOp op, PatternRewriter &rewriter) {
  auto sliced = Sliced::of(op);
  if (!sliced || !isElementwise(sliced->source))
    return failure();
  rewriter.setInsertionPoint(sliced->source);
  Build build(rewriter, op);
  SmallVector<Value> operands;
  for (Value operand : sliced->source->getOperands())
    operands.push_back(slice(build, operand, sliced->cuts));
  return sliced->replace(rewriter, operands);
}

// slice(sum of x over rows) = sum of slice x over rows, likewise products, largest and smallest
template <typename Op> LogicalResult sliceOfReduction(SliceOp op, PatternRewriter &rewriter) {
  auto sliced = Sliced::of(op);
  auto reduction = sliced ? dyn_cast<Op>(sliced->source) : Op();
  if (!reduction)
    return failure();
  DimVector dims = dimsOf(reduction.getX());
  Cuts cuts;
  size_t next = 0;
  for (auto [i, size] : llvm::enumerate(dims)) {
    bool isReduced = llvm::is_contained(reduction.getAxes(), static_cast<int64_t>(i));
    if (isReduced && reduction.getKeepDims() && !isWhole(sliced->cuts[next++], Dim(1)))
      return failure();
    cuts.push_back(isReduced ? wholeOf(size) : sliced->cuts[next++]);
  }
  rewriter.setInsertionPoint(reduction);
  Build build(rewriter, op);
  return sliced->replace(rewriter, slice(build, reduction.getX(), cuts));
}

// slice(matmul(a, b)) = matmul(slice a, slice b)
LogicalResult sliceOfProduct(SliceOp op, PatternRewriter &rewriter) {
  auto sliced = Sliced::of(op);
  auto product = sliced ? dyn_cast<MatmulOp>(sliced->source) : MatmulOp();
  if (!product)
    return failure();
  Cuts left = wholeOf(product.getA()), right = wholeOf(product.getB());
  DimVector dims = dimsOf(product.getResult());
  size_t rows = dims.size() - 2, columns = dims.size() - 1;
  for (auto [i, cut] : llvm::enumerate(sliced->cuts))
    for (Cuts *operand : {&left, &right}) {
      bool isOther = i == (operand == &left ? columns : rows);
      if (isOther || isWhole(cut, dims[i]))
        continue;
      if ((*operand)[i].size == dims[i])
        (*operand)[i] = cut;
      else if (!isWithin(cut, dims[i]))
        return failure(); // a repeated batch, whose range is the run's check
    }
  rewriter.setInsertionPoint(product);
  Build build(rewriter, op);
  SmallVector<Value> operands{slice(build, product.getA(), left),
                              slice(build, product.getB(), right)};
  return sliced->replace(rewriter, operands);
}

// slice(transpose x) = transpose(slice x)
LogicalResult sliceOfTranspose(SliceOp op, PatternRewriter &rewriter) {
  auto sliced = Sliced::of(op);
  auto transpose = sliced ? dyn_cast<TransposeOp>(sliced->source) : TransposeOp();
  if (!transpose)
    return failure();
  Cuts cuts(sliced->cuts);
  for (auto [cut, axis] : llvm::zip(sliced->cuts, transpose.getPermutation()))
    cuts[axis] = cut;
  rewriter.setInsertionPoint(transpose);
  Build build(rewriter, op);
  return sliced->replace(rewriter, slice(build, transpose.getX(), cuts));
}

/// The dimension of `from` that a reshape to `to` keeps as its dimension `axis`.
std::optional<size_t> keptAxis(ArrayRef<Dim> from, ArrayRef<Dim> to, size_t axis) {
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] == to[axis] &&
        elementCount(from.take_front(i)) == elementCount(to.take_front(axis)) &&
        elementCount(from.drop_front(i + 1)) == elementCount(to.drop_front(axis + 1)))
      return i;
  return std::nullopt;
}

// slice(reshape x) = reshape(slice x), of dimensions that the reshape keeps
LogicalResult sliceOfReshape(SliceOp op, PatternRewriter &rewriter) {
  auto sliced = Sliced::of(op);
  auto reshape = sliced ? dyn_cast<ReshapeOp>(sliced->source) : ReshapeOp();
  if (!reshape)
    return failure();
  DimVector from = dimsOf(reshape.getX()), to = dimsOf(reshape.getResult());
  Cuts cuts = wholeOf(reshape.getX());
  for (auto [i, cut] : llvm::enumerate(sliced->cuts)) {
    if (isWhole(cut, to[i]))
      continue;
    auto axis = keptAxis(from, to, i);
    if (!axis)
      return failure();
    cuts[*axis] = cut;
  }
  rewriter.setInsertionPoint(reshape);
  Build build(rewriter, op);
  return sliced->replace(rewriter, slice(build, reshape.getX(), cuts));
}

} // namespace

void addSliceRules(RewritePatternSet &patterns) {
  patterns.add(sliceOfSlice).add(sliceOfBroadcast).add(sliceOfElementwise).add(sliceOfProduct);
  patterns.add(sliceOfReduction<ReduceSumOp>).add(sliceOfReduction<ReduceProdOp>);
  patterns.add(sliceOfReduction<ReduceMaxOp>).add(sliceOfReduction<ReduceMinOp>);
  patterns.add(sliceOfTranspose).add(sliceOfReshape);
}

} // namespace heddle::simplify
