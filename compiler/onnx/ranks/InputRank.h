// InputRank: the rank of an input that the model declares without a shape.
#ifndef HEDDLE_ONNX_INPUTRANK_H
#define HEDDLE_ONNX_INPUTRANK_H

#include "compiler/onnx/Tensor.h"

#include <optional>

namespace heddle::onnx {

/// The only rank with which a node of the graph takes the input, where one says so: a convolution
/// with constant filters, a pool, a product that is one of matrices, a permutation. Looks through
/// nodes that keep ranks.
std::optional<size_t> rankByReaders(const proto::GraphProto &graph, llvm::StringRef input);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_INPUTRANK_H
