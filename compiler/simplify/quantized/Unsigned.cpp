// Unsigned: activations of i8 become those of u8.
//
//   cast<i8>(min(max(y + z, -128), 127)) = cast<u8>(min(max(y + z + 128, 0), 255)) - 128
//
// Dot products of CPUs take a left side without a sign and a right side with one; a left side of
// the other sign is copied first. And a zero point of -128, which a quantiser gives values that are
// never negative, becomes 0: then there is no shift after a product, and a border of a convolution
// is one of zeros. A tensor that is also the right side of a product stays as it is.

#include "compiler/simplify/Passes.h"
#include "compiler/simplify/quantized/Operand.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

#define GEN_PASS_DEF_UNSIGNEDPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

constexpr double kShift = 128;

/// The sides of products that read a tensor, seen through its dequantisation and ops that move it.
struct Sides {
  bool hasLeft = false, hasRight = false;
};

/// Moves elements, or picks some of them by their order, whatever their type.
bool keepsElements(Operation *op) {
  auto pool = dyn_cast<PoolOp>(op);
  return isa<ReshapeOp, TransposeOp, SliceOp>(op) || (pool && pool.getKind() == "max");
}

void findSides(Value value, Sides &sides, int depth = 0) {
  constexpr int kMostDepth = 12;
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    if (isa<MatmulOp, ConvOp, ConvTransposeOp>(op))
      (use.getOperandNumber() == 0 ? sides.hasLeft : sides.hasRight) = true;
    else if ((isa<CastOp, SubOp, MulOp>(op) || keepsElements(op)) && depth < kMostDepth)
      findSides(op->getResult(0), sides, depth + 1);
  }
}

/// Whether all that read the tensor, where it was moved too, make integers of it.
bool isOnlyWidened(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    auto wide = dyn_cast<CastOp>(user);
    return (wide && elementOf(wide.getResult()).isSignlessInteger(32)) ||
           (keepsElements(user) && isOnlyWidened(user->getResult(0)));
  });
}

/// Replaces the result of `wide` by ops on `shifted` = wide + 128.
void replaceWide(CastOp wide, Value shifted) {
  OpBuilder builder(wide);
  for (Operation *user : llvm::make_early_inc_range(wide->getUsers())) {
    auto difference = dyn_cast<SubOp>(user);
    auto zero = difference && difference.getX() == wide.getResult() ? numberOf(difference.getY())
                                                                    : std::nullopt;
    if (!zero)
      continue;
    builder.setInsertionPoint(difference);
    Value centred = shifted;
    if (*zero + kShift != 0)
      centred = builder.create<SubOp>(difference.getLoc(), shifted,
                                      splatLike(builder, shifted, *zero + kShift));
    difference.replaceAllUsesWith(centred);
    difference.erase();
  }
  if (!wide->use_empty()) {
    builder.setInsertionPointAfterValue(shifted);
    Value centred =
        builder.create<SubOp>(wide.getLoc(), shifted, splatLike(builder, shifted, kShift));
    wide.replaceAllUsesWith(centred);
  }
  wide.erase();
}

/// Makes the readers of `value` read `shifted`, which is value + 128 without a sign.
void replaceReaders(Value value, Value shifted) {
  for (Operation *user : llvm::make_early_inc_range(value.getUsers())) {
    OpBuilder builder(user);
    if (auto wide = dyn_cast<CastOp>(user)) {
      replaceWide(wide, castTo(builder, shifted, builder.getI32Type()));
      continue;
    }
    Type type = tensorOf(user->getContext(), dimsOf(user->getResult(0)), elementOf(shifted));
    replaceReaders(user->getResult(0), rebuild(builder, user, shifted, type)->getResult(0));
    user->erase();
  }
}

void makeUnsigned(CastOp op, const Quantization &made) {
  OpBuilder builder(op);
  Location location = op.getLoc();
  Value x = made.rounded;
  if (*made.zero + kShift != 0)
    x = builder.create<AddOp>(location, x, splatLike(builder, x, *made.zero + kShift));
  x = builder.create<MaxOp>(location, x, splatLike(builder, x, 0));
  x = builder.create<MinOp>(location, x, splatLike(builder, x, 255));
  x = castTo(builder, x, IntegerType::get(op.getContext(), 8, IntegerType::Unsigned));
  replaceReaders(op.getResult(), x);
  op.erase();
}

struct UnsignedPass : impl::UnsignedPassBase<UnsignedPass> {
  void runOnOperation() override {
    // Pairs of one type first: they would have two.
    RewritePatternSet pairs(&getContext());
    pairs.add(quantisedOfDequantized);
    (void)applyRules(getOperation(), std::move(pairs));
    SmallVector<CastOp> casts;
    getOperation().walk([&](CastOp op) {
      if (elementOf(op.getResult()).isSignlessInteger(8))
        casts.push_back(op);
    });
    for (CastOp op : casts) {
      auto made = readQuantization(op);
      Sides sides;
      findSides(op.getResult(), sides);
      if (made && made->zero && sides.hasLeft && !sides.hasRight && isOnlyWidened(op.getResult()))
        makeUnsigned(op, *made);
    }
  }
};

} // namespace

} // namespace heddle::simplify
