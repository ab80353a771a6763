// Fused: normalisations and products that ONNX Runtime's tools fuse with their neighbours.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Normalize.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Products.h"
#include "compiler/onnx/ops/Quantization.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// x / sqrt(mean of squares + epsilon) * scale over the axes from `axis` on; the inverse root, too.
static std::pair<Value, Value> rootMeanSquare(Node &n, Value x, Value scale, int64_t axis,
                                              double epsilon) {
  Type element = elementOf(x), wide = wideType(n, element);
  Value y = n.cast(x, wide);
  Ints axes = llvm::to_vector(llvm::seq<int64_t>(axis, rankOf(x)));
  Value root = n.unary<SqrtOp>(n.add(n.mean(n.mul(y, y), axes), epsilon));
  Value inverse = n.div(n.scalar(wide, 1), root);
  return {n.mul(n.cast(n.mul(y, inverse), element), n.cast(scale, element)), inverse};
}

static void importSimplifiedLayerNormalization(Node &n) {
  Value x = n.in(0);
  int64_t axis = n.axis(n.getInt("axis", -1), rankOf(x));
  auto [y, inverse] = rootMeanSquare(n, x, n.in(1), axis, n.getFloat("epsilon", 1e-5));
  n.set(0, y);
  if (n.wants(1))
    n.set(1, inverse);
}

/// Operands: input, skip, gamma, bias. Output 1 is the mean, which nothing here needs; output 3 is
/// the sum before normalisation.
static void importSkipSimplifiedLayerNormalization(Node &n) {
  Value sum = n.add(n.in(0), n.in(1));
  if (n.has(3))
    sum = n.add(sum, n.in(3));
  auto [y, inverse] =
      rootMeanSquare(n, sum, n.in(2), rankOf(sum) - 1, n.getFloat("epsilon", 1e-12));
  n.set(0, y);
  if (n.wants(1))
    n.set(1, n.mean(n.cast(sum, wideType(n, elementOf(sum))), {rankOf(sum) - 1}));
  if (n.wants(2))
    n.set(2, inverse);
  if (n.wants(3))
    n.set(3, sum);
}

/// Operands: words, segments, their tables (words, positions, segments), gamma, beta, mask,
/// positions.
static void importEmbedLayerNormalization(Node &n) {
  Value words = n.in(0);
  DimVector dims = dimsOf(words);
  if (dims.size() != 2)
    refuse("the input must have rank 2, but has " + Twine(dims.size()));
  Value sum = n.gather(n.in(2), words, 0);
  Value place = n.has(8) ? n.in(8) : countUp(n, dims[1], n.i64());
  sum = n.add(sum, n.gather(n.in(3), place, 0));
  if (n.has(1) && n.has(4))
    sum = n.add(sum, n.gather(n.in(4), n.in(1), 0));
  Value value = normalize(n, sum, {2}, n.getFloat("epsilon", 1e-12)).value;
  n.set(0, n.add(n.mul(value, n.in(5)), n.in(6)));
  if (n.wants(1))
    n.set(1, n.has(7) ? n.reduce<ReduceSumOp>(n.cast(n.in(7), n.i32()), {1}, false)
                      : n.full({dims[0]}, n.i32(), 0));
  if (n.wants(2))
    n.set(2, sum);
}

/// Notes that the product's rows may be rounded to 8 bits: a single row's result is reshaped.
static void allowIntegers(Value result) {
  Operation *op = result.getDefiningOp();
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    op = reshape.getX().getDefiningOp();
  if (isa_and_nonnull<MatmulOp>(op))
    op->setAttr(kAllowsIntegers, UnitAttr::get(op->getContext()));
}

/// Operands: a [..., K], weights [N, blocks, bytes], scales, zero points, groups, bias.
static void importMatMulNBits(Node &n) {
  int64_t rows = n.getInt("N", 0), depth = n.getInt("K", 0), bits = n.getInt("bits", 4),
          block = n.getInt("block_size", 0);
  if (rows < 1 || depth < 1 || block < 1 || (bits != 2 && bits != 4 && bits != 8))
    refuse("'N', 'K' and 'block_size' must be at least 1, and 'bits' 2, 4 or 8, but they are " +
           Twine(rows) + ", " + Twine(depth) + ", " + Twine(block) + " and " + Twine(bits));
  if (n.has(4))
    refuse("'g_idx' is not supported");
  if (rankOf(n.in(1)) < 1)
    refuse("the weights must have a rank of at least 1");
  Value a = n.in(0);
  Type element = elementOf(a), wide = wideType(n, element);
  int64_t blocks = (depth + block - 1) / block;
  DimVector split = {Dim(rows), Dim(blocks), Dim(block)}, single = {Dim(rows), Dim(blocks), Dim(1)};
  Value weights = bits == 8 ? n.in(1) : unpackBits(n, n.in(1), bits);
  weights = n.cast(n.reshape(weights, split), wide);
  Value zero = n.scalar(wide, static_cast<double>(int64_t(1) << (bits - 1)));
  if (n.has(3) && isFloat(n.in(3))) {
    zero = n.reshape(n.cast(n.in(3), wide), single);
  } else if (n.has(3)) {
    int64_t bytes = (blocks * bits + 7) / 8;
    Value packed = n.reshape(n.in(3), {Dim(rows), Dim(bytes)});
    Value all = bits == 8 ? packed : unpackBits(n, packed, bits);
    zero = n.reshape(n.cast(n.sliceAlong(all, 1, Dim(0), Dim(blocks)), wide), single);
  }
  Value scale = n.reshape(n.cast(n.in(2), wide), single);
  Value whole = n.reshape(n.mul(n.sub(weights, zero), scale), {Dim(rows), Dim(blocks * block)});
  Value matrix = n.transpose(n.sliceAlong(whole, 1, Dim(0), Dim(depth)), {1, 0});
  Value y = n.matmul(n.cast(a, wide), matrix);
  if (n.getInt("accuracy_level", 0) == 4)
    allowIntegers(y);
  if (n.has(5))
    y = n.add(y, n.cast(n.in(5), wide));
  n.set(n.cast(y, element));
}

/// A scale or zero point: a scalar if it has one element.
static Value parameter(Node &n, Value x) {
  return elementCount(dimsOf(x)) == Dim(1) ? n.reshape(x, {}) : x;
}

static void setScaled(Node &n, Value sum, Value aScale, Value bScale, size_t bias) {
  Value factor = n.mul(parameter(n, aScale), parameter(n, bScale));
  Value y = n.mul(n.cast(sum, elementOf(factor)), factor);
  n.set(n.has(bias) ? n.add(y, n.in(bias)) : y);
}

/// Operands: a, b, their scales, their zero points, bias.
static void importMatMulIntegerToFloat(Node &n) {
  Value a = minusZero(n, n.in(0), n.optional(4), std::max<int64_t>(rankOf(n.in(0)) - 2, 0));
  Value b = minusZero(n, n.in(1), n.optional(5), rankOf(n.in(1)) - 1);
  setScaled(n, n.matmul(a, b), n.in(2), n.in(3), 6);
}

/// Operands: a (floats, quantised here), b, its scale, its zero point, bias.
static void importDynamicQuantizeMatMul(Node &n) {
  Value y = dynamicProduct(n, n.in(0), n.in(1), n.in(2), n.optional(3));
  n.set(n.has(4) ? n.add(y, n.in(4)) : y);
}

static void importNhwcMaxPool(Node &n) { n.set(poolWindows(n, n.in(0), "max", true)); }

OpRows contribFusedRows() {
  static const OpRow rows[] = {
      {"SimplifiedLayerNormalization", kMicrosoft, 1, 1, importSimplifiedLayerNormalization},
      {"SimplifiedLayerNormalization", "", 1, 27, importSimplifiedLayerNormalization, false,
       "what ONNX Runtime's optimiser makes of RMS normalisation"},
      {"SkipSimplifiedLayerNormalization", kMicrosoft, 1, 1,
       importSkipSimplifiedLayerNormalization},
      {"EmbedLayerNormalization", kMicrosoft, 1, 1, importEmbedLayerNormalization},
      {"MatMulNBits", kMicrosoft, 1, 1, importMatMulNBits, false, "2, 4 and 8 bits"},
      {"MatMulIntegerToFloat", kMicrosoft, 1, 1, importMatMulIntegerToFloat},
      {"DynamicQuantizeMatMul", kMicrosoft, 1, 1, importDynamicQuantizeMatMul},
      {"NhwcMaxPool", kMicrosoft, 1, 1, importNhwcMaxPool},
  };
  return rows;
}

} // namespace heddle::onnx
