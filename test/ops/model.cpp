// model: builds the graphs of the cases, and makes their numbers.

#include "test/ops/case.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"

#include <cmath>

using namespace mlir;

namespace heddle::ops {

/// Both graphs of a case, the compiled one and the oracle's, draw the same numbers.
static constexpr unsigned kSeed = 2024;

Tolerance Tolerance::close(Type element, double scale) {
  if (!isa<FloatType>(element))
    return exact();
  if (element.isF64())
    return {1e-10, 1e-11 * scale};
  if (element.isF32())
    return {1e-5, 1e-6 * scale};
  double unit = element.isF16() ? std::ldexp(1, -10) : std::ldexp(1, -7);
  return {4 * unit, 2 * unit * scale};
}

Model::Model(MLIRContext &context, bool takesWeights)
    : context(context), random(kSeed), takesWeights(takesWeights) {
  context.loadDialect<graph::GraphDialect, func::FuncDialect>();
  module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto main =
      builder.create<func::FuncOp>(module->getLoc(), "main", builder.getFunctionType({}, {}));
  block = main.addEntryBlock();
}

Type Model::element(StringRef name) {
  Type type = parseType(name, &context);
  assert(type && "a case names an element type that there is not");
  return type;
}

RankedTensorType Model::type(StringRef text) {
  auto [name, rest] = text.split('[');
  graph::DimVector dims;
  SmallVector<StringRef> pieces;
  rest.rtrim(']').split(pieces, ',', -1, /*KeepEmpty=*/false);
  std::string size; // of several pieces, as "max(a, b)" is
  for (StringRef piece : pieces) {
    size += piece;
    if (auto dim = graph::Dim::parse(StringRef(size).trim())) {
      dims.push_back(*dim);
      size.clear();
    } else {
      size += ',';
    }
  }
  assert(size.empty() && "a case names a size that there is not");
  return graph::tensorOf(&context, dims, element(name.trim()));
}

Value Model::input(StringRef text, Fill fill) {
  fills.push_back(fill);
  return block->addArgument(type(text), module->getLoc());
}

Value Model::constant(StringRef text, Fill fill) {
  RankedTensorType tensor = type(text);
  auto numbers = randomTensor(tensor.getElementType(), tensor.getShape(), fill, {}, random);
  return constant(graph::constantAttr(tensor, numbers.bytes()));
}

Value Model::weight(StringRef text, Fill fill) {
  return takesWeights ? input(text, fill) : constant(text, fill);
}

void addBoth(Cases &cases, Case one) {
  cases.push_back(one);
  one.name += " given";
  one.takesWeights = true;
  cases.push_back(std::move(one));
}

Value Model::constant(ElementsAttr value) {
  OpBuilder builder = OpBuilder::atBlockEnd(block);
  return builder.create<graph::ConstantOp>(module->getLoc(), value);
}

Value Model::scalar(StringRef element, double number) {
  return constant((element + "[]").str(), Fill::range(number, number));
}

Value Model::integers(ArrayRef<int64_t> numbers) {
  OpBuilder builder = OpBuilder::atBlockEnd(block);
  auto tensor = RankedTensorType::get(numbers.size(), builder.getI64Type());
  return builder.create<graph::ConstantOp>(module->getLoc(),
                                           DenseElementsAttr::get(tensor, numbers));
}

/// The result types that the op infers from its operands and attributes.
static SmallVector<Type> inferTypes(OperationName name, ArrayRef<Value> operands,
                                    DictionaryAttr attributes, Location location) {
  auto *infer = name.getInterface<InferTypeOpInterface>();
  assert(infer && "a case must give the result type of an op that does not infer it");
  std::vector<std::max_align_t> storage(name.getOpPropertyByteSize() / sizeof(std::max_align_t) +
                                        1);
  OpaqueProperties properties(storage.data());
  bool hasProperties = name.getOpPropertyByteSize() > 0;
  if (hasProperties) {
    name.initOpProperties(properties, OpaqueProperties(nullptr));
    auto error = [&] { return emitError(location); };
    if (failed(name.setOpPropertiesFromAttribute(name, properties, attributes, error)))
      llvm::report_fatal_error("a case gives wrong attributes");
  }
  SmallVector<Type> types;
  if (failed(infer->inferReturnTypes(location.getContext(), location, operands, attributes,
                                     properties, RegionRange(), types)))
    llvm::report_fatal_error(Twine("a case gives wrong operands to ") + name.getStringRef());
  if (hasProperties)
    name.destroyOpProperties(properties);
  return types;
}

Values Model::ops(StringRef name, ArrayRef<Value> operands, StringRef attributes,
                  ArrayRef<std::string> types) {
  OperationState state(module->getLoc(), ("graph." + name).str());
  state.addOperands(operands);
  auto dictionary = DictionaryAttr::get(&context);
  if (!attributes.empty())
    dictionary = cast<DictionaryAttr>(parseAttribute(("{" + attributes + "}").str(), &context));
  state.addAttributes(dictionary.getValue());
  for (const std::string &text : types)
    state.types.push_back(type(text));
  if (types.empty())
    state.addTypes(inferTypes(state.name, operands, dictionary, state.location));
  return OpBuilder::atBlockEnd(block).create(state)->getResults();
}

Value Model::op(StringRef name, ArrayRef<Value> operands, StringRef attributes, StringRef type) {
  std::vector<std::string> types;
  if (!type.empty())
    types.push_back(type.str());
  return ops(name, operands, attributes, types)[0];
}

Value Model::broadcastTo(Value x, Value like) {
  auto type = graph::tensorOf(&context, graph::dimsOf(like), graph::elementOf(x));
  return OpBuilder::atBlockEnd(block).create<graph::BroadcastOp>(module->getLoc(), type, x);
}

void Model::output(Value value) { output(value, Tolerance::close(graph::elementOf(value))); }

void Model::output(Value value, Tolerance tolerance) {
  results.push_back(value);
  tolerances.push_back(tolerance);
}

void Model::text(StringRef text, ArrayRef<Fill> given) {
  module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    llvm::report_fatal_error("the text of a case is not a module");
  fills.assign(given.begin(), given.end());
  block = nullptr;
  auto main = module->lookupSymbol<func::FuncOp>("main");
  for (Type type : main.getResultTypes())
    tolerances.push_back(Tolerance::close(cast<RankedTensorType>(type).getElementType()));
}

void Model::finish() {
  if (!block)
    return;
  OpBuilder builder = OpBuilder::atBlockEnd(block);
  builder.create<func::ReturnOp>(module->getLoc(), results);
  auto main = cast<func::FuncOp>(block->getParentOp());
  main.setType(builder.getFunctionType(block->getArgumentTypes(), ValueRange(results).getTypes()));
}

namespace {

/// Numbers that go wrong first; the large ones only where sums need not be close.
double specialOf(Type element, bool hasLarge, std::mt19937 &random) {
  if (auto type = dyn_cast<FloatType>(element)) {
    const double specials[] = {NAN,  INFINITY, -INFINITY, 0.0,   -0.0,  1.0,
                               -1.0, 0.5,      2.5,       60000, -60000};
    return specials[random() % (std::size(specials) - (hasLarge ? 0 : 2))];
  }
  const double ends[] = {
      reference::isUnsigned(element) ? double(reference::lowestOf<uint64_t>(element))
                                     : double(reference::lowestOf<int64_t>(element)),
      reference::isUnsigned(element) ? double(reference::highestOf<uint64_t>(element))
                                     : double(reference::highestOf<int64_t>(element)),
      0, 1, reference::isUnsigned(element) ? 2.0 : -1.0};
  return ends[random() % std::size(ends)];
}

} // namespace

reference::Tensor randomTensor(Type element, ArrayRef<int64_t> shape, const Fill &fill,
                               const Sizes &sizes, std::mt19937 &random) {
  reference::Tensor result = reference::Tensor::zeros(element, shape);
  double low = fill.low, high = fill.high;
  bool isOfSize = fill.kind == Fill::Index || fill.kind == Fill::Length;
  if (isOfSize) {
    auto dim = *graph::Dim::parse(fill.size);
    high = *dim.evaluate([&](StringRef symbol) -> std::optional<int64_t> {
      auto found = sizes.find(symbol.str());
      return found == sizes.end() ? std::nullopt : std::optional<int64_t>(found->second);
    });
    low = fill.kind == Fill::Index ? -high : 0;
    high = fill.kind == Fill::Index ? std::max(low, high - 1) : high;
  }
  bool isWhole = isa<IntegerType>(element) || isOfSize;
  if (isWhole && !isOfSize && fill.kind != Fill::Range)
    low *= 4, high *= 4;
  if (reference::isUnsigned(element) && low < 0 && !isOfSize)
    low = 0;
  if (element.isInteger(1))
    low = 0, high = 1;
  std::vector<double> numbers(result.count());
  for (double &number : numbers) {
    if (fill.kind == Fill::Any && random() % 4 == 0)
      number = specialOf(element, !fill.isShort, random);
    else if (isWhole)
      number = low + double(random() % uint64_t(high - low + 1));
    else
      number = low + (high - low) * (random() / 4294967296.0);
    if (fill.isShort && element.isF32())
      number = llvm::bit_cast<float>(llvm::bit_cast<uint32_t>(float(number)) & 0xffff0000);
  }
  reference::store<double>(result, numbers);
  return result;
}

} // namespace heddle::ops
