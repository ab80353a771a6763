// Seconds: see Seconds.h.

#include "compiler/estimate/Seconds.h"

#include "compiler/estimate/Traffic.h"
#include "compiler/graph/Typical.h"
#include "compiler/mechanism/Extents.h"
#include "compiler/mechanism/Product.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace heddle::estimate {

static constexpr double kCostly = 16; // operations of a function of the mathematical library
// Operations of rounding an element to bf16: seven of integers, of which a core begins more than
// twice as many in a cycle as the rate of other operations says.
static constexpr double kRounding = 3;

Work workOf(ArrayRef<Operation *> ops, ValueRange results,
            llvm::function_ref<double(const graph::Dim &)> valueOf) {
  Work work;
  SmallPtrSet<Operation *, 16> computed(ops.begin(), ops.end());
  llvm::SetVector<Value> moved(results.begin(), results.end());
  for (Operation *op : ops) {
    double flops = valueOf(flopsOf(op)) * (graph::isCostly(op) ? kCostly : 1);
    (graph::isContraction(op) ? work.products : work.others) += flops;
    for (Value operand : op->getOperands())
      if (!computed.contains(operand.getDefiningOp()))
        moved.insert(operand);
  }
  for (Value value : moved)
    work.bytes += valueOf(bytesOf(value));
  return work;
}

Work shortened(Work work, ArrayRef<Operation *> ops,
               llvm::function_ref<double(const graph::Dim &)> valueOf) {
  work.shorts = std::exchange(work.products, 0);
  llvm::SmallSetVector<Value, 4> factors;
  for (Operation *op : ops) {
    if (!graph::isContraction(op))
      continue;
    Value weights = weightsOf(op);
    factors.insert(op->getOperand(0));
    if (weights)
      work.bytes -= valueOf(bytesOf(weights)) / 2;
    else
      factors.insert(op->getOperand(1));
  }
  for (Value factor : factors)
    if (graph::elementOf(factor).isF32())
      work.others += kRounding * valueOf(graph::elementCount(graph::dimsOf(factor)));
  return work;
}

double secondsOf(const Work &work, const program::Machine &machine) {
  const program::Rates &rates = machine.rates;
  return rates.launch + std::max(work.products / rates.products + work.shorts / rates.shorts +
                                     work.matrices / rates.matrices + work.others / rates.others,
                                 work.bytes / rates.bytes);
}

static double estimateOf(graph::GroupOp group, const program::Machine &machine, bool isShort) {
  Block &body = group.getBody().front();
  auto ops = mechanism::opsOf(body);
  auto valueOf = [&](const graph::Dim &dim) {
    return static_cast<double>(graph::typicalSize(group, dim));
  };
  Work work = workOf(ops, body.getTerminator()->getOperands(), valueOf);
  return secondsOf(isShort ? shortened(work, ops, valueOf) : work, machine);
}

double secondsOf(graph::GroupOp group, const program::Machine &machine) {
  return estimateOf(group, machine, /*isShort=*/false);
}

double roofOf(graph::GroupOp group, const program::Machine &machine) {
  bool isOfHalves =
      group.deviceNumber() && llvm::any_of(group.getBody().getOps(), [](Operation &op) {
        return graph::isContraction(&op) && mechanism::factorsInThreads(&op, false);
      });
  return estimateOf(group, machine, group.isShort() || isOfHalves);
}

} // namespace heddle::estimate
