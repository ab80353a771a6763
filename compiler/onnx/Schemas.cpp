// Schemas: the check of a node against ONNX's schema, so that importers meet legal element types
// and attributes only.

#include "compiler/onnx/Schemas.h"

#include "compiler/onnx/Tensor.h"
#include "compiler/support/Suggest.h"

using namespace mlir;

namespace heddle::onnx {

namespace {
/// One formal input or output; a variadic one is the last and stands for all that follow.
struct Formal {
  const char *name;
  uint32_t types;   // bit n: tensors of TensorProto.DataType n
  int variable;     // those with the same number have the same type; 0: none does
  bool takesOthers; // sequences, optionals and maps
};
struct SchemaAttribute {
  const char *name;
  int kind; // AttributeProto.AttributeType
  bool isRequired;
};
struct Schema {
  const char *domain, *name;
  int64_t since;
  int leastInputs, mostInputs, mostOutputs;
  llvm::ArrayRef<Formal> inputs, outputs;
  llvm::ArrayRef<SchemaAttribute> attributes;
};
#include "Schemas.inc"
constexpr int kLastType = 26;
} // namespace

/// The schema that holds at an opset, or null.
static const Schema *findSchema(StringRef domain, StringRef name, int64_t opset) {
  static const auto index = [] {
    llvm::StringMap<SmallVector<const Schema *>> map;
    for (const Schema &schema : kSchemas) // from old to new
      map[(Twine(schema.domain) + ":" + schema.name).str()].push_back(&schema);
    return map;
  }();
  const Schema *found = nullptr;
  if (auto all = index.find((domain + ":" + name).str()); all != index.end())
    for (const Schema *schema : all->second)
      if (schema->since <= opset)
        found = schema;
  return found;
}

static std::string namesOf(uint32_t types) {
  std::string text;
  for (int type = 0; type < 32; ++type)
    if (types >> type & 1)
      text += (text.empty() ? "" : ", ") + dataTypeName(type);
  return text;
}

/// The number of the element type that a tensor has; 0 for what is no tensor of ONNX's types.
static int dataTypeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  for (int number = 1; tensor && number <= kLastType; ++number)
    if (elementType(type.getContext(), number) == tensor.getElementType())
      return number;
  return 0;
}

static void checkCounts(const Node &node, const Schema &schema) {
  int inputs = node.inputs();
  if (inputs < schema.leastInputs || inputs > schema.mostInputs)
    refuse("the node has " + Twine(inputs) + " inputs, but " + schema.name + " takes " +
           (schema.leastInputs == schema.mostInputs ? Twine(schema.leastInputs)
            : inputs < schema.leastInputs           ? "at least " + Twine(schema.leastInputs)
                                                    : "at most " + Twine(schema.mostInputs)));
  if ((int)node.outputs() > schema.mostOutputs)
    refuse("the node has " + Twine(node.outputs()) + " outputs, but " + schema.name +
           " gives at most " + Twine(schema.mostOutputs));
}

static void checkTypes(const Node &node, const Schema &schema) {
  llvm::SmallDenseMap<int, std::pair<size_t, int>> first; // an input of each type variable, and its
                                                          // type
  for (size_t i = 0; i < node.inputs(); ++i) {
    const Formal &formal = schema.inputs[std::min(i, schema.inputs.size() - 1)];
    std::string which = "input " + std::to_string(i) + " ('" + formal.name + "')";
    if (!node.has(i)) // also of what ONNX calls mandatory: exporters leave out what is not used
      continue;
    int type = dataTypeOf(node.operands[i].getType());
    if (formal.takesOthers || node.labels(i))
      continue;
    if (!type)
      refuse(which + " is a sequence or an optional, but must be a tensor");
    if (!(formal.types >> type & 1))
      refuse(which + " has element type " + dataTypeName(type) + ", but " + schema.name +
             " takes " + namesOf(formal.types));
    if (!formal.variable)
      continue;
    auto [at, isNew] = first.try_emplace(formal.variable, i, type);
    if (!isNew && at->second.second != type)
      refuse(which + " has element type " + dataTypeName(type) + ", but must have that of input " +
             Twine(at->second.first) + ", " + dataTypeName(at->second.second));
  }
}

static void checkAttributes(const Node &node, const Schema &schema) {
  SmallVector<StringRef> known;
  for (const SchemaAttribute &attribute : schema.attributes) {
    known.push_back(attribute.name);
    const proto::AttributeProto *given = node.attribute(attribute.name);
    if (!given && attribute.isRequired)
      refuse(Twine("attribute '") + attribute.name + "' is missing");
    // IR versions 1 and 2 have no 'type'.
    if (given && given->has_type() && given->type() != attribute.kind)
      refuse(Twine("attribute '") + attribute.name + "' has type " +
             proto::AttributeProto_AttributeType_Name(given->type()) + ", but must have type " +
             proto::AttributeProto_AttributeType_Name(
                 static_cast<proto::AttributeProto_AttributeType>(attribute.kind)));
  }
  for (const auto &given : node.message.attribute()) {
    StringRef name = given.name();
    if (name.starts_with("__") || llvm::is_contained(known, name)) // as ONNX's checker has it
      continue;
    std::string nearest = support::nearest(name, known);
    refuse("attribute '" + name + "' is unknown to " + schema.name + " of opset " +
               Twine(node.opset),
           nearest.empty()
               ? known.empty() ? "it has no attributes" : "it has " + llvm::join(known, ", ")
               : "did you mean '" + nearest + "'?");
  }
}

void checkSchema(const Node &node, StringRef domain) {
  const Schema *schema = findSchema(domain, node.op(), node.opset);
  if (!schema)
    return;
  checkCounts(node, *schema);
  checkTypes(node, *schema);
  checkAttributes(node, *schema);
}

void checkResults(const Node &node, StringRef domain) {
  // Exporters wrote constants of all types before opset 9 allowed them.
  int64_t opset = node.op() == "Constant" ? std::max<int64_t>(node.opset, 9) : node.opset;
  const Schema *schema = findSchema(domain, node.op(), opset);
  for (size_t i = 0; schema && i < node.results.size() && !schema->outputs.empty(); ++i) {
    const Formal &formal = schema->outputs[std::min(i, schema->outputs.size() - 1)];
    int type = node.results[i] ? dataTypeOf(node.results[i].getType()) : 0;
    if (type && !formal.takesOthers && !(formal.types >> type & 1))
      refuse("output " + Twine(i) + " ('" + formal.name + "') would have element type " +
             dataTypeName(type) + ", but " + schema->name + " gives " + namesOf(formal.types));
  }
}

} // namespace heddle::onnx
