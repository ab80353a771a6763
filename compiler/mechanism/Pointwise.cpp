// Pointwise: every output element on its own.

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

/// All that has elements which can be computed one at a time, in any order.
static Fit fitsPointwise(const Mechanism &, Ops ops, std::string &why) {
  for (Operation *op : ops)
    if (graph::isScatter(op))
      return refuse(why, named(op) + " writes its elements in order");
  return Fit::Full;
}

static constexpr StringLiteral kKnobs[] = {"chunk"};
const Mechanism kPointwise = {.name = "pointwise",
                              .check = fitsPointwise,
                              .knobs = kKnobs,
                              .sharing = kKnobs,
                              .storesElements = true,
                              .hasTiles = false,
                              .takesBlocks = true,
                              .takesThreads = true,
                              .takesParts = true,
                              .isSplittable = false};

} // namespace heddle::mechanism
