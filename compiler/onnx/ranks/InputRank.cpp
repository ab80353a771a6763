// InputRank: what nodes that read an input say of its rank.

#include "compiler/onnx/ranks/InputRank.h"

using namespace mlir;

namespace heddle::onnx {

/// Ops of one operand whose result has its rank, so that what reads the result says the same.
static bool keepsRank(StringRef op) {
  return llvm::StringSwitch<bool>(op)
      .Cases("Identity", "Cast", "Relu", "Neg", "Abs", "Sqrt", "Exp", "Log", "Clip", true)
      .Cases("Sigmoid", "Tanh", "LeakyRelu", "BatchNormalization", "InstanceNormalization", true)
      .Cases("QuantizeLinear", "DequantizeLinear", "Dropout", "Pad", "Softmax", "LRN", true)
      .Default(false);
}

static const proto::AttributeProto *find(const proto::NodeProto &node, StringRef name) {
  for (const auto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

static std::optional<size_t> rankOfConstant(const proto::GraphProto &graph, StringRef name) {
  for (const auto &tensor : graph.initializer())
    if (tensor.name() == name)
      return tensor.dims_size();
  return std::nullopt;
}

/// The rank that operand `i` of a node must have.
static std::optional<size_t> rankOfOperand(const proto::GraphProto &graph,
                                           const proto::NodeProto &node, int i) {
  StringRef op = node.op_type();
  if (op == "Transpose")
    if (const auto *order = find(node, "perm"))
      return order->ints_size();
  if (op == "Gemm" && i < 2)
    return 2;
  if (i != 0)
    return std::nullopt;
  int filters = llvm::StringSwitch<int>(op)
                    .Cases("Conv", "ConvTranspose", "ConvInteger", "DeformConv", 1)
                    .Case("QLinearConv", 3)
                    .Default(0);
  if (filters && filters < node.input_size())
    return rankOfConstant(graph, node.input(filters));
  if (op == "MaxPool" || op == "AveragePool" || op == "LpPool")
    if (const auto *window = find(node, "kernel_shape"))
      return window->ints_size() + 2;
  return llvm::StringSwitch<std::optional<size_t>>(op)
      .Cases("LSTM", "GRU", "RNN", 3)
      .Cases("DepthToSpace", "SpaceToDepth", "RoiAlign", "MaxRoiPool", 4)
      .Default(std::nullopt);
}

std::optional<size_t> rankByReaders(const proto::GraphProto &graph, StringRef input) {
  SmallVector<std::string> names = {input.str()};
  for (size_t next = 0; next < names.size(); ++next)
    for (const auto &node : graph.node())
      for (int i = 0; i < node.input_size(); ++i) {
        if (node.input(i) != names[next])
          continue;
        if (auto rank = rankOfOperand(graph, node, i))
          return rank;
        if (i == 0 && keepsRank(node.op_type()) && node.output_size() &&
            !llvm::is_contained(names, node.output(0)))
          names.push_back(node.output(0));
      }
  return std::nullopt;
}

} // namespace heddle::onnx
