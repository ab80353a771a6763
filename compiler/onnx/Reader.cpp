// Reader: names, order, functions and subgraphs.

#include "compiler/onnx/Reader.h"

#include "compiler/graph/edit/Weights.h"
#include "compiler/onnx/Schemas.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Custom.h"
#include "compiler/onnx/ops/algebra/Body.h"
#include "compiler/support/Printable.h"

#include <queue>

using namespace mlir;

namespace heddle::onnx {

static constexpr size_t kToldProblems = 100;

void Problems::add(StringRef where, const Refusal &refusal) {
  if (refusal.code == ErrorCode::Limit)
    code = ErrorCode::Limit;
  if (++total > kToldProblems)
    return;
  // Names of a model may hold any bytes.
  lines.push_back(support::printable(file + ": " + (where.empty() ? "" : where.str() + ": ") +
                                     "error: " + refusal.message));
  if (!refusal.note.empty())
    lines.push_back(support::printable("note: " + refusal.note));
}

llvm::Error Problems::take() const {
  std::string text = llvm::join(lines, "\n");
  if (total > kToldProblems)
    text += "\nnote: and " + std::to_string(total - kToldProblems) + " more problems";
  return makeError(code, text);
}

std::string nodeName(const proto::NodeProto &node) {
  if (!node.name().empty())
    return support::printable(node.name());
  return support::printable(node.op_type() + "_" + (node.output_size() ? node.output(0) : ""));
}

std::string labelOf(const proto::NodeProto &node) {
  return "node '" + nodeName(node) + "' (" + node.op_type() + ")";
}

static std::string functionKey(StringRef domain, StringRef name, StringRef overload) {
  return (domain + ":" + name + ":" + overload).str();
}

static std::string domainOf(const std::string &domain) { return domain == "ai.onnx" ? "" : domain; }

Reader::Reader(OpBuilder &builder, ModelFile &file, const ImportOptions &options,
               Problems &problems)
    : builder(builder), file(file), options(options), problems(problems),
      handler(builder.getContext(), [this](Diagnostic &diagnostic) {
        StringRef text = diagnostics.empty() ? "" : "; ";
        diagnostics += text.str() + diagnostic.str();
        return success();
      }) {
  for (const auto &function : file.model->functions()) {
    std::string key =
        functionKey(domainOf(function.domain()), function.name(), function.overload());
    if (!functions.emplace(key, &function).second)
      problems.add("function '" + function.name() + "'", {"it is defined twice", ""});
  }
}

void Reader::stop(StringRef where, const Twine &message) {
  problems.add(where, {message.str(), "", ErrorCode::Limit});
  throw Stopped{};
}

Opsets
Reader::readOpsets(const google::protobuf::RepeatedPtrField<proto::OperatorSetIdProto> &imports) {
  Opsets opsets;
  for (const auto &import : imports) { // the later version of a domain that is imported twice
    auto [place, isNew] = opsets.try_emplace(domainOf(import.domain()), import.version());
    place->second = std::max<int64_t>(place->second, import.version());
  }
  for (const auto &[domain, version] : opsets) {
    auto newest = newestVersion(domain);
    if (newest && (version > *newest || version < 1))
      problems.add("", {"the model needs opset " + std::to_string(version) + " of domain '" +
                            (domain.empty() ? "ai.onnx" : domain) + "', but only 1 to " +
                            std::to_string(*newest) + " are known",
                        "export the model for an older opset, or convert it with "
                        "onnx.version_converter"});
  }
  return opsets;
}

ElementsAttr Reader::readTensor(const proto::TensorProto &tensor) {
  return onnx::readTensor(builder.getContext(), tensor, file, options.maxBytes, strings);
}

void Reader::readDeclared(const google::protobuf::RepeatedPtrField<proto::ValueInfoProto> &values,
                          Scope &scope) {
  for (const auto &value : values)
    if (value.has_type())
      scope.declared[value.name()] = &value.type();
}

Type Reader::listType(const proto::TypeProto &type) {
  const proto::TypeProto *inner = &type;
  StringRef kind = type.has_optional_type() ? "optional" : "sequence";
  if (type.has_optional_type()) {
    inner = &type.optional_type().elem_type();
    if (inner->has_sequence_type())
      kind = "optional_sequence";
  }
  if (inner->has_sequence_type())
    inner = &inner->sequence_type().elem_type();
  if (inner == &type)
    return {};
  if (!inner->has_tensor_type())
    refuse("sequences and optionals of what is no tensor are not supported");
  const auto &tensor = inner->tensor_type();
  Type element = elementType(builder.getContext(), tensor.elem_type());
  if (!element)
    refuse("tensors of " + dataTypeName(tensor.elem_type()) + " are not supported");
  int64_t rank = tensor.has_shape() ? tensor.shape().dim_size() : -2;
  return graph::listTensor(builder.getContext(), kind, element, rank);
}

void Reader::define(StringRef name, Value value, Scope &scope) {
  if (name.empty())
    return;
  if (value && isa<RankedTensorType>(value.getType()) && graph::rankOf(value) > kMostRank)
    refuse("'" + name + "' has rank " + Twine(graph::rankOf(value)) + ", but at most " +
           Twine(kMostRank) + " is supported");
  if (!scope.values.try_emplace(name, value).second)
    refuse("'" + name + "' is defined twice", "a name may have only one value in a graph");
}

Value Reader::lookup(StringRef name, const Scope &scope) {
  for (const Scope *place = &scope; place; place = place->parent) {
    auto found = place->values.find(name);
    if (found != place->values.end()) {
      if (!found->second)
        throw Poisoned{};
      return found->second;
    }
    auto later = place->later.find(name);
    if (later != place->later.end())
      refuse("input '" + name + "' is made by node '" + later->second +
                 "', which is part of a cycle, or needs one",
             "the nodes of a graph must not form a cycle");
  }
  refuse("input '" + name + "' is not made by any node, input or initializer");
}

void Reader::readInitializers(const proto::GraphProto &graph, Scope &scope) {
  for (const auto &tensor : graph.initializer()) {
    try {
      if (tensor.name().empty())
        refuse("an initializer has no name");
      Emitter emitter(builder, NameLoc::get(builder.getStringAttr(tensor.name())), diagnostics);
      Value constant = emitter.constant(readTensor(tensor));
      if (options.marksWeights)
        constant.getDefiningOp()->setAttr(graph::kWeight, builder.getStringAttr(tensor.name()));
      define(tensor.name(), constant, scope);
    } catch (const Refusal &refusal) {
      problems.add("initializer '" + tensor.name() + "'", refusal);
      scope.values.try_emplace(tensor.name(), Value());
    }
  }
  for (const auto &sparse : graph.sparse_initializer()) {
    const std::string &name = sparse.values().name();
    try {
      if (name.empty())
        refuse("a sparse initializer has no name");
      Emitter emitter(builder, NameLoc::get(builder.getStringAttr(name)), diagnostics);
      auto dense = readSparse(builder.getContext(), sparse, file, options.maxBytes, strings);
      define(name, emitter.constant(dense), scope);
    } catch (const Refusal &refusal) {
      problems.add("initializer '" + name + "'", refusal);
      scope.values.try_emplace(name, Value());
    }
  }
}

/// Calls `use` with all names that a node needs: its inputs, and what its subgraphs take from
/// outside.
static void forEachNeed(const proto::NodeProto &node, llvm::function_ref<void(StringRef)> use) {
  for (const std::string &input : node.input())
    use(input);
  auto inGraph = [&](const proto::GraphProto &graph) {
    llvm::StringSet<> own;
    for (const auto &input : graph.input())
      own.insert(input.name());
    for (const auto &tensor : graph.initializer())
      own.insert(tensor.name());
    for (const auto &tensor : graph.sparse_initializer())
      own.insert(tensor.values().name());
    for (const auto &inner : graph.node())
      for (const std::string &output : inner.output())
        own.insert(output);
    auto outer = [&](StringRef name) {
      if (!own.contains(name))
        use(name);
    };
    for (const auto &inner : graph.node())
      forEachNeed(inner, outer);
    for (const auto &output : graph.output())
      outer(output.name());
  };
  for (const auto &attribute : node.attribute()) {
    if (attribute.has_g())
      inGraph(attribute.g());
    for (const auto &graph : attribute.graphs())
      inGraph(graph);
  }
}

/// The nodes so that each follows those that it needs, else as they are; nodes of a cycle, and
/// those that need it, come last.
static std::vector<int>
topologicalOrder(const google::protobuf::RepeatedPtrField<proto::NodeProto> &nodes) {
  llvm::StringMap<int> makers;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string &output : nodes[i].output())
      if (!output.empty())
        makers.try_emplace(output, i);
  std::vector<std::vector<int>> users(nodes.size());
  std::vector<int> open(nodes.size(), 0), order;
  for (int i = 0; i < nodes.size(); ++i)
    forEachNeed(nodes[i], [&](StringRef name) {
      auto maker = makers.find(name);
      if (maker == makers.end())
        return;
      users[maker->second].push_back(i);
      ++open[i];
    });
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (!open[i])
      ready.push(i);
  while (!ready.empty()) {
    int i = ready.top();
    ready.pop();
    order.push_back(i);
    for (int user : users[i])
      if (--open[user] == 0)
        ready.push(user);
  }
  for (int i = 0; i < nodes.size(); ++i)
    if (open[i])
      order.push_back(i);
  return order;
}

std::vector<Reader::Step>
Reader::stepsOf(const google::protobuf::RepeatedPtrField<proto::NodeProto> &nodes, Scope &scope) {
  for (const auto &node : nodes)
    for (const std::string &output : node.output())
      if (!output.empty())
        scope.later.try_emplace(output, nodeName(node));
  std::vector<Step> steps;
  for (int i : topologicalOrder(nodes))
    steps.push_back([this, &node = nodes[i]](Scope &scope) { readNode(node, scope); });
  return steps;
}

void Reader::readNodes(const google::protobuf::RepeatedPtrField<proto::NodeProto> &nodes,
                       Scope &scope) {
  for (const Step &step : stepsOf(nodes, scope))
    step(scope);
}

void Reader::poison(const proto::NodeProto &message, Scope &scope) {
  for (const std::string &output : message.output())
    if (!output.empty())
      scope.values.try_emplace(output, Value());
}

void Reader::readNode(const proto::NodeProto &message, Scope &scope) {
  if (++nodeCount > options.maxNodes)
    stop(labelOf(message), "the model has more than " + Twine(options.maxNodes) +
                               " nodes after inlining of functions");
  try {
    importNode(message, scope);
  } catch (const Refusal &refusal) {
    problems.add(labelOf(message), refusal);
    if (isTrying)
      throw NoVersion{};
    poison(message, scope);
  } catch (const Poisoned &) {
    poison(message, scope);
  }
}

/// Describes a node for reports: "Conv(x f32[1, 3, 8, 8], w f32[4, 3, 3, 3]) strides=[2, 2]".
static std::string describe(const proto::NodeProto &node, ArrayRef<Value> operands) {
  auto input = [&](size_t i) {
    Value x = operands[i];
    return node.input(i) + (x ? " " + nameOf(elementOf(x)) + textOf(dimsOf(x)) : "");
  };
  std::string text = node.op_type() + "(" + joined(operands.size(), input) + ")";
  for (const proto::AttributeProto &attribute : node.attribute())
    text += " " + attribute.name() + "=" + valueOf(attribute);
  return support::printable(text); // names and texts of a model may hold any bytes
}

void Reader::importNode(const proto::NodeProto &message, Scope &scope) {
  std::string domain = domainOf(message.domain());
  auto function = functions.find(functionKey(domain, message.op_type(), message.overload()));
  const OpRow *row = findRow(domain, message.op_type());
  if (function != functions.end() && row && row->body && textOf(*function->second) == row->body)
    function = functions.end(); // it is ours
  bool isCustom = function == functions.end() && !row && isRegistered(domain, message.op_type());
  if (function == functions.end() && !row && !isCustom) {
    if (!newestVersion(domain))
      refuse("op '" + message.op_type() + "' is of the unknown domain '" + domain + "'",
             "known domains: ai.onnx, ai.onnx.ml, ai.onnx.preview, ai.onnx.preview.training, "
             "com.microsoft, heddle, those of the model's own functions, and those that "
             "'--function FILE' "
             "and '--custom-op LIBRARY' give (docs/guide/custom-ops.md)");
    refuse("unknown op '" + message.op_type() + "'", suggestRow(domain, message.op_type()));
  }
  if (message.output_size() == 0)
    refuse("the node has no outputs");
  auto opset = scope.opsets->find(domain);
  if (opset == scope.opsets->end() && domain.empty() && function == functions.end())
    refuse("the model imports no opset of domain 'ai.onnx'");
  // Exporters use com.microsoft and ai.onnx.ml without importing them: as in ONNX Runtime, they are
  // taken at their newest version.
  int64_t version =
      opset == scope.opsets->end() ? newestVersion(domain).value_or(1) : opset->second;
  if (row && function == functions.end() && (version < row->first || version > row->last))
    refuse(Twine("opset ") + Twine(version) + " has no such op, or not one that is supported: " +
           "known from " + Twine(row->first) + " to " + Twine(row->last));

  SmallVector<Value> operands;
  bool isPoisoned = false;
  for (const std::string &input : message.input()) {
    try {
      bool isAbsent = input.empty() || scope.absent.contains(input);
      operands.push_back(isAbsent ? Value() : lookup(input, scope));
    } catch (const Poisoned &) {
      isPoisoned = true;
    }
  }
  if (isPoisoned)
    throw Poisoned{};
  // The name, and inside of it what reports say.
  Location about = NameLoc::get(builder.getStringAttr(describe(message, operands)));
  Location location = NameLoc::get(builder.getStringAttr(nodeName(message)), about);
  Node node(*this, scope, message, version, location);
  node.operands.assign(operands.begin(), operands.end());
  node.results.resize(message.output_size());
  node.resultLabels.resize(message.output_size());
  if (function != functions.end()) {
    callFunction(*function->second, node);
  } else {
    for (Value operand : node.operands)
      if (operand && labels.count(operand) && !(row && row->keepsLabels))
        refuse("operands that are maps are not supported here");
    for (Value operand : node.operands)
      if (operand && maps.count(operand) && !(row && row->takesMaps))
        refuse("operands that are maps are not supported here",
               "inputs that are maps go to DictVectorizer or CastMap");
    if (isCustom) {
      importCustom(node, domain);
    } else {
      checkSchema(node, domain);
      row->import(node);
      checkResults(node, domain);
    }
  }
  for (int i = 0; i < message.output_size(); ++i) {
    const std::string &name = message.output(i);
    if (name.empty())
      continue;
    if (!node.results[i])
      refuse("output " + Twine(i) + " ('" + name + "') is not supported");
    LabelsPtr kept = node.resultLabels[i];
    if (!kept && row && row->keepsLabels && !node.operands.empty())
      kept = node.labels(0);
    if (kept)
      labels[node.results[i]] = kept;
    define(name, node.results[i], scope);
  }
}

void Reader::callFunction(const proto::FunctionProto &function, Node &node) {
  Scope inner;
  inner.depth = node.scope.depth + 1;
  if (inner.depth > options.maxDepth)
    stop(labelOf(node.message),
         "functions and subgraphs are nested deeper than " + Twine(options.maxDepth));
  Opsets opsets = readOpsets(function.opset_import());
  if (opsets.empty())
    opsets = *node.scope.opsets;
  inner.opsets = &opsets;
  AttributeMap attributes;
  for (const auto &attribute : function.attribute_proto())
    attributes[attribute.name()] = &attribute;
  for (const auto &attribute : node.message.attribute())
    if (const auto *resolved = node.attribute(attribute.name()))
      attributes[attribute.name()] = resolved;
  inner.attributes = &attributes;
  if ((int)node.inputs() > function.input_size())
    refuse("function '" + function.name() + "' takes " + Twine(function.input_size()) +
           " inputs, but is given " + Twine(node.inputs()));
  for (int i = 0; i < function.input_size(); ++i)
    if (node.has(i))
      define(function.input(i), node.in(i), inner);
    else
      inner.absent.insert(function.input(i));
  readDeclared(function.value_info(), inner);
  size_t before = problems.count();
  readNodes(function.node(), inner);
  if (problems.count() != before)
    throw Poisoned{};
  for (int i = 0; i < function.output_size() && i < node.message.output_size(); ++i)
    if (node.wants(i))
      node.set(i, lookup(function.output(i), inner));
}

SmallVector<Value> Reader::readSubgraph(const proto::GraphProto &graph, const Scope &parent,
                                        ArrayRef<Value> inputs) {
  Scope inner;
  inner.parent = &parent;
  inner.opsets = parent.opsets;
  inner.attributes = parent.attributes;
  inner.depth = parent.depth + 1;
  if (inner.depth > options.maxDepth)
    stop("graph '" + graph.name() + "'",
         "functions and subgraphs are nested deeper than " + Twine(options.maxDepth));
  if ((int)inputs.size() != graph.input_size())
    refuse("the subgraph '" + graph.name() + "' takes " + Twine(graph.input_size()) +
           " inputs, but is given " + Twine(inputs.size()));
  size_t before = problems.count();
  for (auto [value, input] : llvm::zip(inputs, graph.input()))
    define(input.name(), value, inner);
  readDeclared(graph.value_info(), inner);
  readDeclared(graph.output(), inner);
  readInitializers(graph, inner);
  readNodes(graph.node(), inner);
  if (problems.count() != before)
    throw Poisoned{};
  SmallVector<Value> outputs;
  for (const auto &output : graph.output())
    outputs.push_back(lookup(output.name(), inner));
  return outputs;
}

} // namespace heddle::onnx
