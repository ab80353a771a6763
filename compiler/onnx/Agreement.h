// Agreement: sizes that two operands of a node give, and in which they have to agree.
#ifndef HEDDLE_ONNX_AGREEMENT_H
#define HEDDLE_ONNX_AGREEMENT_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

/// The one size that x and y are, the constant one if either is. Refuses the node where both are
/// known and differ, else has the run check it; `message` has %lld for x and for y.
Dim agreed(Emitter &e, const Dim &x, const Dim &y, llvm::StringRef message);

/// Has the run check that x is at most y; `message` has %lld for x and for y.
void requireAtMost(Emitter &e, const Dim &x, const Dim &y, llvm::StringRef message);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_AGREEMENT_H
