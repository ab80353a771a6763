// Body: attributes, nodes and functions as text.

#include "compiler/onnx/ops/algebra/Body.h"

#include "compiler/onnx/Tensor.h"

namespace heddle::onnx {

using llvm::StringRef;

/// "1, 2, 3", of long lists the beginning.
std::string joined(size_t count, llvm::function_ref<std::string(size_t)> write) {
  constexpr size_t most = 8;
  std::string text;
  for (size_t i = 0; i < std::min(count, most); ++i)
    text += (i ? ", " : "") + write(i);
  return text + (count > most ? ", ..." : "");
}

template <typename List, typename Write> static std::string listOf(const List &list, Write write) {
  return "[" + joined(list.size(), [&](size_t i) { return write(list[i]); }) + "]";
}

std::string valueOf(const proto::AttributeProto &attribute) {
  auto integer = [](int64_t value) { return std::to_string(value); };
  auto number = [](float value) {
    char written[32];
    snprintf(written, sizeof written, "%g", value);
    return std::string(written);
  };
  auto text = [](StringRef value) {
    constexpr size_t most = 32;
    return "'" + value.take_front(most).str() + (value.size() > most ? "...'" : "'");
  };
  switch (attribute.type()) {
  case proto::AttributeProto::INT:
    return integer(attribute.i());
  case proto::AttributeProto::FLOAT:
    return number(attribute.f());
  case proto::AttributeProto::STRING:
    return text(attribute.s());
  case proto::AttributeProto::INTS:
    return listOf(attribute.ints(), integer);
  case proto::AttributeProto::FLOATS:
    return listOf(attribute.floats(), number);
  case proto::AttributeProto::STRINGS:
    return listOf(attribute.strings(), text);
  case proto::AttributeProto::TENSOR:
    return dataTypeName(attribute.t().data_type()) + listOf(attribute.t().dims(), integer);
  default:
    return proto::AttributeProto::AttributeType_Name(attribute.type());
  }
}

static std::string listOfNames(const google::protobuf::RepeatedPtrField<std::string> &names) {
  return llvm::join(names, ", ");
}

std::string textOf(const proto::FunctionProto &function) {
  std::string text =
      "(" + listOfNames(function.input()) + ") => (" + listOfNames(function.output()) + ")\n";
  for (const proto::NodeProto &node : function.node()) {
    std::vector<std::string> attributes;
    for (const proto::AttributeProto &attribute : node.attribute())
      attributes.push_back(attribute.name() + "=" +
                           (attribute.ref_attr_name().empty() ? valueOf(attribute)
                                                              : "@" + attribute.ref_attr_name()));
    llvm::sort(attributes);
    std::string op = node.domain().empty() ? "" : node.domain() + ".";
    text += listOfNames(node.output()) + " = " + op + node.op_type() + "(" +
            listOfNames(node.input()) + "){" + llvm::join(attributes, ", ") + "}\n";
  }
  return text;
}

} // namespace heddle::onnx
