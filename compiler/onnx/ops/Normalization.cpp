// Normalization: mean and variance removed over batches, instances, layers and groups.

#include "compiler/onnx/ops/Normalize.h"

#include "compiler/graph/edit/Weights.h"
#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Products.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

Normalized normalize(Emitter &e, Value x, ArrayRef<int64_t> axes, double epsilon) {
  Value mean = e.mean(x, axes);
  Value centred = e.sub(x, mean);
  Value variance = e.mean(e.mul(centred, centred), axes);
  Value deviation = e.unary<SqrtOp>(e.add(variance, epsilon));
  Value inverse = e.div(e.scalar(elementOf(x), 1), deviation);
  return {e.mul(centred, inverse), mean, inverse};
}

/// n / (n - 1) of the n elements that are averaged along these axes; 1 if there is only one.
static Value unbiasing(Node &n, Value x, ArrayRef<int64_t> axes) {
  Dim count(1);
  for (int64_t axis : axes)
    count = count * dimsOf(x)[axis];
  Value all = n.cast(n.size(count), elementOf(x)), one = n.scalar(elementOf(x), 1);
  return n.div(all, n.binary<MaxOp>(n.sub(all, one), one));
}

/// Mean and variance of each channel of the batch; results 1 and 2 are the running ones.
static std::pair<Value, Value> trainStatistics(Node &n, Value x, Value mean, Value variance) {
  Ints axes = {0};
  for (int64_t axis = 2; axis < rankOf(x); ++axis)
    axes.push_back(axis);
  Value wide = n.cast(x, wideType(n, elementOf(x)));
  Value newMean = n.mean(wide, axes), centred = n.sub(wide, newMean);
  newMean = n.squeeze(newMean, axes);
  Value newVariance = n.mean(n.mul(centred, centred), axes, false);
  double momentum = n.getFloat("momentum", 0.9);
  auto running = [&](size_t i, Value before, Value now, Value kept) {
    auto next = [&](Value now) {
      return n.cast(n.add(n.mul(before, momentum), n.mul(now, 1 - momentum)),
                    elementOf(n.in(2 + i)));
    };
    if (n.wants(i))
      n.set(i, next(now));
    Operation *weight = n.in(2 + i).getDefiningOp();
    if (n.reader.options.usesBatchStatistics && weight && weight->hasAttr(kWeight) &&
        n.scope.depth == 0)
      n.reader.statistics[weight] = next(kept);
  };
  running(1, mean, newMean, newMean);
  running(2, variance, newVariance,
          n.reader.options.keepsUnbiasedVariance ? n.mul(newVariance, unbiasing(n, wide, axes))
                                                 : newVariance);
  return {newMean, newVariance};
}

/// y = x * factor + shift with per-channel vectors, so that constants fold to two vectors.
static void importBatchNormalization(Node &n) {
  Value x = n.in(0);
  DimVector dims = dimsOf(x);
  if (!n.getInt("spatial", 1))
    refuse("'spatial' must be 1");
  if (dims.size() == 1) // entries of one channel
    x = n.unsqueeze(x, {1});
  int64_t rank = rankOf(x);
  if (rank < 2)
    refuse("the input must have rank 1 or more");
  Type element = elementOf(x), wide = wideType(n, element);
  Value scale = n.cast(n.in(1), wide), bias = n.cast(n.in(2), wide);
  Value mean = n.cast(n.in(3), wide), variance = n.cast(n.in(4), wide);
  if (n.reader.options.marksWeights)
    for (size_t i : {3, 4})
      if (Operation *weight = n.in(i).getDefiningOp(); weight && weight->hasAttr(kWeight))
        weight->setAttr(kStatistics, n.builder.getUnitAttr());
  if (n.reader.options.usesBatchStatistics || n.getInt("training_mode", 0))
    std::tie(mean, variance) = trainStatistics(n, x, mean, variance);
  Value factor = n.div(scale, n.unary<SqrtOp>(n.add(variance, n.getFloat("epsilon", 1e-5))));
  Value shift = narrowed(n, n.sub(bias, n.mul(mean, factor)), element);
  factor = narrowed(n, factor, element);
  Value y = n.add(n.mul(x, n.alongAxis(factor, 1, rank)), n.alongAxis(shift, 1, rank));
  n.set(dims.size() == 1 ? n.squeeze(y, {1}) : y);
}

static void importInstanceNormalization(Node &n) {
  Value x = n.in(0);
  int64_t rank = rankOf(x);
  Type wide = wideType(n, elementOf(x));
  Value y = normalize(n, n.cast(x, wide), spatialAxes(x), n.getFloat("epsilon", 1e-5)).value;
  y = n.mul(y, n.alongAxis(n.cast(n.in(1), wide), 1, rank));
  n.set(narrowed(n, n.add(y, n.alongAxis(n.cast(n.in(2), wide), 1, rank)), elementOf(x)));
}

static Ints axesFrom(Node &n, Value x) {
  int64_t rank = rankOf(x);
  return llvm::to_vector(llvm::seq<int64_t>(n.axis(n.getInt("axis", -1), rank), rank));
}

static void importLayerNormalization(Node &n) {
  Value x = n.in(0);
  Type element = elementOf(x);
  auto [value, mean, inverse] =
      normalize(n, n.cast(x, wideType(n, element)), axesFrom(n, x), n.getFloat("epsilon", 1e-5));
  Value y = n.mul(narrowed(n, value, element), n.in(1));
  n.set(n.has(2) ? n.add(y, n.in(2)) : y);
  if (n.wants(1))
    n.set(1, mean);
  if (n.wants(2))
    n.set(2, inverse);
}

static void importRmsNormalization(Node &n) {
  Value x = n.in(0);
  Value wide = n.cast(x, wideType(n, elementOf(x)));
  Value square = n.mean(n.mul(wide, wide), axesFrom(n, x));
  Value root = n.unary<SqrtOp>(n.add(square, n.getFloat("epsilon", 1e-5)));
  n.set(n.mul(narrowed(n, n.div(wide, root), elementOf(x)), n.in(1)));
}

static void importGroupNormalization(Node &n) {
  Value x = n.in(0);
  DimVector dims = dimsOf(x);
  int64_t groups = n.getInt("num_groups", 0), rank = dims.size();
  if (groups < 1 || rank < 3)
    refuse("'num_groups' must be at least 1 and the input of rank 3 or more");
  Dim g(groups), each = dims[1].floorDiv(g);
  DimVector split = {dims[0], g, each};
  split.append(dims.begin() + 2, dims.end());
  Ints axes = llvm::to_vector(llvm::seq<int64_t>(2, rank + 1));
  Value wide = n.cast(n.reshape(x, split), wideType(n, elementOf(x)));
  Value y = normalize(n, wide, axes, n.getFloat("epsilon", 1e-5)).value;
  y = narrowed(n, y, elementOf(x));
  if (n.opset < 21) { // one scale per group
    y = n.add(n.mul(y, n.alongAxis(n.in(1), 1, rank + 1)), n.alongAxis(n.in(2), 1, rank + 1));
    return n.set(n.reshape(y, dims));
  }
  y = n.reshape(y, dims);
  n.set(n.add(n.mul(y, n.alongAxis(n.in(1), 1, rank)), n.alongAxis(n.in(2), 1, rank)));
}

/// x / (bias + alpha / size * sum of squares over neighbouring channels)^beta.
static void importLrn(Node &n) {
  Value x = n.in(0);
  DimVector dims = dimsOf(x);
  int64_t size = n.getInt("size", 0), rank = dims.size();
  if (size < 1 || size > 1024 || rank < 2)
    refuse("'size' must be from 1 to 1024 and the input of rank 2 or more");
  Type element = elementOf(x), wide = wideType(n, element);
  x = n.cast(x, wide);
  DimVector low(rank, Dim(0)), high(rank, Dim(0));
  low[1] = Dim((size - 1) / 2);
  high[1] = Dim(size - 1 - (size - 1) / 2);
  Value squares = n.pad(n.mul(x, x), n.scalar(wide, 0), low, high);
  Value sum;
  for (int64_t i = 0; i < size; ++i) {
    Value shifted = n.sliceAlong(squares, 1, Dim(i), dims[1]);
    sum = sum ? n.add(sum, shifted) : shifted;
  }
  Value base = n.add(n.mul(sum, n.getFloat("alpha", 1e-4) / size), n.getFloat("bias", 1));
  Value power = n.binary<PowOp>(base, n.scalar(wide, n.getFloat("beta", 0.75)));
  n.set(narrowed(n, n.div(x, power), element));
}

static void importMeanVarianceNormalization(Node &n) {
  Type element = elementOf(n.in(0));
  Value x = n.cast(n.in(0), wideType(n, element));
  Ints axes = n.axes(n.getInts("axes", {0, 2, 3}), rankOf(x));
  Value centred = n.sub(x, n.mean(x, axes));
  Value deviation = n.unary<SqrtOp>(n.mean(n.mul(centred, centred), axes));
  n.set(narrowed(n, n.div(centred, n.add(deviation, 1e-9)), element));
}

static void importLpNormalization(Node &n) {
  Type element = elementOf(n.in(0));
  Value x = n.cast(n.in(0), wideType(n, element));
  Ints axes = {n.axis(n.getInt("axis", -1), rankOf(x))};
  int64_t p = n.getInt("p", 2);
  if (p != 1 && p != 2)
    refuse("'p' is " + Twine(p) + ", but must be 1 or 2");
  bool isFirst = p == 1;
  Value sum = n.reduce<ReduceSumOp>(isFirst ? n.unary<AbsOp>(x) : n.mul(x, x), axes);
  Value norm = isFirst ? sum : n.unary<SqrtOp>(sum), zero = n.scalar(elementOf(x), 0);
  // A vector of zeros stays one.
  Value y = n.select(n.compare<EqualOp>(norm, zero), zero, n.div(x, norm));
  n.set(narrowed(n, y, element));
}

/// The experimental ImageScaler: x * scale + bias of each channel.
static void importImageScaler(Node &n) {
  Value x = n.in(0);
  auto bias = n.getFloats("bias");
  std::vector<float> values(bias.begin(), bias.end());
  auto type = RankedTensorType::get({(int64_t)values.size()}, n.f32());
  Value vector = n.constant(DenseElementsAttr::get(type, ArrayRef<float>(values)));
  Value scaled = n.mul(x, n.getFloat("scale", 1));
  n.set(n.add(scaled, n.alongAxis(n.cast(vector, elementOf(x)), 1, rankOf(x))));
}

static void importAffine(Node &n) {
  n.set(n.add(n.mul(n.in(0), n.getFloat("alpha", 1)), n.getFloat("beta", 0)));
}
static void importScale(Node &n) { n.set(n.mul(n.in(0), n.getFloat("scale", 1))); }

OpRows normalizationRows() {
  static const OpRow rows[] = {
      {"BatchNormalization", "", 1, 27, importBatchNormalization},
      {"InstanceNormalization", "", 1, 27, importInstanceNormalization},
      {"LayerNormalization", "", 1, 27, importLayerNormalization},
      {"RMSNormalization", "", 23, 27, importRmsNormalization},
      {"GroupNormalization", "", 18, 27, importGroupNormalization},
      {"LRN", "", 1, 27, importLrn},
      {"MeanVarianceNormalization", "", 9, 27, importMeanVarianceNormalization},
      {"LpNormalization", "", 1, 27, importLpNormalization},
      {"ImageScaler", "", 1, 27, importImageScaler, false, "experimental"},
      {"Affine", "", 1, 27, importAffine, false, "experimental"},
      {"Scale", "", 1, 27, importScale, false, "experimental"},
  };
  return rows;
}

} // namespace heddle::onnx
