// Static: ONNX's rules for -1, 0, clamping and two-way broadcasting, on size expressions.

#include "compiler/simplify/Static.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

// Models write "to the end" as a number that no size reaches.
static constexpr int64_t kBeyondAnySize = std::numeric_limits<int32_t>::max();

/// Letters of a size's formula: a chain of slices would double it with each.
static constexpr size_t kLongestFormula = 200;

/// The result type: where the op bound a fresh symbol, the size that is known now.
static RankedTensorType resultType(Operation *op, ArrayRef<Dim> dims, Refinement &refinement) {
  Value result = op->getResult(0);
  return tensorOf(op->getContext(), refine(refinement, dimsOf(result), dims), elementOf(result));
}

static std::optional<DimVector> reshapedSizes(DynamicReshapeOp op) {
  auto shape = shapeValue(op.getShape());
  if (!shape)
    return std::nullopt;
  DimVector from = dimsOf(op.getX()), sizes;
  Dim known(1);
  std::optional<size_t> inferred;
  for (auto [i, entry] : llvm::enumerate(*shape)) {
    Dim size = entry;
    if (entry.isConstant(0) && !op.getAllowZero()) {
      if (i >= from.size())
        return std::nullopt;
      size = from[i];
    }
    if (entry.isConstant(-1)) {
      if (inferred)
        return std::nullopt;
      inferred = i;
    } else {
      known = known * size;
    }
    sizes.push_back(size);
  }
  if (inferred) {
    if (known.isConstant(0))
      return std::nullopt;
    sizes[*inferred] = elementCount(from).floorDiv(known);
  }
  return sizes;
}

static std::optional<DimVector> broadcastSizes(DynamicBroadcastOp op) {
  auto shape = shapeValue(op.getShape());
  if (!shape)
    return std::nullopt;
  DimVector from = dimsOf(op.getX()), to = *shape;
  while (from.size() < to.size())
    from.insert(from.begin(), Dim(1));
  while (to.size() < from.size())
    to.insert(to.begin(), Dim(1));
  DimVector sizes;
  for (auto [a, b] : llvm::zip(from, to)) {
    auto one = a.constant(), other = b.constant();
    if (one == 1 || a == b)
      sizes.push_back(b);
    else if (other == 1 || (one && !other))
      sizes.push_back(a);
    else if (other && !one)
      sizes.push_back(b);
    else
      return std::nullopt;
  }
  return sizes;
}

namespace {
/// One axis of a slice: result[i] = x[start + i * step], i < size.
struct Span {
  Dim start, size;
};
} // namespace

/// A bound counted from the end is made to count from the beginning.
static std::optional<Dim> fromBegin(const Dim &bound, const Dim &size) {
  if (auto number = bound.constant())
    return *number < 0 ? size + bound : bound;
  return bound.isNeverNegative() ? std::optional<Dim>(bound) : std::nullopt;
}

static std::optional<Span> forwardSpan(const Dim &start, const Dim &end, const Dim &size,
                                       int64_t step) {
  auto clamp = [&](const Dim &bound) -> std::optional<Dim> {
    auto number = bound.constant();
    if (number && *number >= kBeyondAnySize)
      return size;
    if (number && *number <= -kBeyondAnySize)
      return Dim(0);
    auto place = fromBegin(bound, size);
    return place ? std::optional<Dim>(Dim::max(Dim::min(*place, size), Dim(0))) : std::nullopt;
  };
  auto from = clamp(start), to = clamp(end);
  if (!from || !to)
    return std::nullopt;
  return Span{*from, Dim::max(*to - *from, Dim(0)).ceilDiv(Dim(step))};
}

static std::optional<Span> backwardSpan(const Dim &start, const Dim &end, const Dim &size,
                                        int64_t step) {
  auto extent = size.constant();
  if (!extent) {
    // The whole axis from its end, for a size known only at run time.
    bool isWhole = (start.isConstant(-1) || start.constant().value_or(0) >= kBeyondAnySize) &&
                   end.constant().value_or(0) <= -kBeyondAnySize;
    return isWhole ? std::optional<Span>({size - Dim(1), size.ceilDiv(Dim(-step))}) : std::nullopt;
  }
  auto clamp = [&](const Dim &bound) -> std::optional<int64_t> {
    auto number = bound.constant();
    if (!number)
      return std::nullopt;
    int64_t place = *number < 0 ? std::max<int64_t>(*number, -kBeyondAnySize) + *extent : *number;
    return std::clamp<int64_t>(place, -1, *extent - 1);
  };
  auto from = clamp(start), to = clamp(end);
  if (!from || !to)
    return std::nullopt;
  int64_t first = std::max<int64_t>(*from, 0); // a start before the axis means its first element
  if (*extent == 0)
    return Span{Dim(0), Dim(0)};
  return Span{Dim(first), Dim(std::max<int64_t>(first - *to, 0)).ceilDiv(Dim(-step))};
}

static Value makeSlice(OpBuilder &builder, DynamicSliceOp op, Refinement &refinement) {
  auto starts = shapeValue(op.getStarts()), ends = shapeValue(op.getEnds()),
       steps = shapeValue(op.getSteps());
  size_t count = op.getAxes().size();
  if (!starts || !ends || !steps || starts->size() != count || ends->size() != count ||
      steps->size() != count)
    return {};
  DimVector sizes = dimsOf(op.getX()), places(sizes.size(), Dim(0));
  SmallVector<int64_t> strides(sizes.size(), 1);
  for (auto [i, axis] : llvm::enumerate(op.getAxes())) {
    auto step = (*steps)[i].constant();
    if (!step || *step == 0 || *step >= kBeyondAnySize || *step <= -kBeyondAnySize)
      return {};
    auto span = *step > 0 ? forwardSpan((*starts)[i], (*ends)[i], sizes[axis], *step)
                          : backwardSpan((*starts)[i], (*ends)[i], sizes[axis], *step);
    if (!span)
      return {};
    sizes[axis] = span->size;
    places[axis] = span->start;
    strides[axis] = *step;
  }
  bool isLong = llvm::any_of(resolve(refinement, sizes), [](const Dim &size) {
    return size.isTooLarge() || size.str().size() > kLongestFormula;
  });
  if (isLong)
    return {};
  auto type = resultType(op, sizes, refinement);
  return builder.create<SliceOp>(op.getLoc(), type, op.getX(), dimsAttr(op.getContext(), places),
                                 builder.getDenseI64ArrayAttr(strides));
}

static Value makeRange(OpBuilder &builder, RangeOp op, Refinement &refinement) {
  auto start = shapeValue(op.getStart()), limit = shapeValue(op.getLimit()),
       delta = shapeValue(op.getDelta());
  auto step = delta ? delta->front().constant() : std::nullopt;
  if (!start || !limit || !step || *step == 0 || *step >= kBeyondAnySize ||
      *step <= -kBeyondAnySize)
    return {};
  Dim distance = *step > 0 ? limit->front() - start->front() : start->front() - limit->front();
  Dim count = Dim::max(distance.ceilDiv(Dim(std::abs(*step))), Dim(0));
  auto type = resultType(op, {count}, refinement);
  Location location = op.getLoc();
  Value result = builder.create<IotaOp>(location, type, builder.getI64IntegerAttr(0));
  auto spread = [&](Value x) { return builder.create<BroadcastOp>(location, type, x); };
  if (*step != 1)
    result = builder.create<MulOp>(location, result, spread(op.getDelta()));
  if (!start->front().isConstant(0))
    result = builder.create<AddOp>(location, result, spread(op.getStart()));
  return result;
}

Value makeStatic(OpBuilder &builder, Operation *op, Refinement &refinement) {
  Location location = op->getLoc();
  if (auto reshape = dyn_cast<DynamicReshapeOp>(op)) {
    auto sizes = reshapedSizes(reshape);
    if (!sizes || sizes->size() != dimsOf(reshape.getResult()).size())
      return {};
    return builder.create<ReshapeOp>(location, resultType(op, *sizes, refinement), reshape.getX());
  }
  if (auto broadcast = dyn_cast<DynamicBroadcastOp>(op)) {
    auto sizes = broadcastSizes(broadcast);
    if (!sizes || sizes->size() != dimsOf(broadcast.getResult()).size())
      return {};
    return builder.create<BroadcastOp>(location, resultType(op, *sizes, refinement),
                                       broadcast.getX());
  }
  if (auto slice = dyn_cast<DynamicSliceOp>(op))
    return makeSlice(builder, slice, refinement);
  if (auto range = dyn_cast<RangeOp>(op))
    return makeRange(builder, range, refinement);
  return {};
}

} // namespace heddle::simplify
