// Emitter: ops, constants and element-wise helpers.

#include "compiler/onnx/Emitter.h"

#include "compiler/graph/edit/Words.h"

#include "compiler/graph/edit/Build.h"
#include "compiler/graph/edit/Rounding.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace heddle::onnx {

void refuse(const Twine &message, const Twine &note) {
  throw Refusal{message.str(), note.str(), ErrorCode::Refused};
}

void DimVector::refuseDimension(size_t i, size_t rank) {
  if (i > rank) // counted from the end
    i = 0;
  refuse("an operand has rank " + Twine(rank) + ", but needs rank " + Twine(i + 1) + " or more");
}

std::string nameOf(Type element) {
  if (graph::isFloat4(element))
    return "float4e2m1";
  if (graph::isFloat8Scale(element))
    return "float8e8m0";
  if (graph::isString(element))
    return "string";
  if (auto list = dyn_cast<graph::ListType>(element))
    return list.getKind().str() + " of " + nameOf(list.getElement());
  std::string text;
  llvm::raw_string_ostream(text) << element;
  return text;
}

std::string textOf(ArrayRef<Dim> dims) {
  std::string text = "[";
  for (const Dim &dim : dims)
    text += (text.size() > 1 ? ", " : "") + dim.str();
  return text + "]";
}

void OpEmitter::refuseDiagnostics() {
  std::string message = diagnostics.empty() ? "an op of the graph dialect refused it" : diagnostics;
  diagnostics.clear();
  refuse(graph::plainly(message));
}

// One node becomes no more: lengths that an attribute spells out one by one.
static constexpr int64_t kMostOps = 20000;

Operation *OpEmitter::emit(OperationState &state) {
  if (llvm::is_contained(state.operands, Value()))
    refuse("an input that it needs is missing");
  if (++made > kMostOps)
    refuse("its attributes ask for more than " + Twine(kMostOps) + " operations",
           "they are out of any useful range");
  Operation *op = builder.create(state);
  check(op);
  return op;
}

/// Whether the op looks at elements as numbers, or at tensors that are no list.
static bool isArithmetic(Operation *op) {
  using namespace graph;
  if (isa<SelectOp, BitcastOp>(op))
    return false;
  if (isa<EqualOp, NotEqualOp>(op))
    return !isString(elementOf(op->getOperand(0)));
  return op->hasTrait<Elementwise>() || op->hasTrait<SumsProducts>() || op->hasTrait<OnImages>() ||
         op->hasTrait<Reduction>() || op->hasTrait<ArgReduction>() ||
         isa<CumsumOp, TopkOp, ResizeOp>(op);
}

/// Bytes of the largest tensor that a model may spell out: no address space of today holds more.
static constexpr int64_t kMostBytes = int64_t(1) << 47;

/// The one place where sizes that a node makes are tested: none is negative, and those that are
/// known fit in memory.
static void checkSizes(Value result) {
  if (!isa<RankedTensorType>(result.getType()))
    return;
  DimVector dims = dimsOf(result);
  int64_t product = graph::bytesOf(elementOf(result));
  bool fits = true;
  for (const Dim &dim : dims) {
    if (dim.isTooLarge())
      refuse("a size of its result is beyond 2^63, or a formula of too many nested terms",
             "check the sizes, pads and repeats of the node, or give sizes by --dim");
    if (dim.constant().value_or(0) < 0)
      refuse("its result would have the shape " + textOf(dims) + ", in which a size is negative");
    int64_t factor = std::max<int64_t>(dim.constant().value_or(1), 1);
    fits &= !__builtin_mul_overflow(product, factor, &product) && product <= kMostBytes;
  }
  if (!fits)
    refuse("its result would have the shape " + textOf(dims) + ", which is larger than any memory",
           "at most 2^47 bytes are possible; sizes of 0 count as 1");
}

void OpEmitter::check(Operation *op) {
  if (isArithmetic(op))
    for (Value operand : op->getOperands())
      if (Type element = elementOf(operand);
          graph::isBits(element) || isa<graph::ListType>(element))
        refuse("arithmetic on " + nameOf(element) + " is not supported",
               graph::isString(element) ? "it has strings"
               : graph::isBits(element) ? "cast it to a wider float first"
                                        : "it is a sequence or an optional");
  diagnostics.clear();
  for (Value result : op->getResults())
    checkSizes(result);
  if (failed(verify(op, /*verifyRecursively=*/false)))
    refuseDiagnostics();
}

SmallVector<Value> OpEmitter::beginRegion(Operation *op, unsigned number,
                                          ArrayRef<Type> arguments) {
  Block *block = builder.createBlock(&op->getRegion(number), {}, arguments,
                                     SmallVector<Location>(arguments.size(), location));
  return {block->args_begin(), block->args_end()};
}

void OpEmitter::yield(ArrayRef<Value> values) { builder.create<graph::YieldOp>(location, values); }

NamedAttribute OpEmitter::named(StringRef name, Attribute value) {
  return builder.getNamedAttr(name, value);
}
NamedAttribute OpEmitter::integer(StringRef name, int64_t value) {
  return named(name, builder.getI64IntegerAttr(value));
}
NamedAttribute OpEmitter::flag(StringRef name, bool value) {
  return named(name, builder.getBoolAttr(value));
}
NamedAttribute OpEmitter::text(StringRef name, StringRef value) {
  return named(name, builder.getStringAttr(value));
}
NamedAttribute OpEmitter::list(StringRef name, ArrayRef<int64_t> values) {
  return named(name, builder.getDenseI64ArrayAttr(values));
}
NamedAttribute OpEmitter::dims(StringRef name, ArrayRef<Dim> values) {
  return named(name, graph::dimsAttr(context(), values));
}

void Emitter::requireOneElement(Value x, Value y) {
  if (elementOf(x) != elementOf(y))
    refuse("operands have element types " + nameOf(elementOf(x)) + " and " + nameOf(elementOf(y)) +
           ", but they must be equal");
}

Value Emitter::select(Value condition, Value x, Value y) {
  requireOneElement(x, y);
  if (!elementOf(condition).isInteger(1))
    refuse("the condition has element type " + nameOf(elementOf(condition)) + ", but must be bool");
  broadcastTogether({&condition, &x, &y});
  return infer<graph::SelectOp>({condition, x, y});
}

Value TensorEmitter::constant(ElementsAttr value) {
  return typed<graph::ConstantOp>(value.getShapedType(), {}, {named("value", value)});
}

Value TensorEmitter::scalar(Type element, double value) {
  if (isa<FloatType>(element))
    return constant(graph::scalarAttr(element, value));
  if (!(std::abs(value) < 9.2e18)) {
    std::string number;
    llvm::raw_string_ostream(number) << value;
    refuse("the number " + number + " is beyond elements of " + nameOf(element));
  }
  return integerScalar(element, static_cast<int64_t>(value));
}

Value TensorEmitter::integerScalar(Type element, int64_t value) {
  Type storage = graph::storageOf(element);
  llvm::APInt code = llvm::APInt(64, value, true).sextOrTrunc(storage.getIntOrFloatBitWidth());
  auto codes = DenseElementsAttr::get(RankedTensorType::get({}, storage), code);
  return constant(graph::constantAttr(RankedTensorType::get({}, element), codes));
}

Value TensorEmitter::lowest(Type element) {
  if (isa<FloatType>(element))
    return scalar(element, -std::numeric_limits<double>::infinity());
  unsigned width = graph::storageOf(element).getIntOrFloatBitWidth();
  return integerScalar(element, element.isUnsignedInteger() ? 0 : llvm::minIntN(width));
}

Value TensorEmitter::integers(ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({(int64_t)values.size()}, i64());
  return constant(DenseElementsAttr::get(type, values));
}

Value TensorEmitter::full(ArrayRef<Dim> dims, Type element, double value) {
  return broadcast(scalar(element, value), dims);
}

Value TensorEmitter::sizes(ArrayRef<Dim> values) {
  return typed<graph::SizesOp>(RankedTensorType::get({(int64_t)values.size()}, i64()), {},
                               {dims("values", values)});
}

Value TensorEmitter::size(const Dim &value) {
  return typed<graph::SizesOp>(RankedTensorType::get({}, i64()), {}, {dims("values", value)});
}

Value TensorEmitter::iota(ArrayRef<Dim> dims, int64_t axis, Type element) {
  return typed<graph::IotaOp>(tensor(dims, element), {}, {integer("axis", axis)});
}

Value TensorEmitter::runSeed() {
  Type word = IntegerType::get(context(), 64, IntegerType::Unsigned);
  return typed<graph::RunSeedOp>(RankedTensorType::get({}, word), {}, {});
}

Dim OpEmitter::freshSymbol(StringRef stem) {
  return graph::freshSymbol(builder.getInsertionBlock()->getParentOp(), stem);
}

static constexpr int64_t kBoundElements = 1024;

static DimVector bind(Emitter &emitter, Value x, StringRef stem, const Twine &message,
                      Value told = {}) {
  auto type = cast<RankedTensorType>(x.getType());
  if (!type.hasStaticShape() || type.getNumElements() > kBoundElements)
    refuse("how many elements there are in '" + stem + "' is not known when the model is compiled",
           "give the input that holds them a constant size");
  DimVector symbols;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    symbols.push_back(emitter.freshSymbol(stem));
  OperationState state(emitter.location, graph::BindSizesOp::getOperationName(),
                       told ? ValueRange{x, told} : ValueRange{x}, TypeRange(),
                       {emitter.dims("symbols", symbols), emitter.text("message", message.str())});
  emitter.emit(state);
  return symbols;
}

DimVector Emitter::bindSizes(Value x, StringRef what) {
  if (auto known = shapeValue(x))
    return *known;
  return bind(*this, x, what, "'" + what + "' is %lld, but must not be negative");
}

DimVector Emitter::bindOffsets(Value x, StringRef what) {
  if (auto known = shapeValue(x))
    return *known;
  // A symbol is never negative, so an offset is the difference of two.
  x = cast(x, i64());
  DimVector up = bind(*this, max(x, 0), what, ""),
            down = bind(*this, max(unary<graph::NegOp>(x), 0), what, "");
  for (auto [above, below] : llvm::zip(up, down))
    above = above - below;
  return up;
}

void Emitter::requireNotNegative(Value x, const Twine &message, Value told) {
  if (auto known = shapeValue(x);
      known && llvm::all_of(*known, [](const Dim &dim) { return dim.isNeverNegative(); }))
    return;
  bind(*this, x, "check", message, told);
}

Type wideType(Emitter &e, Type element) {
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32 ? e.f32() : element;
}

Value narrowed(Emitter &e, Value x, Type element) {
  Value y = e.cast(x, element);
  if (y != x)
    if (auto cast = y.getDefiningOp<graph::CastOp>())
      cast->setAttr(graph::kOwnRounding, e.builder.getUnitAttr());
  return y;
}

Value Emitter::mean(Value x, ArrayRef<int64_t> axes, bool keepDims) {
  Type element = elementOf(x), wide = wideType(*this, element); // the count may not fit 16 bits
  Value sum = reduce<graph::ReduceSumOp>(cast(x, wide), axes, keepDims);
  Dim count(1);
  DimVector dims = dimsOf(x);
  for (int64_t axis : axes)
    count = count * dims[axis];
  if (auto number = count.constant())
    return narrowed(*this, div(sum, static_cast<double>(*number)), element);
  return narrowed(*this, div(sum, cast(size(count), wide)), element);
}

Value Emitter::softmax(Value x, ArrayRef<int64_t> axes) {
  Value shifted = sub(x, reduce<graph::ReduceMaxOp>(x, axes));
  Value powers = unary<graph::ExpOp>(shifted);
  return div(powers, reduce<graph::ReduceSumOp>(powers, axes));
}

} // namespace heddle::onnx
