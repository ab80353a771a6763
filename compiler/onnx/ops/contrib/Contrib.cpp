// Contrib: ops of com.microsoft that ONNX Runtime's optimiser and quantiser leave in models.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Activations.h"
#include "compiler/onnx/ops/Normalize.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Products.h"
#include "compiler/onnx/ops/Quantization.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static Value dequantized(Node &n, size_t i) {
  return dequantize(n, n.in(i), n.in(i + 1), n.optional(i + 2), 1);
}

/// Rounds y with the scale and zero point at operands i and i + 1, to the element type of operand
/// 0.
static void setQuantized(Node &n, Value y, size_t i) {
  n.set(quantize(n, y, n.in(i), n.optional(i + 1), elementOf(n.in(0)), 1));
}

/// Operands: a, its scale and zero point, b, its scale and zero point, scale and zero point of the
/// result.
template <typename Op> static void quantizedBinary(Node &n) {
  setQuantized(n, n.binary<Op>(dequantized(n, 0), dequantized(n, 3)), 6);
}

static void importQLinearSigmoid(Node &n) { setQuantized(n, sigmoid(n, dequantized(n, 0)), 3); }
static void importQLinearLeakyRelu(Node &n) {
  setQuantized(n, leakyRelu(n, dequantized(n, 0), n.getFloat("alpha", 0.01)), 3);
}

static void importQLinearSoftmax(Node &n) {
  int64_t rank = rankOf(n.in(0)), axis = n.axis(n.getInt("axis", -1), rank);
  Ints axes = {axis};
  if (n.getInt("opset", 13) < 13)
    axes = llvm::to_vector(llvm::seq<int64_t>(axis, rank));
  setQuantized(n, n.softmax(dequantized(n, 0), axes), 3);
}

static void importQLinearAveragePool(Node &n) {
  bool channelsLast = n.getInt("channels_last", 0);
  setQuantized(n, poolWindows(n, dequantized(n, 0), "average", channelsLast), 3);
}

static void importQLinearGlobalAveragePool(Node &n) {
  Value x = dequantized(n, 0);
  setQuantized(n, n.mean(x, spatialAxes(x, n.getInt("channels_last", 0))), 3);
}

/// Operands: scale and zero point of the result, then x, scale and zero point of each part.
static void importQLinearConcat(Node &n) {
  SmallVector<Value> parts;
  for (size_t i = 2; i + 1 < n.inputs(); i += 3)
    parts.push_back(dequantize(n, n.in(i), n.in(i + 1), n.optional(i + 2), 1));
  if (parts.empty())
    refuse("it has no inputs");
  Value whole = n.concat(parts, n.axis(n.getInt("axis", 0), rankOf(parts[0])));
  n.set(quantize(n, whole, n.in(0), n.in(1), elementOf(n.in(2)), 1));
}

/// Operand i as matrices: its first dimension is moved after the batch where 'transBatch' says so.
static Value matrices(Node &n, size_t i, StringRef letter) {
  Value x = n.in(i);
  int64_t rank = rankOf(x);
  if (n.getInt(("transBatch" + letter).str(), 0) && rank > 2) {
    Ints order = llvm::to_vector(llvm::seq<int64_t>(1, rank - 1));
    order.append({0, rank - 1});
    x = n.transpose(x, order);
  }
  return n.getInt(("trans" + letter).str(), 0) ? transposeMatrix(n, x) : x;
}

static void importFusedMatMul(Node &n) {
  Value product = n.matmul(matrices(n, 0, "A"), matrices(n, 1, "B"));
  double alpha = n.getFloat("alpha", 1);
  n.set(alpha == 1 ? product : n.mul(product, alpha));
}

/// The activation that attribute 'activation' names, with its parameters.
static Value activated(Node &n, Value y, const std::string &activation, ArrayRef<double> params) {
  auto param = [&](size_t i) {
    if (i >= params.size())
      refuse("'" + activation + "' has " + Twine(params.size()) + " parameters, which are too few");
    return params[i];
  };
  if (activation == "Relu")
    return relu(n, y);
  if (activation == "Sigmoid")
    return sigmoid(n, y);
  if (activation == "Tanh")
    return tanhOf(n, y);
  if (activation == "LeakyRelu")
    return leakyRelu(n, y, param(0));
  if (activation == "Clip")
    return n.min(n.max(y, param(0)), param(1));
  if (activation == "HardSigmoid")
    return hardSigmoid(n, y, param(0), param(1));
  if (!activation.empty())
    refuse("activation '" + activation + "' is not supported",
           "supported: Relu, Sigmoid, Tanh, LeakyRelu, Clip, HardSigmoid");
  return y;
}

/// alpha * A * B + beta * C, then the activation.
static void importFusedGemm(Node &n) {
  if (rankOf(n.in(0)) != 2 || rankOf(n.in(1)) != 2)
    refuse("A and B must have rank 2, but have " + Twine(rankOf(n.in(0))) + " and " +
           Twine(rankOf(n.in(1))));
  Value y = n.matmul(matrices(n, 0, "A"), matrices(n, 1, "B"));
  DimVector dims = dimsOf(y);
  if (double alpha = n.getFloat("alpha", 1); alpha != 1)
    y = n.mul(y, alpha);
  if (double beta = n.getFloat("beta", 1); n.has(2) && beta != 0)
    y = n.broadcast(n.add(y, beta == 1 ? n.in(2) : n.mul(n.in(2), beta)), dims);
  n.set(activated(n, y, n.getText("activation", ""),
                  {n.getFloat("activation_alpha", 0.01), n.getFloat("activation_beta", 0)}));
}

/// Operands: a, its scale and zero point, b, its scale and zero point, C as integers, scale and
/// zero point of the result, which is of floats without them.
static void importQGemm(Node &n) {
  Value a = minusZero(n, n.in(0), n.optional(2), 1);
  bool isTurned = n.getInt("transB", 0);
  Value b = minusZero(n, n.in(3), n.optional(5), isTurned ? 0 : 1);
  if (n.getInt("transA", 0))
    a = transposeMatrix(n, a);
  if (isTurned)
    b = transposeMatrix(n, b);
  Value sum = n.matmul(a, b);
  if (n.has(6))
    sum = n.broadcast(n.add(sum, n.in(6)), dimsOf(sum));
  auto scale = [&](size_t i) {
    Value x = n.in(i);
    return elementCount(dimsOf(x)) == Dim(1) ? n.reshape(x, {}) : x;
  };
  Value factor = n.mul(scale(1), scale(4));
  if (double alpha = n.getFloat("alpha", 1); alpha != 1)
    factor = n.mul(factor, alpha);
  Value y = n.mul(n.cast(sum, elementOf(factor)), factor);
  if (!n.has(7))
    return n.set(y);
  setQuantized(n, y, 7);
}

/// Distances of the rows of a from those of b.
static void importCDist(Node &n) {
  Value difference = n.sub(n.unsqueeze(n.in(0), {1}), n.unsqueeze(n.in(1), {0}));
  Value sum = n.reduce<ReduceSumOp>(n.mul(difference, difference), {2}, false);
  std::string metric = n.getText("metric", "sqeuclidean");
  if (metric != "euclidean" && metric != "sqeuclidean")
    refuse("'metric' is '" + metric + "', but must be 'euclidean' or 'sqeuclidean'");
  n.set(metric == "euclidean" ? n.unary<SqrtOp>(sum) : sum);
}

static void importFusedConv(Node &n) {
  Value y = convolve(n, n.in(0), n.in(1));
  if (n.has(2))
    y = addChannelBias(n, y, n.in(2));
  if (n.has(3))
    y = n.add(y, n.in(3));
  n.set(activated(n, y, n.getText("activation", ""), n.getFloats("activation_params")));
}

static void importGelu(Node &n) { n.set(gelu(n, n.in(0), false)); }
static void importBiasGelu(Node &n) { n.set(gelu(n, n.add(n.in(0), n.in(1)), false)); }
static void importFastGelu(Node &n) {
  n.set(gelu(n, n.has(1) ? n.add(n.in(0), n.in(1)) : n.in(0), true));
}
static void importQuickGelu(Node &n) {
  Value x = n.in(0);
  n.set(n.mul(x, sigmoid(n, n.mul(x, n.getFloat("alpha", 1.702)))));
}

/// Operands: input, skip, gamma, beta, bias. Output 3 is the sum before normalisation. Narrow
/// floats are computed in f32, which mean and deviation stay in.
static void importSkipLayerNormalization(Node &n) {
  Value sum = n.add(n.in(0), n.broadcast(n.in(1), dimsOf(n.in(0))));
  if (n.has(4))
    sum = n.add(sum, n.in(4));
  Type element = elementOf(sum), wide = wideType(n, element);
  auto [value, mean, inverse] =
      normalize(n, n.cast(sum, wide), {rankOf(sum) - 1}, n.getFloat("epsilon", 1e-12));
  Value y = n.mul(value, n.cast(n.in(2), wide));
  n.set(n.cast(n.has(3) ? n.add(y, n.cast(n.in(3), wide)) : y, element));
  if (n.wants(1))
    n.set(1, mean);
  if (n.wants(2))
    n.set(2, inverse);
  if (n.wants(3))
    n.set(3, sum);
}

static void importQuantize(Node &n) {
  int64_t axis = n.getInt("axis", 1), rank = rankOf(n.in(0));
  Type element =
      n.has(2) ? elementOf(n.in(2)) : Type(IntegerType::get(n.context(), 8, IntegerType::Unsigned));
  n.set(quantize(n, n.in(0), n.in(1), n.optional(2), element, axis < 0 ? axis + rank : axis));
}
static void importDequantize(Node &n) {
  int64_t axis = n.getInt("axis", 1), rank = rankOf(n.in(0));
  n.set(dequantize(n, n.in(0), n.in(1), n.optional(2), axis < 0 ? axis + rank : axis));
}

OpRows contribRows() {
  static const OpRow rows[] = {
      {"QLinearAdd", kMicrosoft, 1, 1, quantizedBinary<AddOp>},
      {"QLinearMul", kMicrosoft, 1, 1, quantizedBinary<MulOp>},
      {"QLinearSigmoid", kMicrosoft, 1, 1, importQLinearSigmoid},
      {"QLinearLeakyRelu", kMicrosoft, 1, 1, importQLinearLeakyRelu},
      {"QLinearSoftmax", kMicrosoft, 1, 1, importQLinearSoftmax},
      {"QLinearAveragePool", kMicrosoft, 1, 1, importQLinearAveragePool},
      {"QLinearGlobalAveragePool", kMicrosoft, 1, 1, importQLinearGlobalAveragePool},
      {"QLinearConcat", kMicrosoft, 1, 1, importQLinearConcat},
      {"QuantizeLinear", kMicrosoft, 1, 1, importQuantize},
      {"DequantizeLinear", kMicrosoft, 1, 1, importDequantize},
      {"FusedMatMul", kMicrosoft, 1, 1, importFusedMatMul},
      {"TransposeMatMul", kMicrosoft, 1, 1, importFusedMatMul},
      {"FusedGemm", kMicrosoft, 1, 1, importFusedGemm},
      {"QGemm", kMicrosoft, 1, 1, importQGemm},
      {"CDist", kMicrosoft, 1, 1, importCDist},
      {"FusedConv", kMicrosoft, 1, 1, importFusedConv},
      {"Gelu", kMicrosoft, 1, 1, importGelu},
      {"BiasGelu", kMicrosoft, 1, 1, importBiasGelu},
      {"FastGelu", kMicrosoft, 1, 1, importFastGelu},
      {"QuickGelu", kMicrosoft, 1, 1, importQuickGelu},
      {"SkipLayerNormalization", kMicrosoft, 1, 1, importSkipLayerNormalization},
  };
  return rows;
}

} // namespace heddle::onnx
