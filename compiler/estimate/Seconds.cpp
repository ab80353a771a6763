// Seconds: see Seconds.h.

#include "compiler/estimate/Seconds.h"

#include "compiler/estimate/Traffic.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace heddle::estimate {

static constexpr double kCostly = 16; // operations of a function of the mathematical library

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

double secondsOf(const Work &work, const program::Machine &machine) {
  const program::Rates &rates = machine.rates;
  return rates.launch + std::max(work.products / rates.products + work.others / rates.others,
                                 work.bytes / rates.bytes);
}

} // namespace heddle::estimate
