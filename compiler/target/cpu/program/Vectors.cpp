// Vectors: dot products, permutations and tables as the instructions of a CPU.

#include "compiler/program/Dialect.h"
#include "compiler/target/cpu/program/Ops.h"

#include <numeric>

using namespace mlir;

namespace heddle::cpu {
namespace {

struct VectorOps {
  OpBuilder &b;
  Location loc;
  const Target &target;

  Value intrinsic(const Twine &name, Type result, ValueRange operands) {
    return b.create<LLVM::CallIntrinsicOp>(loc, result, b.getStringAttr(name), operands)
        .getResults();
  }

  /// Whether a register has so many lanes of 32 bits.
  bool isRegister(int64_t lanes) const {
    return lanes == 4 || (lanes == 8 && target.avx2) || (lanes == 16 && target.avx512);
  }

  Value pairs(Value left, Value right, Value sum) {
    auto type = cast<VectorType>(sum.getType());
    int64_t lanes = type.getNumElements();
    Type halves = VectorType::get({2 * lanes}, b.getI16Type());
    left = b.create<LLVM::BitcastOp>(loc, halves, left);
    right = b.create<LLVM::BitcastOp>(loc, halves, right);
    Value products;
    if (target.isArm()) {
      SmallVector<Value, 2> parts;
      for (int64_t half = 0; half < 2; ++half) {
        auto part = [&](Value whole) -> Value {
          return b.create<vector::ExtractStridedSliceOp>(loc, whole, half * lanes, lanes, 1);
        };
        Value low = part(left), high = part(right);
        parts.push_back(intrinsic("llvm.aarch64.neon.smull.v4i32", type, {low, high}));
      }
      products = intrinsic("llvm.aarch64.neon.addp.v4i32", type, parts);
    } else {
      StringRef name = lanes == 16  ? "avx512.pmaddw.d.512"
                       : lanes == 8 ? "avx2.pmadd.wd"
                                    : "sse2.pmadd.wd";
      products = intrinsic("llvm.x86." + name, type, {left, right});
    }
    return b.create<arith::AddIOp>(loc, sum, products);
  }

  /// Bytes below 16 by signed ones, with sums of 16 bits.
  Value halfBytes(Value left, Value right, Value sum) {
    auto type = cast<VectorType>(sum.getType());
    int64_t lanes = type.getNumElements();
    auto words = VectorType::get({2 * lanes}, b.getI16Type());
    auto cast = [&](Type to, Value x) -> Value { return b.create<LLVM::BitcastOp>(loc, to, x); };
    sum = cast(words, sum);
    if (target.avx2) {
      Type bytes = VectorType::get({4 * lanes}, b.getI8Type());
      StringRef name = lanes == 16  ? "avx512.pmaddubs.w.512"
                       : lanes == 8 ? "avx2.pmadd.ub.sw"
                                    : "ssse3.pmadd.ub.sw.128";
      Value pairs = intrinsic("llvm.x86." + name, words, {cast(bytes, left), cast(bytes, right)});
      return cast(type, b.create<arith::AddIOp>(loc, sum, pairs));
    }
    left = cast(words, left);
    right = cast(words, right);
    Value shift = b.create<arith::ConstantOp>(
        loc, DenseElementsAttr::get(words, b.getI16IntegerAttr(8).getValue()));
    for (bool isEven : {true, false}) {
      Value x = isEven ? b.create<arith::ShLIOp>(loc, left, shift).getResult() : left;
      Value y = isEven ? b.create<arith::ShLIOp>(loc, right, shift).getResult() : right;
      x = b.create<arith::ShRUIOp>(loc, x, shift);
      y = b.create<arith::ShRSIOp>(loc, y, shift);
      sum = b.create<arith::AddIOp>(loc, sum, b.create<arith::MulIOp>(loc, x, y));
    }
    return cast(type, sum);
  }

  /// Sums of f32. Without the instruction, each half of the lanes becomes f32: its low 16 bits are
  /// 0.
  Value shortFloats(Value left, Value right, Value sum) {
    auto type = cast<VectorType>(sum.getType());
    int64_t lanes = type.getNumElements();
    if (target.bf16 && isRegister(lanes)) {
      Type pairs = VectorType::get({2 * lanes}, b.getBF16Type());
      left = b.create<LLVM::BitcastOp>(loc, pairs, left);
      right = b.create<LLVM::BitcastOp>(loc, pairs, right);
      return intrinsic(target.isArm() ? Twine("llvm.aarch64.neon.bfdot.v4f32.v8bf16")
                                      : "llvm.x86.avx512bf16.dpbf16ps." + Twine(lanes * 32),
                       type, {sum, left, right});
    }
    auto constant = [&](int64_t number) -> Value {
      auto lane = b.getI32IntegerAttr(static_cast<int32_t>(number));
      return b.create<arith::ConstantOp>(
          loc, DenseElementsAttr::get(cast<VectorType>(left.getType()), lane.getValue()));
    };
    Value shift = constant(16), mask = constant(0xffff0000);
    auto floats = [&](Value bits) { return b.create<arith::BitcastOp>(loc, type, bits); };
    auto low = [&](Value pair) { return floats(b.create<arith::ShLIOp>(loc, pair, shift)); };
    auto high = [&](Value pair) { return floats(b.create<arith::AndIOp>(loc, pair, mask)); };
    sum = b.create<math::FmaOp>(loc, low(left), low(right), sum);
    return b.create<math::FmaOp>(loc, high(left), high(right), sum);
  }

  /// Null if there is no such instruction.
  Value lower(program::DotOp op) {
    Value left = op.getLeft(), right = op.getRight(), sum = op.getSum();
    int64_t lanes = op.getType().getNumElements();
    if (op.getKind() == program::DotKind::ShortFloats)
      return shortFloats(left, right, sum);
    if (!isRegister(lanes))
      return {};
    if (op.getKind() == program::DotKind::Pairs)
      return pairs(left, right, sum);
    if (op.getKind() == program::DotKind::HalfBytes)
      return halfBytes(left, right, sum);
    bool isUnsigned = op.getKind() == program::DotKind::UnsignedBytes;
    if (isUnsigned && target.vnni)
      return intrinsic("llvm.x86.avx512.vpdpbusd." + Twine(lanes * 32), op.getType(),
                       {sum, left, right});
    if (!(isUnsigned ? target.i8mm : target.dotprod))
      return {};
    Type quads = VectorType::get({4 * lanes}, b.getI8Type());
    left = b.create<LLVM::BitcastOp>(loc, quads, left);
    right = b.create<LLVM::BitcastOp>(loc, quads, right);
    StringRef name = isUnsigned ? "usdot" : "sdot";
    return intrinsic("llvm.aarch64.neon." + name + ".v4i32.v16i8", op.getType(),
                     {sum, left, right});
  }

  Value lower(program::PermuteOp op) {
    int64_t lanes = op.getType().getNumElements();
    if (!isRegister(lanes) || lanes < 8 || !(lanes == 16 ? target.avx512 : target.avx2))
      return {};
    return intrinsic(lanes == 16 ? "llvm.x86.avx512.permvar.si.512" : "llvm.x86.avx2.permd",
                     op.getType(), {op.getVector(), op.getPlaces()});
  }

  /// A register has 64 bytes: bits 0 to 6 of a place pick a byte of two registers, and bit 7 picks
  /// these two.
  Value lower(program::LookupOp op) {
    constexpr int64_t kBytes = 64;
    if (!target.vbmi || op.getType().getNumElements() > kBytes)
      return {};
    Type i8 = b.getI8Type(), whole = VectorType::get({kBytes}, i8);
    auto pick = [&](Value bytes, ArrayRef<int32_t> order) {
      return b.create<LLVM::ShuffleVectorOp>(loc, bytes, bytes, order);
    };
    SmallVector<int32_t> lanes(op.getType().getNumElements());
    std::iota(lanes.begin(), lanes.end(), 0);
    SmallVector<int32_t> wide = lanes;
    wide.resize(kBytes, -1); // any byte
    Value places = pick(op.getPlaces(), wide);
    auto half = [&](int64_t number) {
      SmallVector<Value, 2> quarters;
      for (int64_t i = 2 * number; i < 2 * number + 2; ++i) {
        Value address = addressOf(b, loc, op.getTable(), i8, numberOf(b, loc, i * kBytes));
        auto load = b.create<LLVM::LoadOp>(loc, whole, address, /*alignment=*/1);
        load.setInvariant(true);
        quarters.push_back(load);
      }
      return intrinsic("llvm.x86.avx512.vpermi2var.qi.512", whole,
                       {quarters[0], places, quarters[1]});
    };
    Value zero = b.create<arith::ConstantOp>(loc, b.getZeroAttr(whole));
    Value isHigh = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, places, zero);
    Value high = half(1), low = half(0);
    return pick(b.create<arith::SelectOp>(loc, isHigh, high, low), lanes);
  }
};
} // namespace

bool lowerVectors(OpBuilder &b, Operation *op, const Target &target) {
  VectorOps ops{b, op->getLoc(), target};
  return TypeSwitch<Operation *, bool>(op)
      .Case<program::DotOp, program::PermuteOp, program::LookupOp>([&](auto each) {
        Value made = ops.lower(each);
        if (made)
          op->replaceAllUsesWith(ValueRange{made});
        return made != Value();
      })
      .Default(false);
}

} // namespace heddle::cpu
