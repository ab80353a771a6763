// NarrowConv: a convolution of few filters, the reduction in lanes.

#include "compiler/mechanism/Checks.h"
#include "compiler/mechanism/Product.h"

using namespace mlir;

namespace heddle::mechanism {

/// One channels-last convolution of f32 whose number of filters is known.
static Fit fitsNarrow(const Mechanism &, Ops ops, std::string &why) {
  if (Fit fit = checkPlainProduct(ops, why); fit != Fit::Full)
    return fit;
  for (Operation *op : ops) {
    if (isa<graph::MatmulOp>(op))
      return refuse(why, named(op) + " has no filters");
    auto conv = dyn_cast<graph::ConvOp>(op);
    if (!conv)
      continue;
    if (conv.getGroups() != 1)
      return refuse(why, named(op) + " has groups");
    if (!conv.getChannelsLast() || !graph::elementOf(conv.getX()).isF32())
      return refuse(why, named(op) + " is not of f32 with its channels last");
    graph::DimVector w = graph::dimsOf(conv.getW());
    if (!w[0].constant())
      return refuse(why, "the filters of " + named(op) + " are known only at run time");
    if (!w[1].constant() || w[1].isConstant(0))
      return refuse(why, named(op) + " has no channels");
  }
  return readProduct(ops, resultsOf(ops), why) ? Fit::Full : Fit::No;
}

static constexpr StringLiteral kKnobs[] = {"m", "tiles"};
const Mechanism kNarrowConv = {.name = "narrow",
                               .check = fitsNarrow,
                               .knobs = kKnobs,
                               .storesElements = true,
                               .readsParameters = true,
                               .takesThreads = true};

} // namespace heddle::mechanism
