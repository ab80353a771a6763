// Walk: graph.scan, graph.loop and graph.if from functions that fill their regions.
#ifndef HEDDLE_ONNX_WALK_H
#define HEDDLE_ONNX_WALK_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

/// Maps the states and one slice of each scanned tensor to the next states, then the stacked
/// values.
using Step = llvm::function_ref<llvm::SmallVector<Value>(llvm::ArrayRef<Value> states,
                                                         llvm::ArrayRef<Value> slices)>;

/// Walks along the first dimension of `scanned` (from its end if `reverse`): the final states,
/// then the stacked values. A step keeps the types of the states.
llvm::SmallVector<Value> walk(Emitter &e, llvm::ArrayRef<Value> states,
                              llvm::ArrayRef<Value> scanned, Step step, bool reverse = false);
/// Maps the number of the iteration (an i64 scalar) and the states to the next states, and, if it
/// may end early, whether it goes on (an i1 scalar).
using Round =
    llvm::function_ref<llvm::SmallVector<Value>(Value iteration, llvm::ArrayRef<Value> states)>;

/// Repeats a step at most `count` times (an i64 scalar): the final states, whose types stay.
llvm::SmallVector<Value> repeat(Emitter &e, Value count, llvm::ArrayRef<Value> states, Round step);
/// make(axis) for the axis that the scalar `axis` names, which may be known only at run time. Sizes
/// that depend on the axis then are fresh symbols.
Value onAxis(Emitter &e, Value axis, int64_t rank, llvm::function_ref<Value(int64_t)> make);
/// x with `axis` moved to the front, or the front moved to `axis`.
Value axisToFront(Emitter &e, Value x, int64_t axis);
Value frontToAxis(Emitter &e, Value x, int64_t axis);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_WALK_H
