// FilterGradient: the gradient of a convolution's filters as sums of products over positions.

#include "compiler/mechanism/convolution/FilterGradient.h"

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

bool meetsOnePixel(graph::ConvFilterGradientOp op) {
  auto isOne = [](int64_t number) { return number == 1; };
  auto isZero = [](int64_t number) { return number == 0; };
  graph::DimVector w = graph::dimsOf(op.getResult());
  return llvm::all_of(op.getStrides(), isOne) && llvm::all_of(op.getLow(), isZero) &&
         llvm::all_of(op.getHigh(), isZero) &&
         llvm::all_of(ArrayRef(w).drop_front(2),
                      [](const graph::Dim &size) { return size.isConstant(1); });
}

static Fit fitsFilterGradient(const Mechanism &, Ops ops, std::string &why) {
  graph::ConvFilterGradientOp found;
  for (Operation *op : ops) {
    if (isa<graph::ConstantOp>(op))
      continue;
    auto gradient = dyn_cast<graph::ConvFilterGradientOp>(op);
    if (!gradient || found)
      return refuse(why, named(op) + " is computed beside the gradient of filters");
    found = gradient;
  }
  if (!found)
    return Fit::Partial;
  if (!graph::elementOf(found.getX()).isF32())
    return refuse(why, "the element type of " + named(found) + " has no lanes");
  if (!found.getChannelsLast() || graph::rankOf(found.getX()) > 5)
    return refuse(why, named(found) + " is not channels last, of 1 to 3 dimensions of space");
  for (const graph::Dim &size : graph::dimsOf(found.getResult()))
    if (size.constant().value_or(0) < 1)
      return refuse(why, "the sizes of the filters of " + named(found) + " are not known, or 0");
  return Fit::Full;
}

static constexpr StringLiteral kKnobs[] = {"m",      "n",      "parts", "chunks",
                                           "strips", "panels", "turned"};
const Mechanism kFilterGradient = {
    .name = "filter_gradient", .check = fitsFilterGradient, .knobs = kKnobs, .takesThreads = true};

} // namespace heddle::mechanism
