// Quantized: products of quantised tensors become products of 8-bit integers.
//
// With q(x, z) = cast<i32>(x) - z for an 8-bit x, and d(x, z, s) = cast<f32>(q(x, z)) * s:
//
//   matmul(d(a, za, sa), d(b, zb, sb)) = cast<f32>(matmul(q(a, za), q(b, zb))) * (sa * sb)
//   matmul(q(a, za), q(b, zb)) = matmul(a, b) - za * columns(q(b, zb)) - zb * rows(a)
//   conv(q(x, z), w)           = conv(pad(x, z), w) - z * filters(w)
//
// where columns, rows and filters are sums. A scale or zero point of the left side is one number;
// that of the right side may be one per column or filter. i32 constants that fit i8 (else i16) take
// its place. Ops that only move elements may be between a product and its operands.
//
// The sum of a float product is rounded once, here, and not at each step. Pairs.cpp has the rules
// for what follows a dequantised tensor.

#include "compiler/simplify/Passes.h"
#include "compiler/simplify/Rules.h"
#include "compiler/simplify/quantized/Operand.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

#define GEN_PASS_DEF_QUANTIZEDPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

using Rewriter = PatternRewriter;

/// The i32 constant in the narrowest of the types that holds it; null if none does.
Value narrowed(Rewriter &rewriter, Value value, ArrayRef<Type> types) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant || !elementOf(value).isSignlessInteger(32))
    return {};
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(constant.getValue(), storage);
  auto numbers = ArrayRef<int32_t>(reinterpret_cast<const int32_t *>(bytes.data()),
                                   bytes.size() / sizeof(int32_t));
  int64_t least = 0, most = 0;
  for (int32_t number : numbers) {
    least = std::min<int64_t>(least, number);
    most = std::max<int64_t>(most, number);
  }
  for (Type type : types) {
    int64_t bits = type.getIntOrFloatBitWidth(), width = bits / 8;
    int64_t low = type.isUnsignedInteger() ? 0 : -(int64_t(1) << (bits - 1));
    if (least < low || most >= low + (int64_t(1) << bits))
      continue;
    std::vector<char> packed(numbers.size() * width);
    for (auto [i, number] : llvm::enumerate(numbers))
      std::memcpy(packed.data() + i * width, &number, width);
    auto tensor = tensorOf(rewriter.getContext(), dimsOf(value), type);
    return rewriter.create<ConstantOp>(value.getLoc(), tensor, constantAttr(tensor, packed));
  }
  return {};
}

/// cast<f32>(product of the two) * (product of their scales), which runs along `axis`.
void replaceByIntegers(Operation *op, Rewriter &rewriter, const QuantizedOperand &left,
                       const QuantizedOperand &right, int64_t axis) {
  Value x = centredOf(rewriter, left), y = centredOf(rewriter, right);
  Type element = elementOf(op->getResult(0));
  DimVector sizes = dimsOf(op->getResult(0));
  Type sums = tensorOf(rewriter.getContext(), sizes, rewriter.getI32Type());
  Value sum = rebuild(rewriter, op, {x, y}, sums)->getResult(0);
  Value one = parameterOf(rewriter, left.scale), scale = parameterOf(rewriter, right.scale);
  one = Build(rewriter, op).broadcast(one, dimsOf(scale));
  scale = rewriter.create<MulOp>(op->getLoc(), one, scale);
  rewriter.replaceOpWithNewOp<MulOp>(op, castTo(rewriter, sum, element),
                                     Build(rewriter, scale).along(scale, axis, sizes));
}

// matmul(d(a), d(b)) = cast(matmul(q(a), q(b))) * (sa * sb), and the same for conv, conv_transpose
LogicalResult productOfDequantized(Operation *op, Rewriter &rewriter) {
  auto sides = readSides(op);
  if (!sides)
    return failure();
  replaceByIntegers(op, rewriter, sides->left, sides->right, sides->axis);
  return success();
}
LogicalResult matmulOfDequantized(MatmulOp op, Rewriter &rewriter) {
  return productOfDequantized(op, rewriter);
}
LogicalResult convOfDequantized(ConvOp op, Rewriter &rewriter) {
  return productOfDequantized(op, rewriter);
}
// TransposedConv.cpp makes a convolution of it.
LogicalResult convTransposeOfDequantized(ConvTransposeOp op, Rewriter &rewriter) {
  return productOfDequantized(op, rewriter);
}

/// One side of an integer product.
struct Side {
  Value x;    // 8 bits wide, or 16 if constant
  Value zero; // as [] or, of the right side, as [n]; null for 0
};

/// Whether sideOf may find something. Fold makes one constant of a constant and its zero point.
bool isSide(Value value, int64_t axis) {
  if (!elementOf(value).isSignlessInteger(32))
    return false;
  if (value.getDefiningOp<ConstantOp>())
    return true;
  auto operand = readCentred(value);
  return operand && operand->variesAlong(axis) && !(operand->zero && isConstant(operand->x));
}

/// The side whose constants are of one of `types`; its zero point may vary along `axis`.
std::optional<Side> sideOf(Rewriter &rewriter, Value value, ArrayRef<Type> types) {
  if (value.getDefiningOp<ConstantOp>()) {
    Value constant = narrowed(rewriter, value, types);
    return constant ? std::optional<Side>({constant, {}}) : std::nullopt;
  }
  auto operand = readCentred(value);
  return Side{storedOf(rewriter, *operand),
              operand->zero ? parameterOf(rewriter, operand->zero) : Value()};
}

/// x - zero * sums, all of i32; `sums` keeps the axes that it was made of.
Value minusShift(Rewriter &rewriter, Value x, Value zero, Value sums) {
  Location location = x.getLoc();
  DimVector sizes = dimsOf(sums);
  int64_t last = sizes.size() - 1;
  if (rankOf(zero) == 1) // one per column: each meets each of the sums
    sizes[last] = dimsOf(zero)[0];
  Value shift = rewriter.create<MulOp>(location, Build(rewriter, location).broadcast(sums, sizes),
                                       Build(rewriter, zero).along(zero, last, sizes));
  return rewriter.create<SubOp>(location, x, Build(rewriter, location).broadcast(shift, dimsOf(x)));
}

// matmul(q(a, za), q(b, zb)) = matmul(a, b) - za * columns(q(b, zb)) - zb * rows(a)
LogicalResult matmulOfCentred(MatmulOp op, Rewriter &rewriter) {
  int64_t last = rankOf(op.getA()) - 1;
  if (!isSide(op.getA(), QuantizedOperand::kUniform) || !isSide(op.getB(), last))
    return failure();
  MLIRContext *context = op.getContext();
  Type i8 = IntegerType::get(context, 8), i16 = IntegerType::get(context, 16),
       u8 = IntegerType::get(context, 8, IntegerType::Unsigned);
  auto a = sideOf(rewriter, op.getA(), {i8, u8});
  auto b = a ? sideOf(rewriter, op.getB(), {i8, i16}) : std::nullopt;
  if (!a || !b)
    return failure();
  Location location = op.getLoc();
  Value sum = rewriter.create<MatmulOp>(location, op.getType(), a->x, b->x);
  if (a->zero) {
    Value columns = rewriter.create<ReduceSumOp>(location, op.getB(), ArrayRef<int64_t>{last - 1},
                                                 /*keep_dims=*/true);
    sum = minusShift(rewriter, sum, a->zero, columns);
  }
  if (b->zero) {
    Value wide = castTo(rewriter, a->x, rewriter.getI32Type());
    Value rows =
        rewriter.create<ReduceSumOp>(location, wide, ArrayRef<int64_t>{last}, /*keep_dims=*/true);
    sum = minusShift(rewriter, sum, b->zero, rows);
  }
  rewriter.replaceOp(op, sum);
  return success();
}

/// x with `zero` where the convolution pads it.
Value padded(Rewriter &rewriter, ConvOp op, Value x, Value zero) {
  int64_t first = op.getChannelsLast() ? 1 : 2;
  DimVector low(rankOf(x), Dim(0)), high(low);
  for (size_t i = 0; i < op.getLow().size(); ++i) {
    low[first + i] = Dim(op.getLow()[i]);
    high[first + i] = Dim(op.getHigh()[i]);
  }
  return rewriter.create<PadOp>(op.getLoc(), x, castTo(rewriter, zero, elementOf(x)),
                                dimsAttr(op.getContext(), low), dimsAttr(op.getContext(), high),
                                rewriter.getStringAttr("constant"));
}

// conv(q(x, z), w) = conv(pad(x, z), w) - z * filters(w)
LogicalResult convOfCentred(ConvOp op, Rewriter &rewriter) {
  if (!isSide(op.getX(), QuantizedOperand::kUniform) || isConstant(op.getX()) ||
      !op.getW().getDefiningOp<ConstantOp>())
    return failure();
  MLIRContext *context = op.getContext();
  Type i8 = IntegerType::get(context, 8), i16 = IntegerType::get(context, 16);
  Value w = narrowed(rewriter, op.getW(), {i8, i16});
  if (!w)
    return failure();
  auto x = sideOf(rewriter, op.getX(), {});
  auto low = llvm::to_vector(op.getLow()), high = llvm::to_vector(op.getHigh());
  bool isPadded = llvm::any_of(llvm::concat<int64_t>(low, high), [](int64_t n) { return n != 0; });
  Value image = x->x;
  if (x->zero && isPadded) {
    image = padded(rewriter, op, image, x->zero);
    low.assign(low.size(), 0);
    high.assign(high.size(), 0);
  }
  Value sum =
      rewriter.create<ConvOp>(op.getLoc(), op.getType(), image, w, op.getStrides(),
                              op.getDilations(), low, high, op.getGroups(), op.getChannelsLast());
  if (x->zero) {
    auto axes = llvm::to_vector(llvm::seq<int64_t>(1, rankOf(w)));
    Value filters = rewriter.create<ReduceSumOp>(op.getLoc(), op.getW(), axes, /*keep_dims=*/false);
    Value shift = rewriter.create<MulOp>(
        op.getLoc(), filters, Build(rewriter, x->zero).along(x->zero, 0, dimsOf(filters)));
    int64_t channel = op.getChannelsLast() ? rankOf(op.getX()) - 1 : 1;
    sum = rewriter.create<SubOp>(op.getLoc(), sum,
                                 Build(rewriter, shift).along(shift, channel, dimsOf(sum)));
  }
  rewriter.replaceOp(op, sum);
  return success();
}

// pad(x) = reshape(pad(reshape x)), with the few elements after the last axis that grows in one
// run with it: a loop over them alone would be shorter than a vector.
LogicalResult padOfNarrow(PadOp op, PatternRewriter &rewriter) {
  constexpr int64_t kNarrow = 8;
  DimVector sizes = dimsOf(op.getX()), low = dimsOf(op.getLow()), high = dimsOf(op.getHigh());
  int64_t last = sizes.size() - 1;
  while (last >= 0 && low[last].isConstant(0) && high[last].isConstant(0))
    --last;
  auto inner = elementCount(ArrayRef<Dim>(sizes).drop_front(last + 1)).constant();
  if (last < 0 || !inner || *inner <= 1 || *inner > kNarrow || op.getMode() != "constant" ||
      !elementOf(op.getX()).isInteger(8))
    return failure();
  for (DimVector *dims : {&sizes, &low, &high}) {
    dims->truncate(last + 1);
    dims->back() = dims->back() * Dim(*inner);
  }
  Value x = Build(rewriter, op).reshape(op.getX(), sizes);
  Value padded =
      rewriter.create<PadOp>(op.getLoc(), x, op.getValue(), dimsAttr(op.getContext(), low),
                             dimsAttr(op.getContext(), high), op.getModeAttr());
  rewriter.replaceOp(op, Build(rewriter, op).reshape(padded, dimsOf(op.getResult())));
  return success();
}

struct QuantizedPass : impl::QuantizedPassBase<QuantizedPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    addQuantizedRules(patterns);
    (void)applyRules(getOperation(), std::move(patterns));
    // After those that look for divisions by scales.
    RewritePatternSet steps(&getContext());
    addStepRules(steps);
    (void)applyRules(getOperation(), std::move(steps));
  }
};

} // namespace

void addQuantizedRules(RewritePatternSet &patterns) {
  patterns.add(matmulOfDequantized)
      .add(convOfDequantized)
      .add(convTransposeOfDequantized)
      .add(matmulOfCentred)
      .add(convOfCentred)
      .add(padOfNarrow)
      .add(quotientOfDequantized)
      .add(poolOfDequantized)
      .add(poolOfBounded)
      .add(quantisedOfDequantized)
      .add(quantisedOfConcat);
}

} // namespace heddle::simplify
