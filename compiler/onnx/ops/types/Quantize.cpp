// Quantize: linear quantisation spelt with casts, integer products and roundings.

#include "compiler/onnx/ops/Quantization.h"

#include "compiler/graph/Constants.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Products.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// A scale or zero point shaped to broadcast: a scalar, or a vector along `axis` of a tensor of
/// `rank`.
static Value shaped(Emitter &e, Value parameter, int64_t axis, int64_t rank) {
  if (elementCount(dimsOf(parameter)) == Dim(1))
    return e.reshape(parameter, {});
  if (rankOf(parameter) == rank && rank > 1) // one entry per element
    return parameter;
  if (rankOf(parameter) != 1)
    refuse("a scale must be a scalar, a vector, or with 'block_size' of the input's rank, but has "
           "the shape " +
           textOf(dimsOf(parameter)));
  return e.alongAxis(parameter, axis, rank);
}

/// Refuses a vector along `axis` of x that is not as long as it.
static void checkLength(Value parameter, Value x, int64_t axis) {
  if (!parameter || rankOf(parameter) != 1 || axis < 0 || axis >= rankOf(x))
    return;
  auto length = dimsOf(parameter).front().constant(), extent = dimsOf(x)[axis].constant();
  if (length && extent && *length != 1 && *length != *extent)
    refuse("a scale or zero point has " + Twine(*length) + " numbers, but axis " + Twine(axis) +
           " of " + textOf(dimsOf(x)) + " has " + Twine(*extent));
}

Value quantize(Emitter &e, Value x, Value scale, Value zero, Type element, int64_t axis) {
  int64_t rank = rankOf(x);
  checkLength(scale, x, axis);
  checkLength(zero, x, axis);
  Value scaled = e.div(x, e.cast(shaped(e, scale, axis, rank), elementOf(x)));
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer) {
    if (zero)
      scaled = e.add(scaled, e.cast(shaped(e, zero, axis, rank), elementOf(x)));
    return e.cast(scaled, element, /*saturate=*/true);
  }
  Value rounded = e.unary<RoundOp>(scaled);
  if (zero)
    rounded = e.add(rounded, e.cast(shaped(e, zero, axis, rank), elementOf(x)));
  bool isUnsigned = integer.isUnsigned();
  int64_t width = integer.getWidth() - (isUnsigned ? 0 : 1);
  double top = std::ldexp(1.0, width) - 1, bottom = isUnsigned ? 0 : -std::ldexp(1.0, width);
  return e.cast(e.min(e.max(rounded, bottom), top), element);
}

Value minusZero(Emitter &e, Value x, Value zero, int64_t axis) {
  Value wide = e.cast(x, e.i32());
  if (!zero)
    return wide;
  if (auto known = constantIntegers(zero);
      known && llvm::all_of(*known, [](int64_t z) { return z == 0; }))
    return wide;
  return e.sub(wide, e.cast(shaped(e, zero, axis, rankOf(x)), e.i32()));
}

Value dequantize(Emitter &e, Value x, Value scale, Value zero, int64_t axis) {
  if (isBits(elementOf(scale))) // a float8e8m0
    scale = e.cast(scale, e.f32());
  checkLength(scale, x, axis);
  checkLength(zero, x, axis);
  Type element = elementOf(scale);
  Value centred;
  if (isa<IntegerType>(elementOf(x)))
    centred = e.cast(minusZero(e, x, zero, axis), element);
  else if (zero)
    centred = e.sub(e.cast(x, element), e.cast(shaped(e, zero, axis, rankOf(x)), element));
  else
    centred = e.cast(x, element);
  return e.mul(centred, shaped(e, scale, axis, rankOf(x)));
}

Value repeatBlocks(Emitter &e, Value x, int64_t block, int64_t axis, const Dim &whole) {
  DimVector dims = dimsOf(x), repeated = dims;
  repeated.insert(repeated.begin() + axis + 1, Dim(block));
  x = e.broadcast(e.unsqueeze(x, {axis + 1}), repeated);
  dims[axis] = dims[axis] * Dim(block);
  return e.sliceAlong(e.reshape(x, dims), axis, Dim(0), whole);
}

/// The numbers of a constant's bytes, made here: there may be billions of them.
static Value unpackedConstant(Emitter &e, ConstantOp constant, const DimVector &dims,
                              int64_t bits) {
  std::vector<char> storage, numbers;
  ArrayRef<char> bytes = graph::constantBytes(constant.getValue(), storage);
  numbers.reserve(bytes.size() * 8 / bits);
  for (char byte : bytes)
    for (int64_t shift = 0; shift < 8; shift += bits)
      numbers.push_back(static_cast<char>(static_cast<uint8_t>(byte) >> shift & ((1 << bits) - 1)));
  return e.constant(graph::constantAttr(
      cast<RankedTensorType>(e.tensor(dims, elementOf(constant.getResult()))), numbers));
}

Value unpackBits(Emitter &e, Value x, int64_t bits) {
  Type byte = elementOf(x);
  DimVector dims = dimsOf(x);
  dims.back() = dims.back() * Dim(8 / bits);
  if (auto constant = x.getDefiningOp<ConstantOp>();
      constant && byte.isUnsignedInteger(8) && valueRefusal(constant.getValue()).empty())
    return unpackedConstant(e, constant, dims, bits);
  SmallVector<Value> parts;
  int64_t last = rankOf(x);
  for (int64_t shift = 0; shift < 8; shift += bits) {
    Value moved = e.binary<ShiftRightOp>(x, e.integerScalar(byte, shift));
    Value low = e.binary<BitAndOp>(moved, e.integerScalar(byte, (1 << bits) - 1));
    parts.push_back(e.unsqueeze(low, {last}));
  }
  return e.reshape(e.concat(parts, last), dims);
}

Quantized quantizeDynamically(Emitter &e, Value x) {
  Type element = elementOf(x), u8 = IntegerType::get(e.context(), 8, IntegerType::Unsigned);
  Value none = e.scalar(element, 0);
  Ints axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
  Value low = e.binary<MinOp>(e.reduce<ReduceMinOp>(x, axes, false), none);
  Value high = e.binary<MaxOp>(e.reduce<ReduceMaxOp>(x, axes, false), none);
  Value scale = e.div(e.sub(high, low), 255);
  // A tensor of zeros has the range 0; its scale is 1 as ONNX Runtime has it.
  scale = e.select(e.compare<EqualOp>(scale, none), e.scalar(element, 1), scale);
  Value point = e.unary<RoundOp>(e.div(e.unary<NegOp>(low), scale));
  point = e.cast(e.min(e.max(point, 0), 255), u8);
  return {quantize(e, x, scale, point, u8, 1), scale, point};
}

/// A scale or zero point: a scalar if it has one element.
static Value single(Emitter &e, Value x) {
  return x && elementCount(dimsOf(x)) == Dim(1) ? e.reshape(x, {}) : x;
}

Value dynamicProduct(Emitter &e, Value x, Value b, Value scale, Value zero) {
  Quantized a = quantizeDynamically(e, x);
  Value sum =
      e.matmul(minusZero(e, a.value, a.zero, 1), minusZero(e, b, single(e, zero), rankOf(b) - 1));
  Value factor = e.mul(a.scale, single(e, scale));
  return e.mul(e.cast(sum, elementOf(factor)), factor);
}

static int64_t quantAxis(Node &n) {
  int64_t rank = rankOf(n.in(0)), axis = n.getInt("axis", 1);
  return axis < 0 ? axis + rank : axis;
}

/// x with each entry repeated `block_size` times along the axis, if there are blocks.
static Value unblocked(Node &n, Value x) {
  int64_t block = n.getInt("block_size", 0), axis = quantAxis(n);
  DimVector dims = dimsOf(x), whole = dimsOf(n.in(0));
  if (block == 0)
    return x;
  if (block < 0 || dims.size() != whole.size() || axis < 0 || axis >= (int64_t)dims.size())
    refuse("scales of shape " + textOf(dims) + " do not fit blocks of " + Twine(block) +
           " along axis " + Twine(axis) + " of " + textOf(whole));
  return repeatBlocks(n, x, block, axis, whole[axis]);
}

static void importQuantizeLinear(Node &n) {
  Type element = IntegerType::get(n.context(), 8, IntegerType::Unsigned);
  element = n.getElement("output_dtype", element);
  Value zero = n.has(2) ? unblocked(n, n.in(2)) : Value();
  if (zero)
    element = elementOf(zero);
  Value x = n.in(0);
  if (isa<IntegerType>(elementOf(x)))
    x = n.cast(x, isBits(elementOf(n.in(1))) ? n.f32() : elementOf(n.in(1)));
  n.set(quantize(n, x, unblocked(n, n.in(1)), zero, element, quantAxis(n)));
}

static void importDequantizeLinear(Node &n) {
  Value zero = n.has(2) ? unblocked(n, n.in(2)) : Value();
  Value y = dequantize(n, n.in(0), unblocked(n, n.in(1)), zero, quantAxis(n));
  n.set(n.cast(y, n.getElement("output_dtype", elementOf(y))));
}

/// Scale and zero point that map the range of x, widened to hold 0, to 0..255.
static void importDynamicQuantizeLinear(Node &n) {
  Quantized y = quantizeDynamically(n, n.in(0));
  n.set(0, y.value);
  if (n.wants(1))
    n.set(1, y.scale);
  if (n.wants(2))
    n.set(2, y.zero);
}

/// sum * (a * b / y), rounded to y's type: the end of every quantised product. Vectors of b run
/// along `axis`.
static Value requantize(Node &n, Value sum, Value a, Value b, Value y, Value zero, int64_t axis) {
  int64_t rank = rankOf(sum);
  Value factor =
      n.div(n.mul(shaped(n, a, axis, rank), shaped(n, b, axis, rank)), shaped(n, y, axis, rank));
  Value scaled = n.mul(n.cast(sum, elementOf(factor)), factor);
  return quantize(n, scaled, n.scalar(elementOf(scaled), 1), zero, elementOf(zero), axis);
}

static void importQLinearConv(Node &n) {
  Value x = minusZero(n, n.in(0), n.in(2), 1), w = minusZero(n, n.in(3), n.in(5), 0);
  Value sum = convolve(n, x, w);
  if (n.has(8))
    sum = addChannelBias(n, sum, n.in(8));
  n.set(requantize(n, sum, n.in(1), n.in(4), n.in(6), n.in(7), 1));
}

/// Zero points of a run along the rows, those of b along the columns.
static Value integerProduct(Node &n, Value a, Value aZero, Value b, Value bZero) {
  int64_t rows = std::max<int64_t>(rankOf(a) - 2, 0), columns = rankOf(b) - 1;
  return n.matmul(minusZero(n, a, aZero, rows), minusZero(n, b, bZero, columns));
}

static void importQLinearMatMul(Node &n) {
  Value sum = integerProduct(n, n.in(0), n.in(2), n.in(3), n.in(5));
  n.set(requantize(n, sum, n.in(1), n.in(4), n.in(6), n.in(7), rankOf(sum) - 1));
}

static void importMatMulInteger(Node &n) {
  n.set(integerProduct(n, n.in(0), n.optional(2), n.in(1), n.optional(3)));
}

static void importConvInteger(Node &n) {
  Value x = minusZero(n, n.in(0), n.optional(2), 1);
  n.set(convolve(n, x, minusZero(n, n.in(1), n.optional(3), 0)));
}

OpRows quantizeRows() {
  static const OpRow rows[] = {
      {"QuantizeLinear", "", 10, 27, importQuantizeLinear},
      {"DequantizeLinear", "", 10, 27, importDequantizeLinear},
      {"DynamicQuantizeLinear", "", 11, 27, importDynamicQuantizeLinear},
      {"QLinearConv", "", 10, 27, importQLinearConv},
      {"QLinearMatMul", "", 10, 27, importQLinearMatMul},
      {"MatMulInteger", "", 10, 27, importMatMulInteger},
      {"ConvInteger", "", 10, 27, importConvInteger},
  };
  return rows;
}

} // namespace heddle::onnx
