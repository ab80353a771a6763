// Precision: see Precision.h.

#include "compiler/estimate/Precision.h"

#include "compiler/estimate/Seconds.h"
#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Typical.h"
#include "compiler/mechanism/Product.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace heddle::estimate {

std::string whyNotShort(const mechanism::Mechanism &mechanism, mechanism::Ops ops,
                        const program::Machine &machine) {
  if (machine.shortFloats == program::ShortFloats::None)
    return "the target multiplies no bf16; '--math bf16-emulated' computes such products with "
           "instructions of f32";
  return mechanism::whyNotShort(mechanism, ops);
}

Precision precisionOf(graph::GroupOp group, const program::Machine &machine) {
  Block &body = group.getBody().front();
  SmallVector<Operation *> ops = mechanism::opsOf(body);
  auto valueOf = [&](const graph::Dim &dim) {
    return static_cast<double>(graph::typicalSize(group, dim));
  };
  Work work = workOf(ops, body.getTerminator()->getOperands(), valueOf);
  double exact = secondsOf(work, machine);
  double rounded = secondsOf(shortened(work, ops, valueOf), machine);
  auto least = static_cast<double>(thresholdAt(group, kShortSaving));
  return {least == 0 || 100 * (exact - rounded) >= least * exact,
          llvm::formatv("a roofline gives it {0:f1} us with factors of bf16, and {1:f1} us with "
                        "those of f32",
                        1e6 * rounded, 1e6 * exact)};
}

} // namespace heddle::estimate
