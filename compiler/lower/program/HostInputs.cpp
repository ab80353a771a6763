// HostInputs: symbols that values of inputs are, which are known before anything is allocated; and
// outputs that may take the memory of an input, which is read before it is overwritten.

#include "compiler/graph/edit/Sharing.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/program/Host.h"

using namespace mlir;

namespace heddle::lower {

/// Whether a cast keeps every value.
static bool isWidening(Type from, Type to) {
  return from.isIntOrIndex() && to.isIntOrIndex() &&
         from.getIntOrFloatBitWidth() <= to.getIntOrFloatBitWidth() &&
         (from.isUnsignedInteger() || !to.isUnsignedInteger());
}

/// Where in the inputs the elements of a small tensor of integers stand, if they do: through views,
/// casts, and parts and sequences of vectors.
std::optional<Host::InputElements> Host::inputElementsOf(Value value) const {
  if (auto input = dyn_cast<BlockArgument>(value)) {
    auto type = cast<RankedTensorType>(value.getType());
    if (input.getOwner()->getParentOp() != model || !type.hasStaticShape() ||
        !type.getElementType().isIntOrIndex())
      return std::nullopt;
    InputElements elements;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      elements.push_back({input, i});
    return elements;
  }
  Operation *op = value.getDefiningOp();
  if (auto group = dyn_cast<graph::GroupOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    return inputElementsOf(group.getBody().front().getTerminator()->getOperand(number));
  }
  if (isa<graph::ReshapeOp>(op))
    return inputElementsOf(op->getOperand(0));
  if (isa<graph::CastOp>(op) &&
      isWidening(graph::elementOf(op->getOperand(0)), graph::elementOf(value)))
    return inputElementsOf(op->getOperand(0));
  if (graph::rankOf(value) != 1)
    return std::nullopt;
  if (auto slice = dyn_cast<graph::SliceOp>(op)) {
    auto whole = inputElementsOf(slice.getX());
    auto start = graph::dimsOf(slice.getStarts())[0].constant(),
         size = graph::dimsOf(value)[0].constant();
    if (!whole || !start || !size)
      return std::nullopt;
    InputElements elements;
    for (int64_t i = 0; i < *size; ++i)
      elements.push_back((*whole)[*start + i * slice.getSteps()[0]]);
    return elements;
  }
  if (auto concat = dyn_cast<graph::ConcatOp>(op)) {
    InputElements elements;
    for (Value part : concat.getXs()) {
      auto found = inputElementsOf(part);
      if (!found)
        return std::nullopt;
      elements.append(*found);
    }
    return elements;
  }
  return std::nullopt;
}

void Host::findBoundByValues() {
  for (auto op : model.getBody().front().getOps<graph::BindSizesOp>())
    if (auto elements = inputElementsOf(op.getX())) {
      for (const Dim &symbol : graph::dimsOf(op.getSymbols())) {
        inputSymbols[*symbol.symbolName()] = program.symbols.size();
        program.symbols.push_back(*symbol.symbolName());
      }
      boundByValues.insert({op, std::move(*elements)});
    }
  program.bindsValues = !boundByValues.empty();
}

/// heddle_program_bind.
void Host::writeBind() {
  beginFunction("heddle_program_bind", 1);
  call = function.getArgument(0);
  Type i64 = builder.getI64Type(), pointer = code->pointerType();
  Value inputs = area(program::Area::Inputs), given = area(program::Area::Symbols);
  for (auto &[op, elements] : boundByValues) {
    auto bind = cast<graph::BindSizesOp>(op);
    std::string message =
        "node '" + graph::sourceName(op->getLoc()) + "': " + bind.getMessage().str();
    for (auto [symbol, element] : llvm::zip(graph::dimsOf(bind.getSymbols()), elements)) {
      Value address = code->at(inputs, pointer, code->number(element.input.getArgNumber()));
      Value memory = builder.create<program::LoadOp>(code->loc, pointer, address, 8);
      Value size = loadInteger(graph::elementOf(element.input), memory, element.index);
      code->when(code->less(size, code->number(0)), [&] { fail(message, size, size); });
      code->store(i64, code->max(size, code->number(0)), given,
                  code->number(inputSymbols.at(*symbol.symbolName())));
    }
  }
  Value status = builder.create<program::StatusOp>(code->loc, call);
  builder.create<func::ReturnOp>(code->loc, status);
}

/// In heddle_program_run, if it was not done before.
void Host::bindSizes(graph::BindSizesOp op) {
  if (boundByValues.contains(op))
    return;
  std::string message = "node '" + graph::sourceName(op.getLoc()) + "': " + op.getMessage().str();
  for (auto [i, symbol] : llvm::enumerate(graph::dimsOf(op.getSymbols()))) {
    Value size = readInteger(op.getX(), i);
    code->when(code->less(size, code->number(0)), [&] { fail(message, size, size); });
    symbols[*symbol.symbolName()] = code->max(size, code->number(0));
  }
}

/// In heddle_program_sizes: whether nobody has bound the symbols that values are, since the caller
/// asks without them; they count as 0 then. Null if there are none.
Value Host::areUnbound() {
  Value isUnbound;
  for (auto &[op, elements] : boundByValues)
    for (const Dim &dim : graph::dimsOf(cast<graph::BindSizesOp>(op).getSymbols())) {
      Value &symbol = symbols[*dim.symbolName()], isNegative = code->less(symbol, code->number(0));
      isUnbound =
          isUnbound ? builder.create<arith::OrIOp>(code->loc, isUnbound, isNegative) : isNegative;
      symbol = code->max(symbol, code->number(0));
    }
  return isUnbound;
}

/// Whether shapes of inputs alone decide the size.
bool Host::isOfShapes(const Dim &dim) const {
  SmallVector<std::string> names;
  dim.collectSymbols(names);
  return llvm::none_of(names, [&](const std::string &name) {
    return llvm::any_of(boundByValues, [&](auto &bound) {
      return llvm::is_contained(graph::dimsOf(cast<graph::BindSizesOp>(bound.first).getSymbols()),
                                Dim::symbol(name));
    });
  });
}

std::optional<unsigned> Host::sharedInput(int64_t output) const {
  func::FuncOp function = model; // whose methods are not const
  auto input = function.getResultAttrOfType<IntegerAttr>(output, graph::kShares);
  return input ? std::optional<unsigned>(input.getInt()) : std::nullopt;
}

/// Whether element i of all that depends on `value` in its group needs element i of it alone.
static bool isReadInPlace(Value value, Operation *group) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (!group->isProperAncestor(user) || user->hasTrait<OpTrait::IsTerminator>())
      return true;
    return graph::isElementwise(user) && user->getNumResults() == 1 &&
           graph::dimsOf(user->getResult(0)) == graph::dimsOf(value) &&
           isReadInPlace(user->getResult(0), group);
  });
}

/// Whether the group of `root` may write it where `input` lies: nobody reads the input afterwards,
/// and the group itself reads it at the elements that it writes.
bool Host::mayOverwrite(BlockArgument input, Value root) const {
  auto group = root.getDefiningOp<graph::GroupOp>();
  if (!group || firstWrite(group) != steps.at(group).first ||
      scheduleOf(group).mechanism != &mechanism::kPointwise ||
      graph::dimsOf(root) != graph::dimsOf(input))
    return false;
  for (Operation *user : input.getUsers()) {
    auto reader = dyn_cast_or_null<graph::GroupOp>(group->getBlock()->findAncestorOpInBlock(*user));
    bool isBefore = reader && reader != group && steps.at(reader).second < steps.at(group).first;
    if (reader != group && !isBefore)
      return false;
  }
  return isReadInPlace(input, group);
}

/// Copies of inputs that are outputs themselves, where others take the place of the input: one an
/// output, most of them null.
Values Host::savedInputs(func::ReturnOp op) {
  Values saved(op.getNumOperands());
  for (auto [i, output] : llvm::enumerate(op.getOperands())) {
    auto input = dyn_cast<BlockArgument>(rootOf(output));
    bool isOverwritten = false;
    for (int64_t other = 0; input && other < (int64_t)op.getNumOperands(); ++other)
      isOverwritten |= other != (int64_t)i && sharedInput(other) == input.getArgNumber();
    if (!isOverwritten)
      continue;
    Value bytes = checkedBytes(output);
    saved[i] = alloc(bytes);
    copy(saved[i], pointerOf(output), bytes);
  }
  return saved;
}

} // namespace heddle::lower
