// Random: numbers that a seed and the place of an element determine, so that a run can be repeated.
#ifndef HEDDLE_ONNX_RANDOM_H
#define HEDDLE_ONNX_RANDOM_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// A ui32 of the attribute 'seed', or else a hash of the name of the node's first result, and of
/// the run's own seed.
Value seedOf(Node &n);
/// Uniform in [0, 1), f32 or f64. Streams of one seed are independent.
Value uniform(Emitter &e, llvm::ArrayRef<Dim> dims, Type element, Value seed, uint32_t stream);
/// Normal with mean 0 and deviation 1 (Box and Muller).
Value normal(Emitter &e, llvm::ArrayRef<Dim> dims, Type element, Value seed);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_RANDOM_H
