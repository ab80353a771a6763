// Importer: the module around the main graph: its inputs, its outputs, its options.

#include "compiler/onnx/Importer.h"

#include "compiler/graph/edit/Sharing.h"
#include "compiler/graph/edit/Weights.h"
#include "compiler/onnx/Caches.h"
#include "compiler/onnx/Reader.h"
#include "compiler/onnx/ops/attention/Past.h"
#include "compiler/onnx/ranks/InputRank.h"
#include "compiler/support/Printable.h"

#include "mlir/IR/Verifier.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace heddle::onnx {

void loadDialects(MLIRContext &context) {
  context.loadDialect<graph::GraphDialect, func::FuncDialect>();
}

llvm::Error addShapeOption(ImportOptions &options, StringRef text) {
  auto [name, sizes] = text.rsplit('=');
  SmallVector<StringRef> parts;
  sizes.split(parts, 'x');
  std::vector<std::string> texts;
  for (StringRef part : parts) {
    int64_t number;
    bool isNumber = !part.getAsInteger(10, number);
    if (part.empty() || (isNumber && number < 0))
      return makeError(ErrorCode::Usage,
                       "shape '" + text + "' is not of the form NAME=1x3x?xWIDTH or SIZE=4");
    texts.push_back(part.str());
  }
  if (name.empty())
    return makeError(ErrorCode::Usage,
                     "shape '" + text + "' is not of the form NAME=1x3x?xWIDTH or SIZE=4");
  options.shapes.emplace_back(name.str(), texts);
  return llvm::Error::success();
}

/// A name that the text of a Dim can hold; "" when nothing in it tells sizes apart.
static std::string symbolText(StringRef name) {
  if (llvm::none_of(name, [](char c) { return llvm::isAlnum(c); }))
    return "";
  std::string text;
  for (char c : name)
    text += llvm::isAlnum(c) || c == '_' || c == '.' || c == '$' ? c : '_';
  if (llvm::isDigit(text[0]) || text[0] == '$')
    text.insert(0, "_");
  return text;
}

/// Input of how many tokens buffers hold.
static constexpr StringLiteral kPastLength = "past_length";

namespace {
class MainGraph {
public:
  MainGraph(MLIRContext &context, ModelFile &file, const ImportOptions &options)
      : builder(&context), file(file), options(options), problems(file.name),
        module(ModuleOp::create(NameLoc::get(builder.getStringAttr(file.name)))) {}

  llvm::Expected<OwningOpRef<ModuleOp>> read() {
    (*module)->setAttr("graph.model", builder.getStringAttr(file.name));
    builder.setInsertionPointToEnd(module->getBody());
    main = builder.create<func::FuncOp>(module->getLoc(), "main", builder.getFunctionType({}, {}));
    builder.setInsertionPointToEnd(main.addEntryBlock());
    {
      Reader reader(builder, file, options, problems);
      try {
        readBody(reader);
      } catch (const Stopped &) {
      }
    }
    if (problems.any())
      return problems.take();
    SmallVector<StringRef> external;
    for (const auto &[location, mapping] : file.external)
      external.push_back(location);
    if (!external.empty())
      (*module)->setAttr(kExternalFiles, builder.getStrArrayAttr(external));
    std::string said;
    ScopedDiagnosticHandler handler(builder.getContext(), [&](Diagnostic &diagnostic) {
      said += "\n" + diagnostic.str();
      return success();
    });
    if (failed(verify(*module)))
      return makeError(ErrorCode::Internal,
                       "internal error: the import of '" + file.name + "' is not valid:" + said);
    return std::move(module);
  }

private:
  /// A past that is a part of a buffer.
  struct Past {
    std::string name;
    Buffer buffer;
    Type element; // that the model declares
    Dim tokens;   // as it does
    int64_t axis;
  };

  void readBody(Reader &reader) {
    const proto::GraphProto &graph = file.model->graph();
    Opsets opsets = reader.readOpsets(file.model->opset_import());
    if (opsets.empty() && file.model->ir_version() < 3)
      opsets[""] = 1;
    Scope scope;
    scope.opsets = &opsets;
    checkOptions(graph);
    findCaches(graph, reader);
    llvm::StringSet<> initializers;
    for (const auto &tensor : graph.initializer())
      initializers.insert(tensor.name());
    for (const auto &tensor : graph.sparse_initializer())
      initializers.insert(tensor.values().name());
    // Before IR version 4 every initializer was listed as an input as well.
    for (const auto &input : graph.input())
      if (!initializers.contains(input.name()))
        readInput(input, reader, scope);
    definePasts(reader, scope);
    reader.readDeclared(graph.value_info(), scope);
    reader.readDeclared(graph.output(), scope);
    reader.readInitializers(graph, scope);
    std::vector<Reader::Step> steps = std::move(openRanks);
    llvm::append_range(steps, reader.stepsOf(graph.node(), scope));
    setOutputs(reader.readSteps(
        steps, scope, [&](const Scope &scope) { return readOutputs(graph, reader, scope); }));
    addUpdates(reader);
    SmallVector<StringRef> strings(reader.strings.texts.begin(), reader.strings.texts.end());
    if (!strings.empty())
      (*module)->setAttr(graph::kStrings, builder.getStrArrayAttr(strings));
  }

  /// Finds the sizes that callers fix, by the name of an input or of a size, or as dimension 0 of
  /// input x by "x.0".
  void checkOptions(const proto::GraphProto &graph) {
    if (options.shapes.empty())
      return;
    llvm::StringMap<const proto::ValueInfoProto *> inputs;
    llvm::StringSet<> symbols;
    std::string knownInputs, knownSizes; // for messages
    auto list = [](std::string &names, StringRef name) {
      names += (names.empty() ? "" : ", ") + name.str();
    };
    for (const auto &input : graph.input()) {
      if (inputs.try_emplace(input.name(), &input).second)
        list(knownInputs, input.name());
      for (int i = 0; i < input.type().tensor_type().shape().dim_size(); ++i)
        if (std::string symbol = symbolOf(input, i);
            !symbol.empty() && symbols.insert(symbol).second)
          list(knownSizes, symbol);
    }
    for (const auto &[name, sizes] : options.shapes) {
      auto [stem, number] = StringRef(name).rsplit('.');
      std::string symbol = symbolText(name);
      int dim;
      if (const proto::ValueInfoProto *input = inputs.lookup(stem))
        if (!number.getAsInteger(10, dim) && dim >= 0 &&
            dim < input->type().tensor_type().shape().dim_size())
          symbol = symbolOf(*input, dim);
      int64_t fixed;
      if (inputs.contains(name))
        continue;
      if (sizes.size() == 1 && symbols.contains(symbol)) {
        if (!StringRef(sizes[0]).getAsInteger(10, fixed))
          fixedSizes[symbol] = fixed;
        continue;
      }
      problems.add("", {"the model has no input or size '" + name + "'",
                        "its inputs: " + knownInputs + "; its sizes that are open: " +
                            (knownSizes.empty() ? "none" : knownSizes)});
    }
  }

  void findCaches(const proto::GraphProto &graph, Reader &reader) {
    if (!options.kvCache)
      return;
    caches = cachesOf(graph);
    reader.extenders = caches.extenders;
    constexpr StringLiteral kWayOut =
        "leave '--kv-cache' out, and give present outputs back as past inputs";
    for (const auto &past : caches.pasts)
      if (past.second.extended > 1)
        problems.add("input '" + past.first().str() + "'",
                     {"two nodes extend it, so that '--kv-cache' cannot keep both in one buffer",
                      kWayOut.str()});
    if (caches.pasts.empty())
      problems.add("",
                   {"no input holds keys or values of past tokens, for which '--kv-cache' makes "
                    "room: an input that an attention op, TensorScatter or a Concat extends "
                    "to an output",
                    kWayOut.str()});
  }

  /// The symbol of an input's dimension: the name that it has, or the input's and its number; empty
  /// where it is a constant.
  static std::string symbolOf(const proto::ValueInfoProto &input, int dim) {
    const auto &declared = input.type().tensor_type().shape().dim(dim);
    if (declared.has_dim_value() && declared.dim_value() >= 0)
      return "";
    std::string name = symbolText(declared.dim_param());
    return name.empty() ? symbolText(input.name()) + "." + std::to_string(dim) : name;
  }

  Dim sizeOf(const std::string &name) const {
    auto found = fixedSizes.find(name);
    return found == fixedSizes.end() ? Dim::symbol(name) : Dim(found->second);
  }

  /// The sizes of an input; nullopt if its rank is any.
  std::optional<DimVector> inputDims(const proto::ValueInfoProto &input) {
    const auto &type = input.type().tensor_type();
    const std::vector<std::string> *asked = nullptr;
    for (const auto &[name, sizes] : options.shapes)
      if (name == input.name())
        asked = &sizes;
    std::optional<size_t> found;
    if (type.has_shape())
      found = type.shape().dim_size();
    else if (asked)
      found = asked->size();
    else
      found = rankByReaders(file.model->graph(), input.name());
    if (!found)
      return std::nullopt;
    size_t rank = *found;
    if (asked && asked->size() != rank)
      refuse("its rank is " + Twine(rank) + ", but the shape that was asked for it has " +
             Twine(asked->size()) + " sizes");
    DimVector dims;
    for (size_t i = 0; i < rank; ++i) {
      std::string fresh = symbolText(input.name()) + "." + std::to_string(i);
      std::string name;
      int64_t number = -1;
      if (type.has_shape()) {
        checkName(type.shape().dim(i).dim_param());
        name = symbolText(type.shape().dim(i).dim_param());
        if (type.shape().dim(i).has_dim_value())
          number = type.shape().dim(i).dim_value();
      }
      Dim declared = number >= 0 ? Dim(number) : sizeOf(name.empty() ? fresh : name);
      if (asked && (*asked)[i] != "?") {
        int64_t fixed;
        bool isNumber = !StringRef((*asked)[i]).getAsInteger(10, fixed);
        Dim wanted = isNumber ? Dim(fixed) : Dim::symbol(symbolText((*asked)[i]));
        if (declared.constant() && wanted != declared)
          refuse("dimension " + Twine(i) + " is " + declared.str() + ", but " + wanted.str() +
                 " was asked for it");
        declared = wanted;
      }
      dims.push_back(declared);
    }
    return dims;
  }

  /// Checks a name that callers pass and run-time messages repeat.
  static void checkName(const std::string &name) {
    if (support::hasControls(name))
      refuse("the name '" + name + "' has control characters");
    if (!llvm::json::isUTF8(name))
      refuse("the name '" + name + "' is no UTF-8, as names in ONNX are", "rename it in the model");
  }

  void readInput(const proto::ValueInfoProto &input, Reader &reader, Scope &scope) {
    try {
      if (input.name().empty())
        refuse("an input of the graph has no name");
      checkName(input.name());
      const auto &type = input.type();
      if (Type list = reader.listType(type))
        return reader.define(input.name(), addArgument(input.name(), list), scope);
      if (type.has_map_type())
        return readMap(input, reader, scope);
      if (!type.has_tensor_type())
        refuse(type.has_sparse_tensor_type() ? "inputs that are sparse tensors are not supported"
                                             : "it has no type");
      int dataType = type.tensor_type().elem_type();
      Type element = elementType(builder.getContext(), dataType);
      if (!element)
        refuse("inputs of " + dataTypeName(dataType) + " are not supported");
      std::optional<DimVector> dims = inputDims(input);
      if (!dims)
        return readAnyRank(input, element, reader);
      for (const Dim &dim : *dims)
        if (dim.constant().value_or(0) > INT32_MAX)
          refuse("its size " + dim.str() + " is too large");
      if (auto past = caches.pasts.find(input.name()); past != caches.pasts.end())
        return readPast(input.name(), *dims, element, past->second, reader, scope);
      reader.define(input.name(), addArgument(input.name(), *dims, element), scope);
    } catch (const Refusal &refusal) {
      problems.add("input '" + input.name() + "'", refusal);
      scope.values.try_emplace(input.name(), Value());
    }
  }

  Value addArgument(const std::string &name, Type type) {
    if (!madeInputs.insert(name).second)
      refuse("'" + name + "' is defined twice",
             "a name may have only one value in a graph; maps and '--kv-cache' add inputs, too");
    inputNames.push_back(name);
    return main.getBody().addArgument(type, NameLoc::get(builder.getStringAttr(name)));
  }
  Value addArgument(const std::string &name, ArrayRef<Dim> dims, Type element) {
    return addArgument(name, graph::tensorOf(builder.getContext(), dims, element));
  }

  /// Adds a buffer for as many tokens as it has room for, and for its scales if it has some.
  void readPast(const std::string &name, DimVector dims, Type element, const Caches::Past &past,
                Reader &reader, Scope &scope) {
    Dim tokens = dims[past.axis];
    dims[past.axis] = capacityOf(tokens);
    Buffer buffer{addArgument(name, dims, bufferType(element)), {}};
    if (options.kvCacheType == "int8") {
      dims.pop_back();
      buffer.scales = addArgument(name + ".scales", dims, builder.getF32Type());
      scales.insert(inputNames.back());
    }
    if (past.isAsLong)
      return pasts.push_back({name, buffer, element, tokens, past.axis});
    Emitter e(builder, buffer.numbers.getLoc(), reader.diagnostics);
    Value read = readBuffer(e, buffer, past.axis, dims[past.axis], element);
    reader.buffers[read] = buffer;
    reader.define(name, read, scope);
  }

  /// The type of a buffer's numbers, of keys and values that the model declares as `element`.
  Type bufferType(Type element) {
    if (options.kvCacheType.empty())
      return element;
    if (!isa<FloatType>(element))
      refuse("it holds " + nameOf(element) + ", but '--kv-cache-type' is for floats");
    return llvm::StringSwitch<Type>(options.kvCacheType)
        .Case("f32", builder.getF32Type())
        .Case("bf16", builder.getBF16Type())
        .Case("f16", builder.getF16Type())
        .Case("int8", builder.getIntegerType(8));
  }

  /// Defines pasts that are parts of buffers. How many tokens they have the size of another input
  /// says, or else a new one, `past_length`.
  void definePasts(Reader &reader, Scope &scope) {
    Location location = NameLoc::get(builder.getStringAttr(kPastLength));
    Emitter e(builder, location, reader.diagnostics);
    std::optional<Dim> told;
    auto isTold = [&](const Dim &tokens) {
      return llvm::any_of(main.getBody().getArguments(), [&](Value argument) {
        return llvm::is_contained(graph::dimsOf(argument), tokens);
      });
    };
    auto lengthOf = [&](const Past &past) {
      if (isTold(past.tokens))
        return past.tokens;
      if (!told) {
        Value length = addArgument(kPastLength.str(), e.tensor({Dim(1)}, e.i64()));
        reader.define(kPastLength, length, scope);
        told = e.bindSizes(length, "past")[0];
      }
      return *told;
    };
    for (const Past &past : pasts) {
      try {
        Value part = readBuffer(e, past.buffer, past.axis, lengthOf(past), past.element);
        reader.buffers[part] = past.buffer;
        reader.define(past.name, part, scope);
      } catch (const Refusal &refusal) {
        problems.add("input '" + past.name + "'", refusal);
        scope.values.try_emplace(past.name, Value());
      }
    }
  }

  /// The size of a buffer for past tokens, whose number the model declares.
  Dim capacityOf(const Dim &declared) const {
    if (declared.constant() && !declared.isConstant(options.kvCache))
      refuse("it holds " + declared.str() + " past tokens, but '--kv-cache' asks for " +
             Twine(options.kvCache));
    return Dim(options.kvCache);
  }

  /// A tensor whose rank each run tells: the model has a version for each rank that its nodes take.
  void readAnyRank(const proto::ValueInfoProto &input, Type element, Reader &reader) {
    constexpr int64_t kMost = kMostVersions - 1;
    Location location = NameLoc::get(builder.getStringAttr(input.name()));
    Type type = graph::listTensor(builder.getContext(), graph::kAnyRank, element, -2);
    Value list = addArgument(input.name(), type);
    openRanks.push_back([this, &input, &reader, list, element, location](Scope &scope) {
      Emitter e(builder, location, reader.diagnostics);
      int64_t rank = 0;
      try {
        while (rank < kMost && !reader.ask(e, hasRank(list, rank, input.name())))
          ++rank;
      } catch (const Refusal &refusal) { // refusal of a model that is to be trained
        problems.add("input '" + input.name() + "'", refusal);
        scope.values.try_emplace(input.name(), Value());
        return;
      }
      DimVector dims;
      for (int64_t i = 0; i < rank; ++i)
        dims.push_back(e.freshSymbol(symbolText(input.name())));
      reader.define(input.name(), e.typed<graph::ListAtOp>(e.tensor(dims, element), list), scope);
    });
  }

  /// Two vectors of one size, `NAME.keys` and `NAME.values`.
  void readMap(const proto::ValueInfoProto &input, Reader &reader, Scope &scope) {
    const auto &map = input.type().map_type();
    Type key = elementType(builder.getContext(), map.key_type());
    Type value = elementType(builder.getContext(), map.value_type().tensor_type().elem_type());
    if (!key || !value || !map.value_type().has_tensor_type())
      refuse("the values of a map must be tensors of a supported element type");
    DimVector dims = {Dim::symbol(symbolText(input.name()) + ".size")};
    Value keys = addArgument(input.name() + ".keys", dims, key);
    Value values = addArgument(input.name() + ".values", dims, value);
    reader.maps[keys] = {keys, values};
    reader.define(input.name(), keys, scope);
  }

  /// A list as the kind of list that the model says it is.
  Value declaredAs(const proto::ValueInfoProto &output, Value value, Reader &reader) {
    auto list = graph::listOf(value);
    Type declared = list && output.has_type() ? reader.listType(output.type()) : Type();
    if (!declared)
      return value;
    StringRef kind = cast<graph::ListType>(getElementTypeOrSelf(declared)).getKind();
    Emitter emitter(builder, NameLoc::get(builder.getStringAttr(output.name())),
                    reader.diagnostics);
    return emitter.asList(value, kind, list.getRank());
  }

  Reader::Outputs readOutputs(const proto::GraphProto &graph, Reader &reader, const Scope &scope) {
    Reader::Outputs outputs;
    auto &[values, attributes] = outputs;
    if (graph.output_size() == 0)
      problems.add("", {"the graph has no outputs", ""});
    for (const auto &output : graph.output()) {
      if (caches.presents.contains(output.name()))
        continue;
      try {
        checkName(output.name());
        Value value = declaredAs(output, reader.lookup(output.name(), scope), reader);
        if (reader.maps.count(value))
          refuse("an input that is a map cannot be an output");
        SmallVector<NamedAttribute> named = {
            builder.getNamedAttr("graph.name", builder.getStringAttr(output.name()))};
        if (LabelsPtr labels = reader.labels.lookup(value)) {
          named.push_back(
              builder.getNamedAttr("graph.encoding", builder.getStringAttr(labels->encoding)));
          named.push_back(
              builder.getNamedAttr("graph.labels", builder.getArrayAttr(labels->values)));
        }
        values.push_back(value);
        attributes.push_back(builder.getDictionaryAttr(named));
      } catch (const Refusal &refusal) {
        problems.add("output '" + output.name() + "'", refusal);
      } catch (const Poisoned &) {
      }
    }
    for (const std::string &name : options.alsoResults) {
      if (llvm::any_of(graph.output(), [&](auto &output) { return output.name() == name; }))
        continue;
      try {
        values.push_back(reader.lookup(name, scope));
        attributes.push_back(builder.getDictionaryAttr(
            {builder.getNamedAttr("graph.name", builder.getStringAttr(name))}));
      } catch (const Refusal &refusal) {
        problems.add("tensor '" + name + "'", refusal);
      } catch (const Poisoned &) {
      }
    }
    return outputs;
  }

  void setOutputs(const Reader::Outputs &outputs) {
    builder.create<func::ReturnOp>(main.getLoc(), outputs.values);
    main.setType(builder.getFunctionType(main.getBody().getArgumentTypes(),
                                         ValueRange(outputs.values).getTypes()));
    for (auto [i, name] : llvm::enumerate(inputNames)) {
      main.setArgAttr(i, "graph.name", builder.getStringAttr(name));
      if (caches.pasts.contains(name) || scales.contains(name))
        main.setArgAttr(i, graph::kBuffer, builder.getUnitAttr());
    }
    main.setAllResultAttrs(llvm::to_vector(llvm::map_range(
        outputs.attributes, [](Attribute attribute) { return cast<DictionaryAttr>(attribute); })));
  }

  /// Adds the updated running statistics to the results.
  void addUpdates(Reader &reader) {
    auto made = main.getBody().back().getTerminator();
    for (auto &[weight, next] : reader.statistics) {
      auto name = weight->getAttrOfType<StringAttr>(graph::kWeight);
      made->insertOperands(made->getNumOperands(), next);
      main.insertResult(main.getNumResults(), next.getType(),
                        builder.getDictionaryAttr({builder.getNamedAttr("graph.name", name),
                                                   builder.getNamedAttr(graph::kUpdates, name)}));
    }
  }

  OpBuilder builder;
  ModelFile &file;
  const ImportOptions &options;
  Problems problems;
  OwningOpRef<ModuleOp> module;
  func::FuncOp main;
  std::vector<std::string> inputNames;
  Caches caches;            // that stay in buffers
  llvm::StringSet<> scales; // inputs that are buffers, too
  llvm::StringSet<> madeInputs;
  std::vector<Past> pasts;
  std::vector<Reader::Step> openRanks; // define inputs whose rank the run tells
  llvm::StringMap<int64_t> fixedSizes; // requested by callers, by symbol
};
} // namespace

static llvm::Expected<OwningOpRef<ModuleOp>>
importFile(MLIRContext &context, llvm::Expected<ModelFile> file, const ImportOptions &options) {
  if (!file)
    return file.takeError();
  for (const auto &[name, bytes] : options.functions)
    if (llvm::Error error = addFunctions(*file, bytes, name))
      return std::move(error);
  loadDialects(context);
  return MainGraph(context, *file, options).read();
}

llvm::Expected<OwningOpRef<ModuleOp>> importModel(MLIRContext &context, StringRef path,
                                                  const ImportOptions &options) {
  return importFile(context, openModel(path, options), options);
}

llvm::Expected<OwningOpRef<ModuleOp>> importModelFromBytes(MLIRContext &context,
                                                           ArrayRef<char> bytes, StringRef name,
                                                           const ImportOptions &options) {
  return importFile(context, parseModel(bytes, name, options), options);
}

} // namespace heddle::onnx
