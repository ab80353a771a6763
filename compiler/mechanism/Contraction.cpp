// Contraction: a product in register tiles, with what follows it element by element.

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

/// One product; behind it elementwise ops of its shape, before it a transpose of its right operand.
static Fit fitsContraction(const Mechanism &, Ops ops, std::string &why) {
  Operation *product = nullptr;
  for (Operation *op : ops)
    if (isa<graph::MatmulOp, graph::ConvOp>(op)) {
      if (product)
        return refuse(why, named(op) + " is a second product");
      product = op;
    }
  for (Operation *op : ops) {
    if (op == product || isa<graph::BroadcastOp, graph::ConstantOp>(op))
      continue;
    bool isTransposedRight = isa<graph::TransposeOp>(op) &&
                             isa_and_nonnull<graph::MatmulOp>(product) &&
                             llvm::all_of(op->getUses(), [&](OpOperand &use) {
                               return use.getOwner() == product && use.getOperandNumber() == 1;
                             });
    if (isTransposedRight)
      continue;
    if (!isElementwise(op))
      return refuse(why, named(op) + " is not computed element by element");
    if (product && graph::dimsOf(op->getResult(0)) != graph::dimsOf(product->getResult(0)))
      return refuse(why, named(op) + " has another shape than the product");
    if (product && llvm::is_contained(product->getOperands(), op->getResult(0)))
      return refuse(why, named(op) + " makes an operand of the product, which reads it often");
  }
  return product ? Fit::Full : Fit::Partial;
}

static constexpr StringLiteral kKnobs[] = {"m", "n", "panels", "tiles"};
const Mechanism kContraction = {
    .name = "contraction", .check = fitsContraction, .knobs = kKnobs, .storesElements = true};

} // namespace heddle::mechanism
