// OpFuzz: an op of the dialect with operands, attributes and results that bytes decide. Its shape
// rule and its verifier take it or refuse it with a message, whatever it is; what they take is
// folded, seen as loops, and read as it was written. A result type that is inferred from names of
// sizes is that which is inferred from the sizes themselves.
//
// `./dev fuzz-ops` builds and runs this.

#include "compiler/graph/LoopNest.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace heddle::graph {
namespace {

using Sizes = llvm::function_ref<std::optional<int64_t>(llvm::StringRef)>;

/// Nobody listens: a message for each op would take most of the time.
struct Silent : ScopedDiagnosticHandler {
  explicit Silent(MLIRContext *context)
      : ScopedDiagnosticHandler(context, [](Diagnostic &) { return success(); }) {}
};

/// The dialect in a context, which keeps all types and attributes: it is made anew now and then.
struct Dialect {
  Dialect() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<GraphDialect, func::FuncDialect>();
    for (RegisteredOperationName name : context.getRegisteredOperations())
      if (name.getDialectNamespace() == "graph")
        names.push_back(name);
  }

  static Dialect &get() {
    static std::unique_ptr<Dialect> dialect;
    static int64_t runs = 0;
    if (runs++ % 4096 == 0)
      dialect = std::make_unique<Dialect>();
    return *dialect;
  }

  MLIRContext context;
  std::vector<RegisteredOperationName> names;
};

class Maker {
public:
  Maker(MLIRContext &context, ArrayRef<uint8_t> bytes) : rest(bytes), builder(&context) {}

  int64_t upTo(int64_t most) { return next() % (most + 1); }

  /// Small numbers, and those at the ends of 32 and 64 bits and at powers of two.
  int64_t number() {
    uint8_t byte = next();
    if (byte < 160)
      return byte % 16 - 4;
    uint64_t power = uint64_t(1) << (byte % 64);
    int64_t sign = byte % 2 ? 1 : -1;
    return static_cast<int64_t>(sign * (power - (byte % 3 == 0)));
  }

  Dim dim() {
    switch (upTo(7)) {
    case 0:
      return Dim::symbol("a");
    case 1:
      return Dim::symbol("b");
    case 2:
      return Dim::symbol("a") * Dim(2) + Dim(number());
    case 3:
      return (Dim::symbol("b") + Dim(number())).floorDiv(Dim(2));
    case 4:
      return Dim(number());
    default:
      return Dim(upTo(6));
    }
  }

  DimVector dims() {
    DimVector found;
    for (int64_t rank = upTo(5), i = 0; i < rank; ++i) {
      Dim size = dim();
      auto constant = size.constant();
      found.push_back(size.isTooLarge() || (constant && *constant < 0) ? Dim(1) : size);
    }
    return found;
  }

  Type element() {
    switch (upTo(9)) {
    case 0:
      return builder.getI64Type();
    case 1:
      return builder.getI1Type();
    case 2:
      return builder.getI8Type();
    case 3:
      return builder.getIntegerType(8, /*isSigned=*/false);
    case 4:
      return builder.getF64Type();
    case 5:
      return StringType::get(builder.getContext());
    case 6:
      return builder.getI32Type();
    default:
      return builder.getF32Type();
    }
  }

  /// Often one of those that came before: shapes that fit have the most to tell.
  RankedTensorType type() {
    int64_t choice = upTo(3);
    if (!types.empty() && choice < 2)
      return types[upTo(types.size() - 1)];
    if (!types.empty() && choice == 2) {
      DimVector changed(dimsOf(types.back()));
      if (!changed.empty())
        changed[upTo(changed.size() - 1)] = Dim(upTo(6));
      types.push_back(tensorOf(builder.getContext(), changed, types.back().getElementType()));
    } else {
      DimVector sizes = dims();
      types.push_back(tensorOf(builder.getContext(), sizes, element()));
    }
    return types.back();
  }

  Attribute attribute() {
    static constexpr llvm::StringLiteral words[] = {
        "sum",        "mean",       "max",  "min",     "prod",   "average", "constant",
        "reflect",    "edge",       "wrap", "nearest", "linear", "cubic",   "floor",
        "asymmetric", "half_pixel", "add",  "none",    "",       "x"};
    switch (upTo(9)) {
    case 0:
      return builder.getBoolAttr(upTo(1));
    case 1:
      return builder.getF64FloatAttr(number());
    case 2:
      return builder.getStringAttr(words[upTo(std::size(words) - 1)]);
    case 3:
      return DimsAttr::get(builder.getContext(), names());
    case 4:
      return DenseF64ArrayAttr::get(builder.getContext(), many<double>());
    case 5: {
      auto numbers = many<int64_t>();
      return builder.getI64TensorAttr(numbers);
    }
    case 6:
      return builder.getI64IntegerAttr(number());
    default:
      return DenseI64ArrayAttr::get(builder.getContext(), many<int64_t>());
    }
  }

private:
  uint8_t next() {
    uint8_t byte = rest.empty() ? 0 : rest.front();
    rest = rest.empty() ? rest : rest.drop_front();
    return byte;
  }

  template <typename T> SmallVector<T> many() {
    SmallVector<T> found(upTo(7));
    for (T &each : found)
      each = static_cast<T>(number());
    return found;
  }

  SmallVector<StringAttr> names() {
    SmallVector<StringAttr> found;
    for (int64_t count = upTo(6), i = 0; i < count; ++i)
      found.push_back(builder.getStringAttr(dim().str()));
    return found;
  }

  ArrayRef<uint8_t> rest;
  Builder builder;
  SmallVector<RankedTensorType> types;
};

/// How many operands an op takes, if all of its kind take as many.
std::optional<unsigned> operandsOf(OperationName name) {
  if (name.hasTrait<OpTrait::OneOperand>())
    return 1;
  if (name.hasTrait<OpTrait::NOperands<2>::Impl>())
    return 2;
  if (name.hasTrait<OpTrait::NOperands<3>::Impl>())
    return 3;
  return std::nullopt;
}

RankedTensorType withSizes(RankedTensorType type, Sizes sizes) {
  DimVector known;
  for (const Dim &dim : dimsOf(type)) {
    auto value = dim.evaluate(sizes);
    if (!value || *value < 0)
      return {};
    known.push_back(Dim(*value));
  }
  return tensorOf(type.getContext(), known, type.getElementType());
}

/// An op's properties; none if its attributes are not of their kinds.
class Properties {
public:
  Properties(OperationName name, DictionaryAttr attributes)
      : name(name), storage(name.getOpPropertyByteSize() / sizeof(std::max_align_t) + 1) {
    if (!name.getOpPropertyByteSize())
      return;
    name.initOpProperties(get(), OpaqueProperties(nullptr));
    areSet = succeeded(name.setOpPropertiesFromAttribute(name, get(), attributes, [&] {
      return emitError(UnknownLoc::get(attributes.getContext()));
    }));
  }
  ~Properties() {
    if (name.getOpPropertyByteSize())
      name.destroyOpProperties(get());
  }

  OpaqueProperties get() { return storage.data(); }
  explicit operator bool() const { return areSet; }

private:
  OperationName name;
  std::vector<std::max_align_t> storage;
  bool areSet = true;
};

/// The types that the op infers; none if it refuses.
SmallVector<Type> infer(OperationName name, ValueRange operands, DictionaryAttr attributes) {
  SmallVector<Type> types;
  auto *interface = name.getInterface<InferTypeOpInterface>();
  Properties properties(name, attributes);
  MLIRContext *context = attributes.getContext();
  if (!interface || operandsOf(name) != operands.size() || !properties ||
      failed(interface->inferReturnTypes(context, UnknownLoc::get(context), operands, attributes,
                                         properties.get(), {}, types)))
    types.clear();
  return types;
}

/// The error in the types inferred of names, beside those of their sizes; "" if there is none.
std::string compareInference(OperationName name, Block &block, DictionaryAttr attributes,
                             ArrayRef<Type> inferred, int64_t a, int64_t b) {
  auto sizes = [&](llvm::StringRef symbol) {
    return std::optional<int64_t>(symbol == "a" ? a : b);
  };
  Block known;
  for (BlockArgument argument : block.getArguments()) {
    RankedTensorType type = withSizes(cast<RankedTensorType>(argument.getType()), sizes);
    if (!type)
      return "";
    known.addArgument(type, argument.getLoc());
  }
  SmallVector<Type> found = infer(name, known.getArguments(), attributes);
  if (found.size() != inferred.size())
    return "";
  for (auto [symbolic, exact] : llvm::zip(inferred, found)) {
    // Attributes may name sizes, too, and so the results of known operands; sums of numbers may be
    // too large where those of names have cancelled.
    RankedTensorType expected = withSizes(cast<RankedTensorType>(symbolic), sizes);
    RankedTensorType also = withSizes(cast<RankedTensorType>(exact), sizes);
    if (expected && also && expected != also) {
      std::string text;
      llvm::raw_string_ostream(text) << name << " infers " << symbolic << ", but " << exact
                                     << " for a = " << a << ", b = " << b;
      return text;
    }
  }
  return "";
}

std::string textOf(ModuleOp module) {
  std::string text;
  OpPrintingFlags flags;
  llvm::raw_string_ostream stream(text);
  module.print(stream, flags.printGenericOpForm());
  return text;
}

std::string problemOf(ArrayRef<uint8_t> bytes) {
  Dialect &dialect = Dialect::get();
  MLIRContext &context = dialect.context;
  Silent silent(&context);
  Maker maker(context, bytes);
  OperationName name = dialect.names[maker.upTo(dialect.names.size() - 1)];
  Location location = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto function = builder.create<func::FuncOp>(location, "f", builder.getFunctionType({}, {}));
  Block *block = function.addEntryBlock();
  int64_t most = operandsOf(name).value_or(maker.upTo(4));
  for (int64_t i = 0; i < most; ++i)
    block->addArgument(maker.type(), location);
  function.setType(builder.getFunctionType(block->getArgumentTypes(), {}));
  builder.setInsertionPointToEnd(block);
  OperationState state(location, name);
  state.addOperands(block->getArguments());
  NamedAttrList attributes;
  for (StringAttr attribute : name.getAttributeNames())
    if (maker.upTo(7))
      attributes.set(attribute, maker.attribute());
  DictionaryAttr dictionary = attributes.getDictionary(&context);
  if (!Properties(name, dictionary))
    return "";
  if (name.getOpPropertyByteSize())
    state.propertiesAttr = dictionary;
  SmallVector<Type> inferred = infer(name, block->getArguments(), dictionary);
  if (!inferred.empty()) {
    state.addTypes(inferred);
    int64_t a = maker.upTo(9), b = std::max<int64_t>(maker.number(), 0);
    if (auto problem = compareInference(name, *block, dictionary, inferred, a, b); !problem.empty())
      return problem;
  } else {
    for (int64_t count = name.hasTrait<OpTrait::OneResult>() ? 1 : maker.upTo(3), i = 0; i < count;
         ++i)
      state.addTypes(maker.type());
  }
  Operation *op = Operation::create(state);
  builder.insert(op);
  builder.create<func::ReturnOp>(location);
  if (failed(verify(*module)))
    return "";
  std::string text = textOf(*module);
  auto again = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!again)
    return "this was accepted, but cannot be read:\n" + text;
  text = textOf(*again); // now with the defaults of attributes
  again = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!again || textOf(*again) != text)
    return "this is not read as it was written:\n" + text;
  if (op->getNumRegions() == 0 && op->getNumResults() == 1)
    loopNestOf(op);
  SmallVector<OpFoldResult> folded;
  (void)op->fold(folded);
  return "";
}

} // namespace
} // namespace heddle::graph

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string problem = heddle::graph::problemOf({data, size});
  if (problem.empty())
    return 0;
  llvm::errs() << problem << "\n";
  abort();
}
