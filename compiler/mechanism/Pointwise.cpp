// Pointwise: every output element on its own.

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

static Fit fitsPointwise(const Mechanism &, Ops ops, std::string &why) {
  for (Operation *op : ops)
    if (!isElementwise(op) && !isFree(op))
      return refuse(why, named(op) + " is not computed element by element");
  return Fit::Full;
}

static constexpr StringLiteral kKnobs[] = {"chunk"};
const Mechanism kPointwise = {
    .name = "pointwise", .check = fitsPointwise, .knobs = kKnobs, .storesElements = true};

} // namespace heddle::mechanism
