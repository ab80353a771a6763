// Walk: a graph.scan from a function that makes one step.
#ifndef HEDDLE_ONNX_WALK_H
#define HEDDLE_ONNX_WALK_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

/// From the states and one slice of each scanned tensor: the next states, then what is stacked.
using Step = llvm::function_ref<llvm::SmallVector<Value>(llvm::ArrayRef<Value> states,
                                                         llvm::ArrayRef<Value> slices)>;

/// Walks along the first dimension of `scanned` (from its end if `reverse`): the final states,
/// then the stacked values. A step keeps the types of the states.
llvm::SmallVector<Value> walk(Emitter &e, llvm::ArrayRef<Value> states,
                              llvm::ArrayRef<Value> scanned, Step step, bool reverse = false);
/// x with `axis` moved to the front, or the front moved to `axis`.
Value axisToFront(Emitter &e, Value x, int64_t axis);
Value frontToAxis(Emitter &e, Value x, int64_t axis);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_WALK_H
