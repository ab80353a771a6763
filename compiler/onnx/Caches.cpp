// Caches: found by the nodes that extend them.

#include "compiler/onnx/Caches.h"

#include "llvm/ADT/StringSet.h"

namespace heddle::onnx {

namespace {
/// Operands and results of a node that are a past and its present.
struct Pair {
  int past, present;
};
} // namespace

static llvm::SmallVector<Pair> pairsOf(const proto::NodeProto &node) {
  if (node.op_type() == "GroupQueryAttention" && node.domain() == "com.microsoft")
    return {{3, 1}, {4, 2}};
  if (node.op_type() == "TensorScatter" && node.domain().empty())
    return {{0, 0}};
  return {};
}

/// The axis of tokens: the last but one, or what TensorScatter says.
static int64_t axisOf(const proto::NodeProto &node, int64_t rank) {
  for (const auto &attribute : node.attribute())
    if (node.op_type() == "TensorScatter" && attribute.name() == "axis")
      return attribute.i() < 0 ? attribute.i() + rank : attribute.i();
  return rank - 2;
}

Caches cachesOf(const proto::GraphProto &graph) {
  llvm::StringMap<int64_t> ranks, reads;
  llvm::StringSet<> outputs;
  for (const auto &input : graph.input())
    if (input.type().tensor_type().has_shape())
      ranks[input.name()] = input.type().tensor_type().shape().dim_size();
  for (const auto &output : graph.output())
    outputs.insert(output.name());
  for (const auto &node : graph.node())
    for (const std::string &name : node.input())
      ++reads[name];
  Caches caches;
  for (const auto &node : graph.node())
    for (auto [past, present] : pairsOf(node)) {
      if (past >= node.input_size() || !ranks.contains(node.input(past)))
        continue;
      const std::string &input = node.input(past);
      int64_t rank = ranks.lookup(input), axis = axisOf(node, rank);
      if (reads.lookup(input) != 1 || outputs.contains(input) || axis < 1 || axis >= rank)
        continue;
      caches.axes[input] = axis;
      if (present < node.output_size() && outputs.contains(node.output(present)))
        caches.presents[node.output(present)] = input;
    }
  return caches;
}

} // namespace heddle::onnx
