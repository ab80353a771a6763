// Unfolded: what a quantised model dequantises and then computes with all the same, and why.
//
// The rules of this folder read the ops that importers make of quantised tensors, and refuse what
// they cannot carry out; the same readers tell the reasons here. It runs twice: before constants
// are folded, since a folded weight no longer shows that it was quantised, and at the end, when
// what later rules could do after all is struck off. The module keeps the list.

#include "compiler/simplify/Passes.h"
#include "compiler/simplify/quantized/Operand.h"

#include <set>

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

#define GEN_PASS_DEF_UNFOLDEDPASS
#include "compiler/simplify/Passes.h.inc"

/// The axis of the right side along which its scale may differ.
static int64_t columnsOf(Operation *product) {
  if (isa<MatmulOp>(product))
    return rankOf(product->getOperand(1)) - 1;
  return isa<ConvTransposeOp>(product) ? 1 : 0;
}

/// The axis of the result that is that one.
static int64_t resultAxis(Operation *product) {
  auto conv = dyn_cast<ConvOp>(product);
  auto transposed = dyn_cast<ConvTransposeOp>(product);
  bool isFirst = (conv && !conv.getChannelsLast()) || (transposed && !transposed.getChannelsLast());
  return isFirst ? 1 : rankOf(product->getResult(0)) - 1;
}

/// Whether a transposed convolution stays one (TransposedConv.cpp).
static bool staysTransposed(Operation *product, Value filters) {
  auto op = dyn_cast<ConvTransposeOp>(product);
  return op && (!isConstant(filters) || !hasPhases(op));
}

/// Along which axis a side's scale or zero point may not differ, but does.
static std::string variation(const QuantizedOperand &side, int64_t allowed) {
  bool isScale = side.scaleAxis != QuantizedOperand::kUniform && side.scaleAxis != allowed;
  return (isScale ? "a scale that differs along axis " : "a zero point that differs along axis ") +
         std::to_string(isScale ? side.scaleAxis : side.zeroAxis);
}

/// Why not both sides were read.
static std::string whyNotBoth(Operation *product, bool hasLeft, const std::string &whyLeft,
                              const std::string &whyRight) {
  Value left = product->getOperand(0), right = product->getOperand(1);
  if (!whyLeft.empty())
    return nameOf(left) + " " + whyLeft;
  if (!whyRight.empty())
    return nameOf(right) + " " + whyRight;
  return nameOf(hasLeft ? right : left) + " is not quantised, but the other side is";
}

std::optional<QuantizedSides> readSides(Operation *product, std::string *why) {
  Value left = product->getOperand(0), right = product->getOperand(1);
  std::string whyLeft, whyRight;
  auto a = readDequantized(left, &whyLeft), b = readDequantized(right, &whyRight);
  if (!a && !b && whyLeft.empty() && whyRight.empty())
    return std::nullopt;
  int64_t columns = columnsOf(product);
  if (!a || !b)
    refuse(why, whyNotBoth(product, a.has_value(), whyLeft, whyRight));
  else if (staysTransposed(product, b->x))
    refuse(why, "a transposed convolution of groups, of dilations or of filters that the run "
                "computes is not computed with integers");
  else if (!a->isUniform())
    refuse(why, nameOf(left) + " has " + variation(*a, QuantizedOperand::kUniform) +
                    "; the left side of a product may have only one");
  else if (!b->variesAlong(columns))
    refuse(why, nameOf(right) + " has " + variation(*b, columns) + "; it may do so only along " +
                    Twine(columns) + ", as the result does");
  else if (!elementOf(product->getResult(0)).isF32())
    refuse(why, "its result is not of f32");
  else
    return QuantizedSides{*a, *b, resultAxis(product)};
  return std::nullopt;
}

/// Why an integer product is still one of i32.
static std::string whyWide(Operation *product) {
  std::string whyLeft, whyRight;
  auto a = readCentred(product->getOperand(0), &whyLeft);
  Value right = product->getOperand(1);
  auto b = readCentred(right, &whyRight);
  if (!a && !b && whyLeft.empty() && whyRight.empty())
    return "";
  const char *cost = ", so it is computed with integers of 32 bits";
  if (isa<ConvOp>(product) && b)
    return "its filters are computed by the run" + std::string(cost);
  if (!whyLeft.empty() || !whyRight.empty())
    return whyNotBoth(product, a.has_value(), whyLeft, whyRight) + cost;
  if (a && !a->isUniform())
    return nameOf(product->getOperand(0)) + " has " + variation(*a, QuantizedOperand::kUniform) +
           cost;
  if (b && !b->variesAlong(columnsOf(product)))
    return nameOf(right) + " has " + variation(*b, columnsOf(product)) + cost;
  return "one side is of 8 bits, and the other of more than 16" + std::string(cost);
}

/// The reason why an op is not folded; empty if it computes with quantised values, or with none
/// that ever were.
static std::string whyUnfolded(Operation *op, bool isLast) {
  std::string why;
  if (isa<ConvOp, MatmulOp, ConvTransposeOp>(op)) {
    if (!elementOf(op->getOperand(0)).isSignlessInteger(32))
      (void)readSides(op, &why);
    else if (isLast)
      why = whyWide(op);
    return why;
  }
  if (auto pool = dyn_cast<PoolOp>(op); pool && pool.getKind() == "max")
    (void)readPooled(pool, &why);
  else if (auto cast = dyn_cast<CastOp>(op))
    (void)readRequantized(cast, &why);
  if (!why.empty())
    why = "what it reads " + why;
  return why;
}

/// Whether an op of this kind may be what a reason was given for.
static bool mayBeUnfolded(Operation *op) {
  Type element = op->getNumOperands() > 0 && isa<RankedTensorType>(op->getOperand(0).getType())
                     ? elementOf(op->getOperand(0))
                     : Type();
  return element && isa<FloatType>(element) &&
         (op->hasTrait<SumsProducts>() || isa<PoolOp, CastOp>(op));
}

namespace {

struct UnfoldedPass : impl::UnfoldedPassBase<UnfoldedPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto before = module->getAttrOfType<ArrayAttr>(kUnfolded);
    std::set<std::string> floats, told;
    module.walk([&](Operation *op) {
      if (mayBeUnfolded(op))
        floats.insert(sourceName(op->getLoc()));
    });
    SmallVector<Attribute> list;
    for (Attribute entry : before ? before.getValue() : ArrayRef<Attribute>()) {
      std::string node = cast<DictionaryAttr>(entry).getAs<StringAttr>("node").str();
      if (floats.count(node) && told.insert(node).second)
        list.push_back(entry);
    }
    Builder builder(&getContext());
    module.walk([&](Operation *op) {
      std::string why = whyUnfolded(op, before != nullptr), node = sourceName(op->getLoc());
      if (why.empty() || !told.insert(node).second)
        return;
      auto text = [&](StringRef name, const Twine &value) {
        return builder.getNamedAttr(name, builder.getStringAttr(value));
      };
      list.push_back(builder.getDictionaryAttr(
          {text("node", node), text("op", op->getName().stripDialect()), text("why", why)}));
    });
    module->setAttr(kUnfolded, builder.getArrayAttr(list));
  }
};

} // namespace

} // namespace heddle::simplify
