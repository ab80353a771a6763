// DeviceRule: see DeviceRule.h.

#include "compiler/plan/DeviceRule.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Typical.h"
#include "compiler/graph/ragged/Ragged.h"
#include "compiler/mechanism/Product.h"
#include "compiler/mechanism/attention/Attention.h"

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

/// Whether the group's mechanism has code for its numbers and sizes.
static bool hasCode(graph::GroupOp group, const mechanism::Mechanism &mechanism) {
  bool isRagged = false;
  group.walk([&](Operation *op) { isRagged |= !graph::rowsOf(op).empty(); });
  if (isRagged || hasLongFunction(group))
    return false;
  auto ops = mechanism::opsOf(group.getBody().front());
  if (&mechanism == &mechanism::kAttention) {
    std::string why;
    auto parts = mechanism::readAttention(ops, why);
    return parts && mechanism::fitsBlocks(*parts);
  }
  return &mechanism != &mechanism::kStitch || !mechanism::roundsBlocks(ops);
}

static bool isForDevice(graph::GroupOp group) {
  const mechanism::Mechanism *mechanism = mechanism::of(group);
  return mechanism && mechanism->takesThreads && hasCode(group, *mechanism) &&
         elementsOf(group) >= estimate::thresholdAt(group, estimate::kDeviceElements);
}

/// The first card that is offered for this device.
static const warehouse::Card *cardOf(ArrayRef<warehouse::Offer> offers,
                                     const program::Machine &device) {
  auto found = llvm::find_if(offers, [&](const warehouse::Offer &offer) {
    return offer.isOffered() && offer.card->target == device.device;
  });
  return found == offers.end() ? nullptr : found->card;
}

llvm::Expected<Choice> DeviceChooser::choose(graph::GroupOp group,
                                             ArrayRef<warehouse::Offer> offers,
                                             const program::Machine &machine) {
  auto preferred = llvm::find_if(machine.others, [](auto &device) { return device.isPreferred; });
  if (preferred == machine.others.end() || !isForDevice(group)) {
    std::vector<warehouse::Offer> ofHost(offers.begin(), offers.end());
    llvm::erase_if(ofHost, [](const warehouse::Offer &offer) { return offer.card->isOfThreads(); });
    return choices.choose(group, ofHost, machine);
  }
  Choice choice;
  choice.device = 1 + (preferred - machine.others.begin());
  choice.card = cardOf(offers, *preferred);
  if (choice.card)
    for (const warehouse::Knob &knob : choice.card->knobs)
      choice.knobs[knob.name] = knob.initial;
  if (mayBeShort && llvm::any_of(mechanism::opsOf(group.getBody().front()), graph::isContraction))
    choosePrecision(choice, group, machine);
  return choice;
}

} // namespace heddle::plan
