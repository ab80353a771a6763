// Caches: found by the nodes that extend them.

#include "compiler/onnx/Caches.h"

#include "llvm/ADT/StringSet.h"

namespace heddle::onnx {

namespace {
/// Operand and result of a node that are a past and its present.
struct Pair {
  int past, present;
  bool isAsLong = false;
};

struct Extenders {
  const char *op, *domain;
  std::vector<Pair> pairs;
};
} // namespace

static llvm::ArrayRef<Pair> pairsOf(const proto::NodeProto &node) {
  static const std::vector<Extenders> known = {
      {"GroupQueryAttention", "com.microsoft", {{3, 1}, {4, 2}}},
      {"TensorScatter", "", {{0, 0}}},
      {"MultiHeadAttention", "com.microsoft", {{6, 1, true}, {7, 2, true}}},
      {"Attention", "", {{4, 1, true}, {5, 2, true}}},
      {"Concat", "", {{0, 0, true}}}};
  for (const auto &[op, domain, pairs] : known)
    if (node.op_type() == op && node.domain() == domain &&
        (node.op_type() != "Concat" || node.input_size() == 2))
      return pairs;
  return {};
}

/// The axis of tokens: what the node says, or the last but one.
static int64_t axisOf(const proto::NodeProto &node, int64_t rank) {
  for (const auto &attribute : node.attribute())
    if (attribute.name() == "axis")
      return attribute.i() < 0 ? attribute.i() + rank : attribute.i();
  return rank - 2;
}

/// The node gives its only input as it is.
static bool isIdentity(const proto::NodeProto &node) {
  return node.domain().empty() && node.input_size() == 1 && node.output_size() == 1 &&
         (node.op_type() == "Identity" || node.op_type() == "Concat");
}

/// Counts reads of names by nodes and by the graphs in them.
static void countReads(const proto::GraphProto &graph, llvm::StringMap<int64_t> &reads) {
  for (const auto &node : graph.node()) {
    for (const std::string &name : node.input())
      ++reads[name];
    for (const auto &attribute : node.attribute()) {
      if (attribute.has_g())
        countReads(attribute.g(), reads);
      for (const auto &inner : attribute.graphs())
        countReads(inner, reads);
    }
  }
}

Caches cachesOf(const proto::GraphProto &graph) {
  llvm::StringMap<int64_t> ranks, reads;
  llvm::StringMap<std::string> same; // inputs, by other names that they have
  llvm::StringSet<> outputs;
  for (const auto &input : graph.input())
    if (input.type().tensor_type().has_shape())
      ranks[input.name()] = input.type().tensor_type().shape().dim_size();
  for (const auto &output : graph.output())
    outputs.insert(output.name());
  countReads(graph, reads);
  for (const auto &node : graph.node())
    if (isIdentity(node) && ranks.contains(node.input(0)))
      same[node.output(0)] = node.input(0);
  Caches caches;
  for (const auto &node : graph.node())
    for (auto [past, present, isAsLong] : pairsOf(node)) {
      if (past >= node.input_size())
        continue;
      auto other = same.find(node.input(past));
      const std::string &input = other == same.end() ? node.input(past) : other->second;
      if (!ranks.contains(input))
        continue;
      int64_t rank = ranks.lookup(input), axis = axisOf(node, rank);
      bool isGiven = present < node.output_size() && outputs.contains(node.output(present));
      if (outputs.contains(input) || axis < 1 || axis + 1 >= rank ||
          (isAsLong ? !isGiven : reads.lookup(input) != 1))
        continue;
      caches.extenders.insert(&node);
      ++caches.pasts.try_emplace(input, Caches::Past{axis, isAsLong}).first->second.extended;
      if (isGiven)
        caches.presents[node.output(present)] = input;
    }
  return caches;
}

} // namespace heddle::onnx
