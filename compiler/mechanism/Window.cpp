// Window: a depthwise convolution or a pool, with channels in lanes.

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

static Fit fitsWindow(const Mechanism &, Ops ops, std::string &why) {
  Operation *window = nullptr;
  for (Operation *op : ops) {
    if (isa<graph::PoolOp, graph::ConvOp>(op)) {
      if (window)
        return refuse(why, named(op) + " is a second window");
      window = op;
    } else if (!isElementwise(op) && !isa<graph::BroadcastOp, graph::ConstantOp>(op)) {
      return refuse(why, named(op) + " is not computed element by element");
    } else if (window && isElementwise(op) &&
               graph::dimsOf(op->getResult(0)) != graph::dimsOf(window->getResult(0))) {
      return refuse(why, named(op) + " has another shape than the window's result");
    } else if (!window && isElementwise(op)) {
      return refuse(why, named(op) + " makes an operand of the window, which reads it often");
    }
  }
  return window ? Fit::Full : Fit::Partial;
}

static constexpr StringLiteral kKnobs[] = {"pixels"};
const Mechanism kWindow = {
    .name = "window", .check = fitsWindow, .knobs = kKnobs, .storesElements = true};

} // namespace heddle::mechanism
