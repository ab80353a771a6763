// DeviceRule: see DeviceRule.h.

#include "compiler/plan/DeviceRule.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Typical.h"
#include "compiler/graph/ragged/Ragged.h"

using namespace mlir;

namespace heddle::plan {

/// Elements of the largest tensor that the group reads or makes.
static int64_t elementsOf(graph::GroupOp group) {
  int64_t most = 0;
  group.walk([&](Operation *op) {
    for (Value value : op->getOperands())
      if (isa<RankedTensorType>(value.getType()))
        most = std::max(most, graph::typicalSize(group, graph::elementCount(graph::dimsOf(value))));
  });
  return most;
}

/// Functions of f64 are of libm, which no device has; those of narrower floats are polynomials, but
/// for sin, cos and tan, whose large angles are of f64.
static bool hasLongFunction(graph::GroupOp group) {
  static constexpr StringLiteral functions[] = {
      "acos",  "acosh", "asin",  "asinh", "atan",    "atanh", "cos",  "cosh", "erf", "exp",
      "expm1", "log",   "log1p", "pow",   "sigmoid", "sin",   "sinh", "tan",  "tanh"};
  auto found = group.walk([&](Operation *op) {
    bool isLong = llvm::any_of(op->getResultTypes(),
                               [](Type type) { return getElementTypeOrSelf(type).isF64(); });
    StringRef name = op->getName().stripDialect();
    bool hasAngles = name == "sin" || name == "cos" || name == "tan";
    return hasAngles || (isLong && llvm::is_contained(functions, name)) ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
  });
  return found.wasInterrupted();
}

static bool isForDevice(graph::GroupOp group) {
  const mechanism::Mechanism *mechanism = mechanism::of(group);
  if (!mechanism || !mechanism->takesThreads || hasLongFunction(group))
    return false;
  bool isRagged = false;
  group.walk([&](Operation *op) { isRagged |= !graph::rowsOf(op).empty(); });
  return !isRagged && elementsOf(group) >= estimate::thresholdAt(group, estimate::kDeviceElements);
}

llvm::Expected<Choice> DeviceChooser::choose(graph::GroupOp group,
                                             ArrayRef<warehouse::Offer> offers,
                                             const program::Machine &machine) {
  auto preferred = llvm::find_if(machine.others, [](auto &device) { return device.isPreferred; });
  if (preferred == machine.others.end() || !isForDevice(group))
    return choices.choose(group, offers, machine);
  Choice choice;
  choice.device = 1 + (preferred - machine.others.begin());
  return choice;
}

} // namespace heddle::plan
