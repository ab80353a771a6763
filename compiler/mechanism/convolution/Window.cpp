// Window: a depthwise convolution or a pool, with channels in lanes.

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

/// Weights stay in code for all positions of a window.
static constexpr int64_t kMostTaps = 64;

/// Whether no sum of products of 8-bit integers with these weights leaves the integers of an f32.
static bool areSumsExact(graph::ConvOp conv, int64_t taps) {
  constexpr int64_t kExact = 1 << 24, kMostOfImage = 255;
  Type weights = graph::elementOf(conv.getW());
  if (!conv.getW().getDefiningOp<graph::ConstantOp>())
    return weights.isInteger(8) && kMostOfImage * kMostOfImage * taps <= kExact;
  auto numbers = graph::constantIntegers(conv.getW());
  if (!numbers)
    return false;
  int64_t largest = 0;
  for (int64_t number : *numbers)
    largest = std::max(largest, std::abs(number));
  return largest * kMostOfImage * taps <= kExact;
}

static bool checkConv(graph::ConvOp conv, bool isByte, std::string &why) {
  graph::DimVector w = graph::dimsOf(conv.getW());
  auto no = [&](const Twine &text) {
    refuse(why, text);
    return false;
  };
  if (!w[1].isConstant(1) || !w[0].isConstant(conv.getGroups()))
    return no(named(conv) + " has more than one channel per group");
  if (!conv.getChannelsLast())
    return no(named(conv) + " is not channels last");
  auto taps = graph::elementCount(ArrayRef<graph::Dim>(w).drop_front(2)).constant();
  if (!taps || *taps > kMostTaps)
    return no("the window of " + named(conv) + " is too large");
  if (isByte && !areSumsExact(conv, *taps))
    return no("sums of " + named(conv) + " may leave the integers of an f32");
  return true;
}

static bool checkPool(graph::PoolOp pool, std::string &why) {
  auto no = [&](const Twine &text) {
    refuse(why, text);
    return false;
  };
  if (!pool.getChannelsLast())
    return no(named(pool) + " is not channels last");
  if (pool.getCeilMode() && pool.getKind() != "max")
    return no("the last windows of " + named(pool) + " may end outside of its image");
  int64_t taps = 1;
  for (int64_t size : pool.getWindow())
    taps *= size;
  return taps <= kMostTaps || no("the window of " + named(pool) + " is too large");
}

static Fit fitsWindow(const Mechanism &, Ops ops, std::string &why) {
  Operation *window = nullptr;
  for (Operation *op : ops)
    if (isa<graph::PoolOp, graph::ConvOp>(op)) {
      if (window)
        return refuse(why, named(op) + " is a second window");
      window = op;
    } else if (isa<graph::BroadcastOp>(op) && llvm::any_of(op->getUsers(), [](Operation *user) {
                 return isa<graph::ConvOp, graph::PoolOp>(user);
               })) {
      return refuse(why, named(op) + " makes an operand of the window, which reads it often");
    } else if (!graph::isElementwise(op) && !isa<graph::BroadcastOp, graph::ConstantOp>(op)) {
      return refuse(why, named(op) + " is not computed element by element");
    }
  if (!window)
    return Fit::Partial;
  Value image = window->getOperand(0);
  if (image.getDefiningOp() && llvm::is_contained(ops, image.getDefiningOp()))
    return refuse(why,
                  "the image of " + named(window) + " is computed in the group, and is read often");
  auto conv = dyn_cast<graph::ConvOp>(window);
  Operation *filters = conv ? conv.getW().getDefiningOp() : nullptr;
  if (filters && !isa<graph::ConstantOp>(filters) && llvm::is_contained(ops, filters))
    return refuse(why, "the filters of " + named(window) +
                           " are computed in the group, and are read often");
  auto pool = dyn_cast<graph::PoolOp>(window);
  Type element = graph::elementOf(image);
  bool isByte = element.isInteger(8) &&
                (conv ? graph::elementOf(conv.getResult()).isInteger(32) : pool.getKind() == "max");
  if (!element.isF32() && !isByte)
    return refuse(why, "the element type of " + named(window) + " has no lanes");
  if (graph::rankOf(image) != 3 && graph::rankOf(image) != 4)
    return refuse(why, named(window) + " has more than two dimensions of space");
  if (conv ? !checkConv(conv, isByte, why) : !checkPool(pool, why))
    return Fit::No;
  for (Value result : resultsOf(ops))
    if (graph::dimsOf(result) != graph::dimsOf(window->getResult(0)))
      return refuse(why, "a result has another shape than the window's");
  return Fit::Full;
}

static constexpr StringLiteral kKnobs[] = {"pixels"};
const Mechanism kWindow = {.name = "window",
                           .check = fitsWindow,
                           .knobs = kKnobs,
                           .storesElements = true,
                           .hasTiles = false,
                           .takesThreads = true,
                           .takesParts = true,
                           .isSplittable = false};

} // namespace heddle::mechanism
