// NarrowRule: the times of a pixel of all filters in multiply-adds of a vector
// (bench/notes/2026-11-21-kernels.md).
//
//     filters in lanes     window in
//     reduction in lanes   filters (vectors of the reduction + s)
//
// s is what the sum over the lanes of an accumulator costs. Estimates are at or below what is
// gained; what is about as fast is left to filters in lanes.

#include "compiler/plan/NarrowRule.h"

namespace heddle::plan {

namespace {
constexpr double kLaneSum = 4, kGain = 1.15;
} // namespace

std::optional<double> narrowCost(graph::ConvOp conv, const program::Machine &machine) {
  graph::DimVector w = graph::dimsOf(conv.getW());
  auto filters = w[0].constant(), terms = graph::elementCount(w).constant();
  if (!filters || !terms || *filters < 1 || *terms < 1 || *filters > machine.lanes)
    return std::nullopt;
  *terms /= *filters;
  int64_t run = *w[1].constant(); // contiguous elements of the image
  if (conv.getDilations().back() == 1)
    run *= *w.back().constant();
  auto vectors = static_cast<double>(*terms / run * llvm::divideCeil(run, machine.lanes));
  double cost = static_cast<double>(*filters) * (vectors + kLaneSum);
  return cost * kGain > static_cast<double>(*terms) ? std::nullopt : std::optional(cost);
}

int64_t narrowPixels(graph::ConvOp conv, const program::Machine &machine) {
  if (!narrowCost(conv, machine))
    return 0;
  int64_t filters = *graph::dimsOf(conv.getW())[0].constant();
  // Accumulators, an element of the smaller operand and all of the other one fit the registers.
  int64_t pixels = 1;
  while ((pixels + 1) * filters + std::min(pixels + 1, filters) + 1 <= machine.registers)
    ++pixels;
  return pixels;
}

} // namespace heddle::plan
