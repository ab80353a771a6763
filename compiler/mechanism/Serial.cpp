// Serial: ops whose elements depend on each other in order.

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

/// Whether the op is one number everywhere.
static bool isFill(Operation *op) {
  return isa<graph::BroadcastOp>(op) &&
         llvm::all_of(graph::dimsOf(op->getOperand(0)),
                      [](const graph::Dim &dim) { return dim.isConstant(1); });
}

/// One scatter, where the number is that its result begins with may be in the group too.
static Fit fitsSerial(const Mechanism &, Ops ops, std::string &why) {
  Operation *scatter = nullptr;
  for (Operation *op : ops)
    if (graph::isScatter(op)) {
      if (scatter)
        return refuse(why, "it is for one scatter alone");
      scatter = op;
    }
  if (!scatter)
    return refuse(why, "it is for one scatter alone");
  for (Operation *op : ops)
    if (op != scatter && !isa<graph::ConstantOp>(op) &&
        !(isFill(op) && op == scatter->getOperand(0).getDefiningOp() && op->hasOneUse()))
      return refuse(why, named(op) + " is no number that the scatter's result begins with");
  return Fit::Full;
}

const Mechanism kSerial = {.name = "serial",
                           .check = fitsSerial,
                           .hasTiles = false,
                           .takesThreads = true,
                           .isSplittable = false};

} // namespace heddle::mechanism
