// Serial: ops whose elements depend on each other in order, one task.

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

static Fit fitsSerial(const Mechanism &, Ops ops, std::string &why) {
  bool isOne = ops.size() == 1 && isa<graph::ScatterElementsOp, graph::ScatterNdOp>(ops.front());
  return isOne ? Fit::Full : refuse(why, "it is for one scatter alone");
}

const Mechanism kSerial = {.name = "serial", .check = fitsSerial};

} // namespace heddle::mechanism
