// Winograd: a 3x3 convolution in transformed tiles of its images.

#include "compiler/mechanism/Checks.h"
#include "compiler/mechanism/Product.h"

using namespace mlir;

namespace heddle::mechanism {

using graph::DimVector;

static constexpr int64_t kMostApart = 1024; // no image makes tiles of pixels farther apart pay

/// One channels-last convolution of 3x3, every pixel, whose transform keeps f32's accuracy.
static Fit fitsWinograd(const Mechanism &, Ops ops, std::string &why) {
  if (Fit fit = checkPlainProduct(ops, why); fit != Fit::Full)
    return fit;
  for (Operation *op : ops) {
    if (isa<graph::MatmulOp>(op))
      return refuse(why, named(op) + " has no window");
    auto conv = dyn_cast<graph::ConvOp>(op);
    if (!conv)
      continue;
    DimVector w = graph::dimsOf(conv.getW());
    auto isOne = [](int64_t number) { return number == 1; };
    if (w.size() != 4 || !w[2].isConstant(3) || !w[3].isConstant(3))
      return refuse(why, "the window of " + named(op) + " is not 3x3");
    if (!llvm::all_of(conv.getStrides(), isOne))
      return refuse(why, named(op) + " has strides");
    if (!llvm::all_of(conv.getDilations(), [](int64_t d) { return d <= kMostApart; }))
      return refuse(why, named(op) + " has dilations of more than " + Twine(kMostApart));
    if (conv.getGroups() != 1)
      return refuse(why, named(op) + " has groups");
    if (!conv.getChannelsLast() || !graph::elementOf(conv.getX()).isF32())
      return refuse(why, named(op) + " is not of f32 with its channels last");
    if (!w[0].constant() || !w[1].constant())
      return refuse(why, "the filters of " + named(op) + " are known only at run time");
    if (w[0].isConstant(0) || w[1].isConstant(0))
      return refuse(why, named(op) + " has no channels");
    for (Value result : resultsOf(ops))
      if (graph::dimsOf(result) != graph::dimsOf(conv.getResult()))
        return refuse(why, "a result has another shape than the convolution's");
  }
  return Fit::Full;
}

static constexpr StringLiteral kKnobs[] = {"tile", "m", "n", "tiles", "late"};
const Mechanism kWinograd = {.name = "winograd",
                             .check = fitsWinograd,
                             .knobs = kKnobs,
                             .storesElements = true,
                             .readsParameters = true,
                             .takesThreads = true};

} // namespace heddle::mechanism
