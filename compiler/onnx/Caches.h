// Caches: keys and values of past tokens that a model takes and gives, as generation runs it.
#ifndef HEDDLE_ONNX_CACHES_H
#define HEDDLE_ONNX_CACHES_H

#include "compiler/onnx/Tensor.h"

#include "llvm/ADT/StringMap.h"

namespace heddle::onnx {

struct Caches {
  llvm::StringMap<int64_t> axes;         // of tokens, by the inputs that hold past ones
  llvm::StringMap<std::string> presents; // inputs, by the outputs that are these and new ones
};

/// Those that GroupQueryAttention and TensorScatter extend, in `graph` itself. Each past is read by
/// one node; a present is nothing but its result.
Caches cachesOf(const proto::GraphProto &graph);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_CACHES_H
