// Caches: keys and values of past tokens that a model takes and gives, as generation runs it.
#ifndef HEDDLE_ONNX_CACHES_H
#define HEDDLE_ONNX_CACHES_H

#include "compiler/onnx/Tensor.h"

#include "llvm/ADT/StringMap.h"

namespace heddle::onnx {

struct Caches {
  struct Past {
    int64_t axis;     // of tokens
    bool isAsLong;    // as there are past tokens; else the model takes buffers of any capacity
    int extended = 0; // by so many nodes
  };
  llvm::StringMap<Past> pasts; // by the inputs that hold them
  llvm::DenseSet<const proto::NodeProto *> extenders;
  llvm::StringMap<std::string> presents; // inputs, by the outputs that are these and new tokens
};

/// Those that GroupQueryAttention and TensorScatter extend, whose past no other node reads, and
/// those that attention ops and a Concat of a past with what is new do, in `graph` itself.
Caches cachesOf(const proto::GraphProto &graph);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_CACHES_H
