// Halves: floats of 16 bits are computed as f32, and rounded where they leave: as results of the
// model, in lists, loops and branches, and where the model itself casts to them.
//
//   conv(x, w) : f16   =>   cast(conv(cast x, cast w) : f32) : f16
//
// Between ops of f16 nothing is cast, so sums and chains are more exact than the model asks for,
// and a value beyond f16's range stays finite: `--math strict` does without. CPUs without
// arithmetic of 16 bits would cast before and after each op. What is written to an input of f16
// stays f16, so that it can be written where that lies. Casts with which the importer ends an
// op that it computes in f32 round nothing here either.

#include "compiler/graph/edit/Rounding.h"
#include "compiler/simplify/Passes.h"
#include "compiler/simplify/Rewriting.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

#define GEN_PASS_DEF_HALVESPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

bool isHalf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && (tensor.getElementType().isF16() || tensor.getElementType().isBF16());
}

Type widened(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.clone(Float32Type::get(type.getContext()));
}

/// Writes to an input, and reads of what was written that only move it.
bool isStored(Operation *op) {
  if (auto scatter = dyn_cast_or_null<ScatterNdOp>(op))
    return scatter.getReduction() == "none" && isa<BlockArgument>(scatter.getX());
  return op && (isRearrangement(op) || isa<SliceOp>(op)) &&
         isStored(op->getOperand(0).getDefiningOp());
}

/// Rows of a table of weights, which as f32 would take twice the memory.
bool readsTable(Operation *op) {
  auto gather = dyn_cast<GatherOp>(op);
  return gather && gather.getX().getDefiningOp<ConstantOp>();
}

/// Ops whose types something else holds on to, and those that say themselves what is rounded.
bool keepsTypes(Operation *op) {
  return isStored(op) || readsTable(op) || !isa<GraphDialect>(op->getDialect()) ||
         op->getNumRegions() > 0 || bindsSizes(op) ||
         (op->hasTrait<Hosted>() && !op->hasTrait<Routine>()) ||
         op->hasTrait<OpTrait::IsTerminator>() || isa<ConstantOp, CastOp, BitcastOp>(op);
}

struct HalvesPass : impl::HalvesPassBase<HalvesPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      auto isAny = [](TypeRange types) { return llvm::any_of(types, isHalf); };
      if (isAny(op->getOperandTypes()) || isAny(op->getResultTypes()))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (auto cast = dyn_cast<CastOp>(op); cast && cast->hasAttr(kOwnRounding))
        wideOnes[cast.getResult()] = cast.getX();
      else if (cast)
        readWide(cast);
      else if (!keepsTypes(op))
        widen(op);
    for (Operation *op : llvm::reverse(ops))
      if (isOpTriviallyDead(op))
        op->erase();
  }

private:
  /// The value as f32: what it was rounded from, where it was.
  Value wideOf(Value value) {
    Value &wide = wideOnes[value];
    if (!wide) {
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(value);
      wide = builder.create<CastOp>(value.getLoc(), widened(value.getType()), value);
    }
    return wide;
  }

  /// Makes a cast read the value before rounding.
  void readWide(CastOp cast) {
    auto known = wideOnes.find(cast.getX());
    if (known == wideOnes.end())
      return;
    if (cast.getType() == known->second.getType())
      cast.getResult().replaceAllUsesWith(known->second);
    else if (!isHalf(cast.getType()))
      cast.getXMutable().assign(known->second);
  }

  void widen(Operation *op) {
    OpBuilder builder(op);
    IRMapping mapping;
    for (Value operand : op->getOperands())
      if (isHalf(operand.getType()))
        mapping.map(operand, wideOf(operand));
    Operation *wide = builder.clone(*op, mapping);
    if (isContraction(op) && elementOf(op->getOperand(0)) == elementOf(op->getOperand(1)))
      wide->setAttr(kFactors, TypeAttr::get(elementOf(op->getOperand(0))));
    for (auto [narrow, result] : llvm::zip(op->getResults(), wide->getResults())) {
      if (!isHalf(narrow.getType())) {
        narrow.replaceAllUsesWith(result);
        continue;
      }
      result.setType(widened(narrow.getType()));
      Value rounded = builder.create<CastOp>(op->getLoc(), narrow.getType(), result);
      narrow.replaceAllUsesWith(rounded);
      wideOnes[rounded] = result;
    }
  }

  DenseMap<Value, Value> wideOnes;
};

} // namespace

} // namespace heddle::simplify
