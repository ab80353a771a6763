// Serial: ops whose elements depend on each other in order, one task.

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

static Fit fitsSerial(const Mechanism &, Ops ops, std::string &why) {
  auto rest =
      llvm::make_filter_range(ops, [](Operation *op) { return !isa<graph::ConstantOp>(op); });
  bool isOne = llvm::hasSingleElement(rest) &&
               isa<graph::ScatterElementsOp, graph::ScatterNdOp>(*rest.begin());
  return isOne ? Fit::Full : refuse(why, "it is for one scatter alone");
}

const Mechanism kSerial = {.name = "serial", .check = fitsSerial};

} // namespace heddle::mechanism
