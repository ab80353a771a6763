// Node: typed access to attributes and operands.

#include "compiler/onnx/Node.h"

#include "compiler/onnx/Reader.h"

using namespace mlir;

namespace heddle::onnx {

using Kind = proto::AttributeProto;

Node::Node(Reader &reader, Scope &scope, const proto::NodeProto &message, int64_t opset,
           Location location)
    : Emitter(reader.builder, location, reader.diagnostics), reader(reader), scope(scope),
      message(message), opset(opset) {}

StringRef Node::op() const { return message.op_type(); }

size_t Node::outputs() const { return message.output_size(); }

bool Node::wants(size_t i) const { return i < outputs() && !message.output(i).empty(); }

Value Node::in(size_t i) const {
  if (!has(i))
    refuse("input " + Twine(i) + " is missing");
  return operands[i];
}

Value Node::vector(size_t i, StringRef name) const {
  Value given = in(i);
  if (rankOf(given) != 1)
    refuse("'" + name + "' must be a vector, but has the shape " + textOf(dimsOf(given)));
  return given;
}

void Node::set(size_t i, Value value) {
  if (results.size() <= i)
    refuse("the node has " + Twine(results.size()) + " outputs, but needs at least " +
           Twine(i + 1));
  results[i] = value;
}

LabelsPtr Node::labels(size_t i) const {
  return has(i) ? reader.labels.lookup(operands[i]) : nullptr;
}

const proto::AttributeProto *Node::attribute(StringRef name) const {
  for (const auto &attribute : message.attribute()) {
    if (attribute.name() != name)
      continue;
    if (attribute.ref_attr_name().empty())
      return &attribute;
    if (!scope.attributes)
      refuse("attribute '" + name + "' refers to '" + attribute.ref_attr_name() +
             "', but the node is in no function");
    auto found = scope.attributes->find(attribute.ref_attr_name());
    return found == scope.attributes->end() ? nullptr : found->second;
  }
  return nullptr;
}

static void requireKind(const proto::AttributeProto &attribute, int kind, const char *expected) {
  // IR versions 1 and 2 have no 'type'.
  if (attribute.has_type() && attribute.type() != kind)
    refuse("attribute '" + attribute.name() + "' must be " + expected);
}

/// Attributes that are numbers and mean yes or no.
static bool isFlag(StringRef name) {
  static const llvm::StringSet<> flags = {"align_corners",
                                          "allowzero",
                                          "antialias",
                                          "ceil_mode",
                                          "center_point_box",
                                          "count_include_pad",
                                          "detect_negative",
                                          "detect_positive",
                                          "exclude_outside",
                                          "exclusive",
                                          "fmod",
                                          "input_forget",
                                          "inverse",
                                          "is_case_sensitive",
                                          "is_causal",
                                          "keepdims",
                                          "largest",
                                          "layout",
                                          "linear_before_reset",
                                          "noop_with_empty_axes",
                                          "one_class",
                                          "onesided",
                                          "periodic",
                                          "reverse",
                                          "saturate",
                                          "select_last_index",
                                          "sorted",
                                          "storage_order",
                                          "training_mode",
                                          "upper",
                                          "zeros"};
  return flags.contains(name);
}

/// Limits counts and places to the largest size, so that sums and products of two stay in 64 bits;
/// data and bounds that are clamped may be any number.
static int64_t checked(StringRef name, int64_t number) {
  constexpr int64_t most = int64_t(1) << 31;
  bool isAny = name.contains("int64") || name.starts_with("value") ||
               llvm::is_contained({"start", "end", "starts", "ends", "seed"}, name);
  if (!isAny && (number > most || number < -most))
    refuse("attribute '" + name + "' has " + Twine(number) + ", but at most " + Twine(most) +
           " is supported");
  if (isFlag(name) && number != 0 && number != 1)
    refuse("attribute '" + name + "' is " + Twine(number) + ", but must be 0 or 1");
  return number;
}

int64_t Node::getInt(StringRef name, int64_t otherwise) const {
  const auto *found = attribute(name);
  if (!found)
    return otherwise;
  requireKind(*found, Kind::INT, "an integer");
  return checked(name, found->i());
}

double Node::getFloat(StringRef name, double otherwise) const {
  const auto *found = attribute(name);
  if (!found)
    return otherwise;
  requireKind(*found, Kind::FLOAT, "a number");
  return found->f();
}

std::string Node::getText(StringRef name, StringRef otherwise) const {
  const auto *found = attribute(name);
  if (!found)
    return otherwise.str();
  requireKind(*found, Kind::STRING, "a string");
  return found->s();
}

std::optional<Ints> Node::getInts(StringRef name) const {
  const auto *found = attribute(name);
  if (!found)
    return std::nullopt;
  requireKind(*found, Kind::INTS, "a list of integers");
  for (int64_t number : found->ints())
    checked(name, number);
  return Ints(found->ints().begin(), found->ints().end());
}

Ints Node::getInts(StringRef name, Ints otherwise) const {
  return getInts(name).value_or(std::move(otherwise));
}

std::vector<double> Node::getFloats(StringRef name) const {
  const auto *found = attribute(name);
  if (!found)
    return {};
  requireKind(*found, Kind::FLOATS, "a list of numbers");
  return {found->floats().begin(), found->floats().end()};
}

std::vector<std::string> Node::getTexts(StringRef name) const {
  const auto *found = attribute(name);
  if (!found)
    return {};
  requireKind(*found, Kind::STRINGS, "a list of strings");
  return {found->strings().begin(), found->strings().end()};
}

Value Node::stringConstant(ArrayRef<std::string> texts) {
  std::vector<int64_t> numbers;
  for (const std::string &text : texts)
    numbers.push_back(reader.strings.numberOf(text));
  ArrayRef<char> bytes(reinterpret_cast<const char *>(numbers.data()),
                       numbers.size() * sizeof(int64_t));
  Type element = elementType(context(), proto::TensorProto::STRING);
  return constant(graph::constantAttr(
      RankedTensorType::get({static_cast<int64_t>(texts.size())}, element), bytes));
}

Value Node::constantFrom(StringRef name) {
  const auto *found = attribute(name);
  if (!found)
    return {};
  if (found->has_t()) {
    Value tensor = constant(reader.readTensor(found->t()));
    return reshape(tensor, graph::elementCount(graph::dimsOf(tensor)));
  }
  if (found->strings_size())
    return stringConstant(getTexts(name));
  if (found->ints_size())
    return integers(*getInts(name));
  std::vector<float> floats(found->floats().begin(), found->floats().end());
  ArrayRef<char> bytes(reinterpret_cast<const char *>(floats.data()),
                       floats.size() * sizeof(float));
  return constant(graph::constantAttr(
      RankedTensorType::get({static_cast<int64_t>(floats.size())}, f32()), bytes));
}

std::optional<int64_t> Node::declaredRank(size_t i) const {
  if (!wants(i))
    return std::nullopt;
  const proto::TypeProto *type = scope.declared.lookup(message.output(i));
  while (type && !type->has_tensor_type())
    type = type->has_optional_type()   ? &type->optional_type().elem_type()
           : type->has_sequence_type() ? &type->sequence_type().elem_type()
                                       : nullptr;
  if (!type || !type->tensor_type().has_shape())
    return std::nullopt;
  return type->tensor_type().shape().dim_size();
}

const proto::GraphProto &Node::getGraph(StringRef name) const {
  const auto *found = attribute(name);
  if (!found || !found->has_g())
    refuse("the subgraph '" + name + "' is missing");
  return found->g();
}

Type Node::getElement(StringRef name, Type otherwise) const {
  const auto *found = attribute(name);
  if (!found)
    return otherwise;
  // Before opset 6 the type was spelt.
  int dataType = found->i();
  if (found->has_s()) {
    proto::TensorProto_DataType parsed;
    if (!proto::TensorProto_DataType_Parse(found->s(), &parsed))
      refuse("attribute '" + name + "' is '" + found->s() + "', which is no element type");
    dataType = parsed;
  }
  if (dataType == 0)
    return otherwise;
  Type element = elementType(context(), dataType);
  if (!element)
    refuse("tensors of " + dataTypeName(dataType) + " are not supported");
  return element;
}

int64_t Node::axis(int64_t value, int64_t rank) const {
  if (value < -rank || value >= std::max<int64_t>(rank, 1))
    refuse("axis " + Twine(value) + " is outside of rank " + Twine(rank));
  return value < 0 ? value + rank : value;
}

Ints Node::axes(Ints values, int64_t rank) const {
  for (int64_t &value : values)
    value = axis(value, rank);
  for (auto [i, value] : llvm::enumerate(values))
    if (llvm::is_contained(ArrayRef<int64_t>(values).take_front(i), value))
      refuse("axis " + Twine(value) + " is given twice");
  return values;
}

std::optional<Ints> Node::intsFrom(size_t i, StringRef name) const {
  if (!has(i))
    return getInts(name);
  if (graph::elementCount(dimsOf(operands[i])).isConstant(0))
    return Ints();
  auto sizes = shapeValue(operands[i]);
  Ints values;
  for (const Dim &size : sizes.value_or(DimVector{}))
    if (auto number = size.constant())
      values.push_back(*number);
  if (!sizes || values.size() != sizes->size())
    refuse("input " + Twine(i) + " ('" + name + "') must be known when the model is compiled");
  return values;
}

std::optional<DimVector> Node::sizesFrom(size_t i) const { return shapeValue(in(i)); }

std::optional<std::vector<double>> Node::floatsFrom(size_t i) const {
  auto constant = in(i).getDefiningOp<graph::ConstantOp>();
  auto floating = dyn_cast<FloatType>(elementOf(in(i)));
  if (!constant || !floating)
    return std::nullopt;
  std::vector<char> storage;
  ArrayRef<char> bytes = graph::constantBytes(constant.getValue(), storage);
  int64_t width = graph::bytesOf(floating);
  std::vector<double> values;
  for (size_t place = 0; place < bytes.size(); place += width) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + place, width);
    llvm::APFloat value(floating.getFloatSemantics(), llvm::APInt(width * 8, word));
    bool loses;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
    values.push_back(value.convertToDouble());
  }
  return values;
}

Value Node::legacyAligned(size_t i) const {
  Value value = in(i);
  if (opset >= 7 || !hasAttribute("axis") || !getInt("broadcast", 0))
    return value;
  int64_t trailing = rankOf(in(0)) - axis(getInt("axis", 0), rankOf(in(0))) - rankOf(value);
  if (trailing < 0)
    refuse("input " + Twine(i) + " does not fit at axis " + Twine(getInt("axis", 0)));
  DimVector dims = dimsOf(value);
  dims.append(trailing, Dim(1));
  return const_cast<Node *>(this)->reshape(value, dims);
}

} // namespace heddle::onnx
