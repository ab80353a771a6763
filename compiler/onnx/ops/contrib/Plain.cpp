// Plain: ops of com.microsoft that are an op of ONNX under another name or in another layout, and
// small sums of those.

#include "compiler/onnx/Agreement.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Activations.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Products.h"
#include "compiler/onnx/ops/contrib/Delegate.h"

#include "onnx.pb.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

proto::NodeProto renamed(const Node &n, StringRef op) {
  proto::NodeProto message = n.message;
  message.set_op_type(op.str());
  message.clear_domain();
  return message;
}

void setInt(proto::NodeProto &message, StringRef name, int64_t value) {
  auto *attribute = message.add_attribute();
  attribute->set_name(name.str());
  attribute->set_type(proto::AttributeProto::INT);
  attribute->set_i(value);
}

SmallVector<Value> importAs(Node &n, const proto::NodeProto &message, int64_t opset,
                            ArrayRef<Value> operands) {
  Node inner(n.reader, n.scope, message, opset, n.location);
  inner.operands.assign(operands.begin(), operands.end());
  inner.results.resize(message.output_size());
  inner.resultLabels.resize(message.output_size());
  findRow("", message.op_type())->import(inner);
  return SmallVector<Value>(inner.results.begin(), inner.results.end());
}

static void setAs(Node &n, StringRef op, int64_t opset, ArrayRef<Value> operands) {
  for (auto [i, value] : llvm::enumerate(importAs(n, renamed(n, op), opset, operands)))
    if (value)
      n.set(i, value);
}

static void importPad(Node &n) { setAs(n, "Pad", 13, n.operands); }
static void importGatherNd(Node &n) { setAs(n, "GatherND", 12, n.operands); }
static void importGridSample(Node &n) { setAs(n, "GridSample", 16, n.operands); }
static void importSample(Node &n) { n.set(n.in(0)); }

static void importRange(Node &n) {
  Value start = n.in(0),
        one = isFloat(start) ? n.scalar(elementOf(start), 1) : n.integerScalar(elementOf(start), 1);
  auto scalar = [&](Value x) { return n.reshape(x, {}); }; // a vector of one is allowed
  setAs(n, "Range", 11, {scalar(start), scalar(n.in(1)), n.has(2) ? scalar(n.in(2)) : one});
}

/// Values in the order of their first places, the number of each element's value, and how often
/// each occurs.
static void importUnique(Node &n) {
  proto::NodeProto message = renamed(n, "Unique");
  setInt(message, "sorted", 0);
  message.clear_output();
  for (const char *name : {"y", "", "inverse", "counts"})
    message.add_output(name);
  SmallVector<Value> results = importAs(n, message, 11, n.operands);
  for (auto [to, from] : {std::pair<size_t, size_t>{0, 0}, {1, 2}, {2, 3}})
    if (n.wants(to))
      n.set(to, results[from]);
}

static void importExpandDims(Node &n) {
  setAs(n, "Unsqueeze", 13, {n.in(0), n.reshape(n.cast(n.in(1), n.i64()), {Dim(1)})});
}

/// Whether all elements of all operands are finite, or none is infinite, or none is NaN.
static void importIsAllFinite(Node &n) {
  Value all;
  for (size_t i = 0; i < n.inputs(); ++i) {
    Value x = n.in(i), infinite = n.scalar(elementOf(x), INFINITY), height = n.unary<AbsOp>(x);
    Value isGood = n.getInt("isinf_only", 0)   ? n.compare<NotEqualOp>(height, infinite)
                   : n.getInt("isnan_only", 0) ? n.compare<EqualOp>(x, x)
                                               : n.compare<LessOp>(height, infinite);
    Ints axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
    Value least = n.reduce<ReduceMinOp>(n.cast(isGood, n.i32()), axes, false);
    all = all ? n.binary<MinOp>(all, least) : least;
  }
  if (!all)
    refuse("it has no inputs");
  n.set(n.compare<GreaterOp>(all, n.integerScalar(n.i32(), 0)));
}

static void importTorchEmbedding(Node &n) { n.set(n.gather(n.in(0), n.in(1), 0)); }

static void importGemmFastGelu(Node &n) {
  Value y = n.matmul(n.in(0), n.in(1));
  n.set(gelu(n, n.has(2) ? n.add(y, n.in(2)) : y, true));
}

static void importBiasAdd(Node &n) { n.set(n.add(n.add(n.in(0), n.in(1)), n.in(2))); }

/// Half of x + bias times Gelu of the other half, along the last dimension.
static void importBiasSplitGelu(Node &n) {
  Value x = n.add(n.in(0), n.in(1));
  int64_t last = rankOf(x) - 1;
  Dim half = dimsOf(x).back().floorDiv(Dim(2));
  if (half * Dim(2) != dimsOf(x).back())
    refuse("the last size, " + dimsOf(x).back().str() + ", must be even");
  n.set(n.mul(n.sliceAlong(x, last, Dim(0), half),
              gelu(n, n.sliceAlong(x, last, half, half), false)));
}

/// Operands: data, bias, residual. Inference keeps elements that training drops.
static void importBiasDropout(Node &n) {
  if (n.has(4)) {
    auto training = constantIntegers(n.in(4));
    if (!training || llvm::any_of(*training, [](int64_t flag) { return flag != 0; }))
      refuse("'training_mode' must be the constant false");
  }
  Value y = n.add(n.in(0), n.in(1));
  n.set(0, n.has(2) ? n.add(y, n.in(2)) : y);
  if (n.wants(1))
    n.set(1, n.full(dimsOf(y), n.i1(), 1));
}

/// x * scale * sigmoid(x * scale), rounded to the element type after each product.
static void importScaledSilu(Node &n) {
  Value x = n.in(0);
  Value scaled = n.has(1) ? n.mul(x, n.cast(n.reshape(n.in(1), {}), elementOf(x)))
                          : n.mul(x, n.getFloat("alpha", 1));
  n.set(n.mul(scaled, sigmoid(n, scaled)));
}

/// (a, b) * (c, d) as complex numbers, whose parts are the last dimension; `sign` -1 takes the
/// conjugate of the second.
static void complexProduct(Node &n, double sign) {
  auto part = [&](size_t i, int64_t which) {
    Value x = n.in(i);
    if (rankOf(x) < 1 || dimsOf(x).back().constant().value_or(2) != 2)
      refuse("the last size of input " + Twine(i) + " must be 2, the parts of complex numbers");
    return n.sliceAlong(x, rankOf(x) - 1, Dim(which), Dim(1));
  };
  Value a = part(0, 0), b = part(0, 1), c = part(1, 0), d = n.mul(part(1, 1), sign);
  Value real = n.sub(n.mul(a, c), n.mul(b, d)), imaginary = n.add(n.mul(a, d), n.mul(b, c));
  n.set(n.concat({real, imaginary}, rankOf(real) - 1));
}
static void importComplexMul(Node &n) { complexProduct(n, 1); }
static void importComplexMulConj(Node &n) { complexProduct(n, -1); }

static Value moveChannels(Node &n, Value x, bool toFront) {
  int64_t rank = rankOf(x);
  if (rank < 3)
    refuse("the input must have rank 3 or more, but has " + Twine(rank));
  Ints order = {0};
  if (toFront)
    order.push_back(rank - 1);
  for (int64_t axis = toFront ? 1 : 2; axis < (toFront ? rank - 1 : rank); ++axis)
    order.push_back(axis);
  if (!toFront)
    order.push_back(1);
  return n.transpose(x, order);
}

/// GroupNormalization with one factor per channel, for x or for x + skip + bias, then SiLU.
static void normalizeGroups(Node &n, Value x) {
  bool isLast = n.getInt("channels_last", 1);
  Type element = elementOf(x), wide = wideType(n, element);
  proto::NodeProto message = renamed(n, "GroupNormalization");
  setInt(message, "num_groups", n.getInt("groups", 0));
  message.clear_output();
  message.add_output("y");
  Value moved = n.cast(isLast ? moveChannels(n, x, true) : x, wide);
  Value y = importAs(n, message, 21, {moved, n.cast(n.in(1), wide), n.cast(n.in(2), wide)})[0];
  int64_t activation = n.getInt("activation", 0);
  if (activation != 0 && activation != 1)
    refuse("'activation' is " + Twine(activation) + ", but must be 0 (none) or 1 (SiLU)");
  if (activation)
    y = n.mul(y, sigmoid(n, y));
  n.set(0, n.cast(isLast ? moveChannels(n, y, false) : y, element));
}
static void importGroupNorm(Node &n) { normalizeGroups(n, n.in(0)); }

static void importSkipGroupNorm(Node &n) {
  Value x = n.in(0), skip = n.in(3);
  if (rankOf(skip) == 2) // [n, channels]
    skip = n.getInt("channels_last", 1) ? n.unsqueeze(skip, {1, 2}) : n.unsqueeze(skip, {2, 3});
  Value sum = n.add(x, skip);
  if (n.has(4))
    sum = n.add(sum, n.getInt("channels_last", 1) ? n.in(4) : n.alongAxis(n.in(4), 1, rankOf(x)));
  normalizeGroups(n, sum);
  if (n.wants(1))
    n.set(1, sum);
}

/// QLinearConv whose images may have their channels last; filters do not.
static void importQLinearConv(Node &n) {
  bool isLast = n.getInt("channels_last", 0);
  SmallVector<Value> operands(n.operands.begin(), n.operands.end());
  if (isLast)
    operands[0] = moveChannels(n, n.in(0), true);
  Value y = importAs(n, renamed(n, "QLinearConv"), 10, operands)[0];
  n.set(isLast ? moveChannels(n, y, false) : y);
}

/// The transform of the last dimension of a real signal: [..., size / 2 + 1, 2].
static void importRfft(Node &n) {
  Value x = n.in(0);
  if (n.getInt("signal_ndim", 1) != 1 || !n.getInt("onesided", 1) || n.getInt("normalized", 0))
    refuse("'signal_ndim', 'onesided' and 'normalized' must be 1, 1 and 0");
  proto::NodeProto message = renamed(n, "DFT");
  message.clear_attribute();
  setInt(message, "onesided", 1);
  Value real = n.unsqueeze(x, {rankOf(x)});
  n.set(importAs(n, message, 20, {real, Value(), n.integerScalar(n.i64(), -2)})[0]);
}

/// The real signal of even size whose Rfft is x: what Rfft leaves out is the conjugate of the rest.
static void importIrfft(Node &n) {
  Value x = n.in(0);
  if (n.getInt("signal_ndim", 1) != 1 || !n.getInt("onesided", 1) || n.getInt("normalized", 0))
    refuse("'signal_ndim', 'onesided' and 'normalized' must be 1, 1 and 0");
  int64_t rank = rankOf(x);
  if (rank < 2 || dimsOf(x).back().constant().value_or(0) != 2)
    refuse("the input must be [..., size / 2 + 1, 2], but is " + textOf(dimsOf(x)));
  auto count = dimsOf(x)[rank - 2].constant();
  if (!count || *count < 2)
    refuse("the number of frequencies must be known and at least 2, but is " +
           dimsOf(x)[rank - 2].str());
  Ints back; // from the last but one down to the second
  for (int64_t i = *count - 2; i > 0; --i)
    back.push_back(i);
  Value mirrored = n.gather(x, n.integers(back), rank - 2);
  Value conjugate = n.concat({n.sliceAlong(mirrored, rank - 1, Dim(0), Dim(1)),
                              n.unary<NegOp>(n.sliceAlong(mirrored, rank - 1, Dim(1), Dim(1)))},
                             rank - 1);
  proto::NodeProto message = renamed(n, "DFT");
  message.clear_attribute();
  setInt(message, "inverse", 1);
  Value whole = n.concat({x, conjugate}, rank - 2);
  Value y = importAs(n, message, 20, {whole, Value(), n.integerScalar(n.i64(), -2)})[0];
  n.set(n.squeeze(n.sliceAlong(y, rank - 1, Dim(0), Dim(1)), {rank - 1}));
}

/// All slices of `size` elements along a dimension, `step` apart, with the elements of a slice
/// last.
static void importUnfoldTensor(Node &n) {
  Value x = n.in(0);
  int64_t rank = rankOf(x), size = n.getInt("size", 0), step = n.getInt("step", 1);
  int64_t axis = n.axis(n.getInt("dim", -1), rank);
  Dim whole = dimsOf(x)[axis];
  if (size < 1 || step < 1 || whole.constant().value_or(size) < size)
    refuse("'size' is " + Twine(size) + " and 'step' " + Twine(step) +
           ", but they must be at least 1, and the dimension, " + whole.str() +
           ", as large as 'size'");
  if (!whole.constant())
    requireAtMost(n, Dim(size), whole, "'size' is %lld, but the dimension has %lld");
  DimVector places = {(whole - Dim(size)).floorDiv(Dim(step)) + Dim(1), Dim(size)};
  Value first = n.mul(n.iota(places, 0, n.i64()), n.integerScalar(n.i64(), step));
  Value slices = n.gather(x, n.add(first, n.iota(places, 1, n.i64())), axis);
  Ints order;
  for (int64_t i = 0; i <= rank; ++i)
    if (i != axis + 1)
      order.push_back(i);
  order.push_back(axis + 1);
  n.set(n.transpose(slices, order));
}

/// Scores [batch, words] of the next token: -infinity for those that would end a sequence of
/// `ngram_size` tokens that ids [batch, length] have already.
static void importNgramRepeatBlock(Node &n) {
  Value ids = n.in(0), scores = n.in(1);
  int64_t size = n.getInt("ngram_size", 0), most = 1 << 16;
  if (rankOf(ids) != 2 || rankOf(scores) != 2)
    refuse("the ranks must be 2 and 2, but are " + Twine(rankOf(ids)) + " and " +
           Twine(rankOf(scores)));
  if (size < 1 || size > most)
    refuse("'ngram_size' is " + Twine(size) + ", but must be from 1 to " + Twine(most));
  DimVector dims = dimsOf(ids);
  Dim windows = Dim::max(dims[1] - Dim(size - 1), Dim(0));
  // After the tokens, so that slices of a text that is too short are there.
  Value rest = n.broadcast(n.integerScalar(elementOf(ids), 0), {dims[0], Dim(size)});
  ids = n.concat({ids, rest}, 1);
  DimVector places = {dims[0], windows};
  Value isRepeated = n.broadcast(n.compare<EqualOp>(n.integers({0}), n.integers({0})), places);
  for (int64_t i = 0; i < size - 1; ++i) {
    Value own = n.sliceAlong(ids, 1, Dim(i), windows);
    Value last = n.sliceAlong(ids, 1, windows + Dim(i), Dim(1));
    isRepeated = n.binary<AndOp>(isRepeated, n.compare<EqualOp>(own, last));
  }
  Value next = n.cast(n.sliceAlong(ids, 1, Dim(size - 1), windows), n.i64());
  next = n.select(isRepeated, next, n.integerScalar(n.i64(), 0));
  Type element = elementOf(scores);
  Value bound = n.select(isRepeated, n.scalar(element, -INFINITY), n.scalar(element, INFINITY));
  n.set(n.infer<ScatterElementsOp>({scores, next, bound},
                                   {n.integer("axis", 1), n.text("reduction", "min")}));
}

OpRows contribPlainRows() {
  static const OpRow rows[] = {
      {"Pad", kMicrosoft, 1, 1, importPad},
      {"GatherND", kMicrosoft, 1, 1, importGatherNd},
      {"GridSample", kMicrosoft, 1, 1, importGridSample},
      {"SampleOp", kMicrosoft, 1, 1, importSample},
      {"Range", kMicrosoft, 1, 1, importRange},
      {"UnfoldTensor", kMicrosoft, 1, 1, importUnfoldTensor},
      {"Unique", kMicrosoft, 1, 1, importUnique},
      {"ExpandDims", kMicrosoft, 1, 1, importExpandDims},
      {"NGramRepeatBlock", kMicrosoft, 1, 1, importNgramRepeatBlock},
      {"IsAllFinite", kMicrosoft, 1, 1, importIsAllFinite},
      {"TorchEmbedding", kMicrosoft, 1, 1, importTorchEmbedding},
      {"GemmFastGelu", kMicrosoft, 1, 1, importGemmFastGelu},
      {"BiasAdd", kMicrosoft, 1, 1, importBiasAdd},
      {"BiasSplitGelu", kMicrosoft, 1, 1, importBiasSplitGelu},
      {"BiasDropout", kMicrosoft, 1, 1, importBiasDropout, false, "inference only"},
      {"ScaledSiLU", kMicrosoft, 1, 1, importScaledSilu},
      {"ComplexMul", kMicrosoft, 1, 1, importComplexMul},
      {"ComplexMulConj", kMicrosoft, 1, 1, importComplexMulConj},
      {"GroupNorm", kMicrosoft, 1, 1, importGroupNorm},
      {"SkipGroupNorm", kMicrosoft, 1, 1, importSkipGroupNorm},
      {"QLinearConv", kMicrosoft, 1, 1, importQLinearConv},
      {"Rfft", kMicrosoft, 1, 1, importRfft, false, "one dimension"},
      {"Irfft", kMicrosoft, 1, 1, importIrfft, false, "one dimension of known size"},
  };
  return rows;
}

} // namespace heddle::onnx
