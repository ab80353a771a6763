// Blocks: ops of com.microsoft on integers and on weights that are quantised in blocks.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Normalize.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Products.h"
#include "compiler/onnx/ops/Quantization.h"
#include "compiler/onnx/ops/contrib/Delegate.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// Operands: condition, then value, scale and zero point of both sides, scale and zero point of the
/// result.
static void importQLinearWhere(Node &n) {
  auto side = [&](size_t i) { return dequantize(n, n.in(i), n.in(i + 1), n.optional(i + 2), 1); };
  Value y = n.select(n.in(0), side(1), side(4));
  n.set(quantize(n, y, n.in(7), n.optional(8), elementOf(n.in(1)), 1));
}

static Ints reducedAxes(Node &n, int64_t rank) {
  return n.axes(n.getInts("axes", llvm::to_vector(llvm::seq<int64_t>(0, rank))), rank);
}

static void importQLinearReduceMean(Node &n) {
  Value x = dequantize(n, n.in(0), n.in(1), n.optional(2), 1);
  Value y = n.mean(x, reducedAxes(n, rankOf(x)), n.getInt("keepdims", 1));
  n.set(quantize(n, y, n.in(3), n.optional(4), elementOf(n.in(0)), 1));
}

static void importReduceSumInteger(Node &n) {
  Value x = n.cast(n.in(0), n.i32());
  n.set(n.reduce<ReduceSumOp>(x, reducedAxes(n, rankOf(x)), n.getInt("keepdims", 1)));
}

static void importMulInteger(Node &n) {
  n.set(n.mul(minusZero(n, n.in(0), n.optional(1), 1), minusZero(n, n.in(2), n.optional(3), 1)));
}

static void importMatMulInteger16(Node &n) {
  n.set(n.matmul(n.cast(n.in(0), n.i32()), n.cast(n.in(1), n.i32())));
}

/// Operands: data, indices, scales, zero points. Rows are gathered first and dequantised then.
static void importGatherBlockQuantized(Node &n) {
  Value data = n.in(0), scales = n.in(2), zeros = n.optional(3);
  int64_t rank = rankOf(data), bits = n.getInt("bits", 4), block = n.getInt("block_size", 128);
  int64_t along = n.axis(n.getInt("quantize_axis", 1), rank);
  int64_t axis = n.axis(n.getInt("gather_axis", 0), rank);
  bool isByte = elementOf(data).isUnsignedInteger(8);
  auto width = dyn_cast<IntegerType>(elementOf(data));
  if (!width || (bits != 4 && bits != 8) || block < 1 || axis == along)
    refuse("the data must be integers, 'bits' 4 or 8, 'block_size' at least 1, and 'gather_axis' "
           "another one than 'quantize_axis'");
  if (isByte && bits == 4 && along != rank - 1)
    refuse("'quantize_axis' must be the last one for two numbers a byte");
  if (zeros && elementOf(zeros) != elementOf(data))
    refuse("the zero points have element type " + nameOf(elementOf(zeros)) +
           ", but must have that of the data, " + nameOf(elementOf(data)));
  if (rankOf(scales) != rank)
    refuse("the scales have rank " + Twine(rankOf(scales)) + ", but the data has " + Twine(rank));
  auto rows = [&](Value x) { return n.gather(x, n.in(1), axis); };
  auto numbersOf = [&](Value x) {
    return isByte && bits == 4 ? unpackBits(n, rows(x), 4) : rows(x);
  };
  Value scale = rows(scales), x = numbersOf(data);
  Type element = elementOf(scale), wide = wideType(n, element);
  int64_t at = along > axis ? along + rankOf(n.in(1)) - 1 : along;
  Dim whole = dimsOf(x)[at];
  Value zero = zeros ? numbersOf(zeros) : Value();
  if (zero && dimsOf(zero)[at] != dimsOf(scale)[at]) // the last byte may be half full
    zero = n.sliceAlong(zero, at, Dim(0), dimsOf(scale)[at]);
  Value centre = zero     ? repeatBlocks(n, n.cast(zero, wide), block, at, whole)
                 : isByte ? n.scalar(wide, static_cast<double>(int64_t(1) << (bits - 1)))
                          : n.scalar(wide, 0);
  Value factor = repeatBlocks(n, n.cast(scale, wide), block, at, whole);
  n.set(n.cast(n.mul(n.sub(n.cast(x, wide), centre), factor), element));
}

/// The numbers that four bits stand for in bitsandbytes: FP4, and NF4, the quantiles of a normal
/// distribution (Dettmers et al., "QLoRA", 2023, appendix E).
static constexpr double kFp4[] = {
    0,    5.208333333e-03,  0.66666667,  1,  0.33333333,  0.5,  0.16666667,  0.25,
    -0.0, -5.208333333e-03, -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25};
static constexpr double kNf4[] = {-1.0,
                                  -0.6961928009986877,
                                  -0.5250730514526367,
                                  -0.39491748809814453,
                                  -0.28444138169288635,
                                  -0.18477343022823334,
                                  -0.09105003625154495,
                                  0.0,
                                  0.07958029955625534,
                                  0.16093020141124725,
                                  0.24611230194568634,
                                  0.33791524171829224,
                                  0.44070982933044434,
                                  0.5626170039176941,
                                  0.7229568362236023,
                                  1.0};

/// Operands: a [..., K], weights [N * K / 2] with the first number of a byte in its high bits, the
/// largest magnitude of each block.
static void importMatMulBnb4(Node &n) {
  int64_t rows = n.getInt("N", 0), depth = n.getInt("K", 0), block = n.getInt("block_size", 0),
          kind = n.getInt("quant_type", 0);
  if (rows < 1 || depth < 1 || block < 1 || (kind != 0 && kind != 1))
    refuse("'N', 'K' and 'block_size' must be at least 1, and 'quant_type' 0 (FP4) or 1 (NF4)");
  if (!n.getInt("transB", 1))
    refuse("'transB' must be 1");
  int64_t count, bytes;
  if (__builtin_mul_overflow(rows, depth, &count) || count > INT32_MAX)
    refuse("'N' times 'K' is too large");
  bytes = (count + 1) / 2;
  Type wide = wideType(n, elementOf(n.in(0)));
  Value packed = n.reshape(n.in(1), {Dim(bytes)});
  Type byte = elementOf(packed);
  Value high = n.binary<ShiftRightOp>(packed, n.integerScalar(byte, 4));
  Value low = n.binary<BitAndOp>(packed, n.integerScalar(byte, 15));
  Value codes = n.concat({n.unsqueeze(high, {1}), n.unsqueeze(low, {1})}, 1);
  codes = n.sliceAlong(n.reshape(codes, {Dim(2 * bytes)}), 0, Dim(0), Dim(count));
  Value table = numbers(n, kind ? ArrayRef<double>(kNf4) : ArrayRef<double>(kFp4), {16}, wide);
  Value largest = n.reshape(n.cast(n.in(2), wide), {Dim((count + block - 1) / block)});
  Value weights = n.mul(n.gather(table, n.cast(codes, n.i64()), 0),
                        repeatBlocks(n, largest, block, 0, Dim(count)));
  Value matrix = n.transpose(n.reshape(weights, {Dim(rows), Dim(depth)}), {1, 0});
  n.set(n.cast(n.matmul(n.cast(n.in(0), wide), matrix), elementOf(n.in(0))));
}

/// EmbedLayerNormalization whose tables and factors are integers.
/// Operands: words, segments, tables of words, positions and segments, gamma, beta, mask; five
/// scales; five zero points.
static void importQEmbedLayerNormalization(Node &n) {
  SmallVector<Value> operands(n.operands.begin(),
                              n.operands.begin() + std::min<size_t>(8, n.inputs()));
  operands.resize(8);
  for (size_t i = 0; i < 5; ++i)
    if (n.has(2 + i))
      operands[2 + i] = dequantize(n, n.in(2 + i), n.in(8 + i), n.optional(13 + i), 1);
  Node inner(n.reader, n.scope, n.message, n.opset, n.location);
  inner.operands.assign(operands.begin(), operands.end());
  inner.results.resize(n.outputs());
  findRow(kMicrosoft, "EmbedLayerNormalization")->import(inner);
  for (size_t i = 0; i < n.outputs(); ++i)
    n.set(i, inner.results[i]);
}

OpRows contribBlockRows() {
  static const OpRow rows[] = {
      {"QLinearWhere", kMicrosoft, 1, 1, importQLinearWhere},
      {"QLinearReduceMean", kMicrosoft, 1, 1, importQLinearReduceMean},
      {"ReduceSumInteger", kMicrosoft, 1, 1, importReduceSumInteger},
      {"MulInteger", kMicrosoft, 1, 1, importMulInteger},
      {"MatMulInteger16", kMicrosoft, 1, 1, importMatMulInteger16},
      {"GatherBlockQuantized", kMicrosoft, 1, 1, importGatherBlockQuantized, false,
       "integers of 4 and 8 bits"},
      {"MatMulBnb4", kMicrosoft, 1, 1, importMatMulBnb4},
      {"QEmbedLayerNormalization", kMicrosoft, 1, 1, importQEmbedLayerNormalization},
  };
  return rows;
}

} // namespace heddle::onnx
