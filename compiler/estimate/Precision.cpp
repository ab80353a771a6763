// Precision: see Precision.h.

#include "compiler/estimate/Precision.h"

#include "compiler/estimate/Seconds.h"
#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Typical.h"
#include "compiler/mechanism/Extents.h"
#include "compiler/mechanism/Product.h"
#include "compiler/mechanism/attention/Attention.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace heddle::estimate {

/// A kind of product that threads compute with f32 alone; "" for any other.
static std::string whyNotInThreads(const mechanism::Mechanism &mechanism, mechanism::Ops ops) {
  std::string why;
  auto parts =
      &mechanism == &mechanism::kAttention ? mechanism::readAttention(ops, why) : std::nullopt;
  return parts && !mechanism::fitsFragments(*parts) ? "such attentions" : "";
}

std::string whyNotShort(const mechanism::Mechanism &mechanism, mechanism::Ops ops,
                        const program::Machine &machine) {
  if (machine.shortFloats == program::ShortFloats::None)
    return "the target multiplies no bf16; '--math bf16-emulated' computes such products with "
           "instructions of f32";
  if (machine.form == program::Form::Threads)
    if (std::string why = whyNotInThreads(mechanism, ops); !why.empty())
      return "device '" + machine.device + "' has no " + why + " of bf16";
  if (mechanism::roundsBlocks(ops) && !machine.hasMatrices)
    return "the target has no registers that hold matrices, without which rows that are rounded in "
           "blocks are faster as integers";
  return mechanism::whyNotShort(mechanism, ops);
}

static auto typicalSizes(graph::GroupOp group) {
  return [group](const graph::Dim &dim) {
    return static_cast<double>(graph::typicalSize(group, dim));
  };
}

/// Multiplications of whole registers, two operations each, and elements of rows that are packed
/// for them.
static std::pair<double, double>
matricesOf(ArrayRef<Operation *> ops, llvm::function_ref<double(const graph::Dim &)> valueOf) {
  constexpr double kRows = program::kMatrixSize, kDepth = 2 * kRows;
  auto whole = [](double size, double of) { return std::ceil(size / of) * of; };
  double operations = 0, packed = 0;
  for (Operation *op : llvm::make_filter_range(ops, graph::isContraction)) {
    mechanism::Extents extents = mechanism::extentsOfProduct(op);
    double rows = valueOf(extents.batches) * whole(valueOf(extents.rows), kRows);
    double depth = whole(valueOf(extents.depth), kDepth);
    operations += 2 * rows * depth * whole(valueOf(extents.columns), kRows);
    packed += rows * depth;
  }
  return {operations, packed};
}

static Precision compare(graph::GroupOp group, double exact, double rounded) {
  auto least = static_cast<double>(thresholdAt(group, kShortSaving));
  return {least == 0 || 100 * (exact - rounded) >= least * exact,
          llvm::formatv("a roofline gives it {0:f1} us with factors of bf16, and {1:f1} us with "
                        "those of f32",
                        1e6 * rounded, 1e6 * exact)};
}

Precision precisionOf(graph::GroupOp group, const program::Machine &machine) {
  Block &body = group.getBody().front();
  SmallVector<Operation *> ops = mechanism::opsOf(body);
  auto valueOf = typicalSizes(group);
  Work work = workOf(ops, body.getTerminator()->getOperands(), valueOf);
  return compare(group, secondsOf(work, machine),
                 secondsOf(shortened(work, ops, valueOf), machine));
}

Precision precisionOfMatrices(graph::GroupOp group, const program::Machine &machine, double share) {
  constexpr double kPacking = 0.5; // operations of an element, measured
  Block &body = group.getBody().front();
  SmallVector<Operation *> ops = mechanism::opsOf(body);
  auto valueOf = typicalSizes(group);
  Work exact = workOf(ops, body.getTerminator()->getOperands(), valueOf);
  Work rounded = shortened(exact, ops, valueOf);
  auto [operations, packed] = matricesOf(ops, valueOf);
  rounded.shorts = 0;
  rounded.matrices = operations;
  rounded.others += kPacking * packed;
  exact.products *= share;
  return compare(group, secondsOf(exact, machine), secondsOf(rounded, machine));
}

} // namespace heddle::estimate
