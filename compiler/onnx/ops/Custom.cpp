// Custom: nodes of ops that the user has registered, whose shape functions are asked while
// compiling.
//
// A shape function maps numbers to numbers. Sizes known only at run time are stood in for by
// numbers that share no model's arithmetic, twice: a result that is equal both times is constant,
// one that is the same size's number both times is that size, and all others are fresh symbols. The
// run asks again.

#include "compiler/onnx/ops/Custom.h"

#include "compiler/onnx/Tensor.h"
#include "runtime/library/custom.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

bool isRegistered(StringRef domain, StringRef name) {
  return heddle_custom_registered(domain.str().c_str(), name.str().c_str(), nullptr) != nullptr;
}

static std::string valueOf(const proto::AttributeProto &attribute) {
  auto listed = [](const auto &values, auto text) {
    std::string line;
    for (const auto &value : values)
      line += (line.empty() ? "" : " ") + text(value);
    return line;
  };
  auto floating = [](float value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
    return std::string(text);
  };
  auto whole = [](int64_t value) { return std::to_string(value); };
  switch (attribute.type()) {
  case proto::AttributeProto::INT:
    return whole(attribute.i());
  case proto::AttributeProto::FLOAT:
    return floating(attribute.f());
  case proto::AttributeProto::STRING:
    return attribute.s();
  case proto::AttributeProto::INTS:
    return listed(attribute.ints(), whole);
  case proto::AttributeProto::FLOATS:
    return listed(attribute.floats(), floating);
  case proto::AttributeProto::STRINGS:
    return listed(attribute.strings(), [](const std::string &text) { return text; });
  default:
    refuse("attribute '" + attribute.name() +
           "' is no number or text, nor a list of them, which ops of your own cannot have");
  }
}

static std::string attributesOf(const Node &node) {
  std::string text;
  for (const auto &attribute : node.message.attribute()) {
    std::string value = valueOf(attribute);
    if (StringRef(value).contains('\0') || StringRef(value).contains('\n'))
      refuse("attribute '" + attribute.name() + "' has a line break or a zero byte");
    text += attribute.name() + "=" + value + "\n";
  }
  return text;
}

namespace {
/// One call of the shape function with a number for each symbol.
struct Probe {
  std::vector<heddle_custom_tensor_t> outputs;
  llvm::StringMap<int64_t> numbers; // values of sizes, by their text
};
} // namespace

/// Multiples of many numbers, so that sizes which must divide do; `turn` tells the probes apart.
static int64_t standIn(size_t index, int turn) {
  return 5040 * (turn ? 211 + 12 * (int64_t)index : 101 + 6 * (int64_t)index);
}

static Probe probe(const heddle_custom_op_t *op, Node &n, const std::string &attributes, int turn) {
  Probe probe;
  std::vector<heddle_custom_tensor_t> inputs(n.inputs());
  std::string sizes;
  for (size_t i = 0; i < n.inputs(); ++i) {
    Value x = n.in(i);
    inputs[i].dtype = onnxTypeOf(elementOf(x));
    inputs[i].rank = rankOf(x);
    for (auto [d, size] : llvm::enumerate(dimsOf(x))) {
      auto [known, isNew] = probe.numbers.try_emplace(size.str(), 0);
      if (isNew)
        known->second = size.constant().value_or(standIn(probe.numbers.size(), turn));
      inputs[i].dims[d] = known->second;
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(known->second);
    }
  }
  probe.outputs.resize(n.results.size());
  heddle_custom_call_t call = {attributes.c_str(),        inputs.data(),
                               probe.outputs.data(),      (int32_t)inputs.size(),
                               (int32_t)n.results.size(), nullptr};
  heddle_custom_outcome_t outcome = heddle_custom_shape(op, &call);
  if (outcome.kind == HEDDLE_CUSTOM_SHAPE)
    refuse("the shape function of the op returns " + Twine(outcome.value) +
           " for inputs of the sizes " + sizes);
  if (outcome.kind)
    refuse("the shape function of the op gives result " + Twine(outcome.value) +
           " a rank or element type that cannot be, or a size that cannot be: " +
           Twine(outcome.limit));
  return probe;
}

/// The symbol that fits both probes, `first` and `second`; `otherwise` if none does.
static Dim sizeOf(const std::map<std::string, Dim> &known, const Probe (&probes)[2], int64_t first,
                  int64_t second, const Dim &otherwise) {
  for (const auto &[text, dim] : known)
    if (!dim.constant() && probes[0].numbers.lookup(text) == first &&
        probes[1].numbers.lookup(text) == second)
      return dim;
  return first == second ? Dim(first) : otherwise;
}

void importCustom(Node &n, StringRef domain) {
  const char *library = "";
  std::string name = n.op().str();
  const heddle_custom_op_t *op =
      heddle_custom_registered(domain.str().c_str(), name.c_str(), &library);
  std::map<std::string, Dim> known;
  for (size_t i = 0; i < n.inputs(); ++i) {
    if (!n.has(i))
      refuse("input " + Twine(i) + " is left out, which ops of your own cannot have");
    if (listOf(n.in(i)) || !heddle_custom_width(onnxTypeOf(elementOf(n.in(i)))))
      refuse("input " + Twine(i) + " is of " + nameOf(elementOf(n.in(i))) +
             ", which ops of your own cannot have");
    for (const Dim &size : dimsOf(n.in(i)))
      known.emplace(size.str(), size);
  }
  std::string attributes = attributesOf(n);
  const Probe probes[2] = {probe(op, n, attributes, 0), probe(op, n, attributes, 1)};
  SmallVector<Type> types;
  std::vector<DimVector> wanted;
  for (auto [first, second] : llvm::zip(probes[0].outputs, probes[1].outputs)) {
    Type element = elementType(n.context(), first.dtype);
    if (first.dtype != second.dtype || first.rank != second.rank || !element)
      refuse("the shape function of the op gives a rank or element type that depends on sizes");
    DimVector fresh, dims;
    for (int32_t d = 0; d < first.rank; ++d) {
      fresh.push_back(n.freshSymbol("custom"));
      dims.push_back(sizeOf(known, probes, first.dims[d], second.dims[d], fresh.back()));
    }
    types.push_back(n.tensor(fresh, element));
    wanted.push_back(dims);
  }
  std::string text;
  for (const std::string &part : {std::string(library), domain.str(), name, attributes})
    text += part + '\0';
  auto type = RankedTensorType::get({(int64_t)text.size()}, n.builder.getIntegerType(8, false));
  SmallVector<Value> operands = {n.constant(
      DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(text.data(), text.size())))};
  for (size_t i = 0; i < n.inputs(); ++i)
    operands.push_back(n.in(i));
  OperationState state(n.location, CustomOp::getOperationName(), operands, types);
  Operation *made = n.emit(state);
  for (auto [i, dims] : llvm::enumerate(wanted))
    n.set(i, n.reshape(made->getResult(i), dims)); // checked at run time
}

} // namespace heddle::onnx
