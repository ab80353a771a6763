// ShapeValue: which size expressions an integer tensor holds, found by walking back from its use.
//
// This is how shape arithmetic of ONNX (Shape, Slice, Concat, Gather, Mul ...) becomes names in
// types at import time and constants in simplify: one walk serves both.

#include "compiler/graph/Graph.h"

using namespace mlir;

namespace heddle::graph {

static constexpr int kDepthLimit = 64;
static constexpr int64_t kElementLimit = 256;

static std::optional<DimVector> valueOf(Value value, int depth);

static std::optional<DimVector> binaryValue(Operation *op, int depth) {
  auto x = valueOf(op->getOperand(0), depth), y = valueOf(op->getOperand(1), depth);
  if (!x || !y || x->size() != y->size())
    return std::nullopt;
  DimVector result;
  for (auto [a, b] : llvm::zip(*x, *y)) {
    if (isa<AddOp>(op))
      result.push_back(a + b);
    else if (isa<SubOp>(op))
      result.push_back(a - b);
    else if (isa<MulOp>(op))
      result.push_back(a * b);
    else if (isa<MaxOp>(op))
      result.push_back(Dim::max(a, b));
    else if (isa<MinOp>(op))
      result.push_back(Dim::min(a, b));
    else if (!isa<DivOp, ModOp>(op))
      return std::nullopt;
    else {
      // Integer division truncates; it is a floor only where nothing is negative.
      auto divisor = b.constant();
      if (!a.isNeverNegative() || !b.isNeverNegative() || (divisor && *divisor == 0))
        return std::nullopt;
      if (auto mod = dyn_cast<ModOp>(op))
        result.push_back(a.mod(b));
      else
        result.push_back(a.floorDiv(b));
    }
  }
  return result;
}

/// Comparisons fold only where they come out the same for all sizes.
static std::optional<DimVector> compareValue(Operation *op, int depth) {
  auto x = valueOf(op->getOperand(0), depth), y = valueOf(op->getOperand(1), depth);
  if (!x || !y || x->size() != y->size())
    return std::nullopt;
  DimVector result;
  for (auto [a, b] : llvm::zip(*x, *y)) {
    bool isLess = (b - a - Dim(1)).isNeverNegative(),
         isGreater = (a - b - Dim(1)).isNeverNegative(), isEqual = a == b,
         isNotLess = (a - b).isNeverNegative(), isNotGreater = (b - a).isNeverNegative();
    auto [holds, fails] =
        llvm::TypeSwitch<Operation *, std::pair<bool, bool>>(op)
            .Case([&](EqualOp) { return std::pair(isEqual, isLess || isGreater); })
            .Case([&](NotEqualOp) { return std::pair(isLess || isGreater, isEqual); })
            .Case([&](LessOp) { return std::pair(isLess, isNotLess); })
            .Case([&](LessEqualOp) { return std::pair(isNotGreater, isGreater); })
            .Case([&](GreaterOp) { return std::pair(isGreater, isNotGreater); })
            .Default([&](Operation *) { return std::pair(isNotLess, isLess); });
    if (!holds && !fails)
      return std::nullopt;
    result.push_back(Dim(holds ? 1 : 0));
  }
  return result;
}

static std::optional<DimVector> gatherValue(GatherOp op, int depth) {
  auto x = valueOf(op.getX(), depth), indices = valueOf(op.getIndices(), depth);
  if (!x || !indices || rankOf(op.getX()) != 1)
    return std::nullopt;
  DimVector result;
  for (const Dim &index : *indices) {
    auto place = index.constant();
    if (place && *place < 0)
      place = *place + (int64_t)x->size();
    if (!place || *place < 0 || *place >= (int64_t)x->size())
      return std::nullopt;
    result.push_back((*x)[*place]);
  }
  return result;
}

/// Elements of x at first + sum over dimensions of index * stride, for all indices of `shape` in
/// row-major order.
static std::optional<DimVector> walkElements(ArrayRef<Dim> x, int64_t first,
                                             ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  DimVector result;
  SmallVector<int64_t> index(shape.size(), 0);
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = first;
    for (size_t d = 0; d < shape.size(); ++d)
      place += index[d] * strides[d];
    if (place < 0 || place >= (int64_t)x.size())
      return std::nullopt;
    result.push_back(x[place]);
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];)
      index[d] = 0;
  }
  return result;
}

static SmallVector<int64_t> rowMajorStrides(Value value) {
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

static std::optional<DimVector> sliceValue(SliceOp op, int depth) {
  auto x = valueOf(op.getX(), depth);
  if (!x)
    return std::nullopt;
  SmallVector<int64_t> strides = rowMajorStrides(op.getX());
  int64_t first = 0;
  for (auto [d, start] : llvm::enumerate(dimsOf(op.getStarts()))) {
    if (!start.constant())
      return std::nullopt;
    first += *start.constant() * strides[d];
    strides[d] *= op.getSteps()[d];
  }
  return walkElements(*x, first, cast<RankedTensorType>(op.getResult().getType()).getShape(),
                      strides);
}

static std::optional<DimVector> transposeValue(TransposeOp op, int depth) {
  auto x = valueOf(op.getX(), depth);
  if (!x)
    return std::nullopt;
  SmallVector<int64_t> from = rowMajorStrides(op.getX()), strides;
  for (int64_t axis : op.getPermutation())
    strides.push_back(from[axis]);
  return walkElements(*x, 0, cast<RankedTensorType>(op.getResult().getType()).getShape(), strides);
}

static std::optional<DimVector> valueOf(Value value, int depth) {
  auto type = cast<RankedTensorType>(value.getType());
  if (depth > kDepthLimit || !type.hasStaticShape() || type.getNumElements() > kElementLimit ||
      !isa<IntegerType>(type.getElementType()))
    return std::nullopt;
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  ++depth;
  if (isa<ConstantOp>(op)) {
    auto integers = constantIntegers(value);
    return DimVector(integers->begin(), integers->end());
  }
  if (auto sizes = dyn_cast<SizesOp>(op))
    return dimsOf(sizes.getValues());
  if (isa<IotaOp>(op) && type.getRank() == 1) {
    DimVector result;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      result.push_back(Dim(i));
    return result;
  }
  if (isa<ReshapeOp>(op))
    return valueOf(op->getOperand(0), depth);
  if (isa<CastOp>(op)) {
    // Through integers wide enough to hold sizes; to a truth value only constants.
    auto x = isa<IntegerType>(elementOf(op->getOperand(0))) ? valueOf(op->getOperand(0), depth)
                                                            : std::nullopt;
    unsigned width = type.getElementType().getIntOrFloatBitWidth();
    if (!x || width >= 32)
      return x;
    for (Dim &dim : *x) {
      if (width != 1 || !dim.constant())
        return std::nullopt;
      dim = Dim(*dim.constant() != 0);
    }
    return x;
  }
  if (op->hasTrait<Comparison>())
    return compareValue(op, depth);
  if (isElementwise(op) && op->getNumOperands() == 2)
    return binaryValue(op, depth);
  if (isa<NotOp>(op)) {
    auto x = valueOf(op->getOperand(0), depth);
    if (x)
      for (Dim &dim : *x)
        dim = Dim(1) - dim;
    return x;
  }
  if (auto select = dyn_cast<SelectOp>(op)) {
    auto condition = valueOf(select.getCondition(), depth), x = valueOf(select.getX(), depth),
         y = valueOf(select.getY(), depth);
    if (!condition || !x || !y)
      return std::nullopt;
    DimVector result;
    for (size_t i = 0; i < condition->size(); ++i) {
      auto holds = (*condition)[i].constant();
      if (!holds)
        return std::nullopt;
      result.push_back(*holds ? (*x)[i] : (*y)[i]);
    }
    return result;
  }
  if (auto concat = dyn_cast<ConcatOp>(op); concat && concat.getAxis() == 0) {
    DimVector result;
    for (Value operand : concat.getXs()) {
      auto part = valueOf(operand, depth);
      if (!part)
        return std::nullopt;
      result.append(part->begin(), part->end());
    }
    return result;
  }
  if (auto gather = dyn_cast<GatherOp>(op))
    return gatherValue(gather, depth);
  if (auto slice = dyn_cast<SliceOp>(op))
    return sliceValue(slice, depth);
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return transposeValue(transpose, depth);
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    auto x = valueOf(broadcast.getX(), depth);
    if (x && x->size() == 1)
      return DimVector(type.getNumElements(), x->front());
    return x && (int64_t)x->size() == type.getNumElements() ? x : std::nullopt;
  }
  if (isa<NegOp>(op)) {
    auto x = valueOf(op->getOperand(0), depth);
    if (x)
      for (Dim &dim : *x)
        dim = Dim(0) - dim;
    return x;
  }
  if (auto reduce = dyn_cast<ReduceProdOp>(op)) {
    auto x = valueOf(reduce.getX(), depth);
    return x && type.getNumElements() == 1 && rankOf(reduce.getX()) == 1
               ? std::optional<DimVector>(DimVector{elementCount(*x)})
               : std::nullopt;
  }
  return std::nullopt;
}

std::optional<DimVector> shapeValue(Value value) { return valueOf(value, 0); }

} // namespace heddle::graph
