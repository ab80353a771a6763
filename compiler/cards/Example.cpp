// Example: what a group reads becomes arguments, and its sizes are said by theirs alone.

#include "compiler/cards/Example.h"

#include "compiler/graph/edit/Sizes.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace heddle::cards {

/// Constants of a model that are in the card's text; larger ones become arguments.
static constexpr int64_t kMostWritten = 16;

static bool isWritten(graph::ConstantOp constant) {
  auto value = dyn_cast<DenseElementsAttr>(graph::codesOf(constant.getValue()));
  return value && (value.isSplat() || value.getNumElements() <= kMostWritten);
}

/// Whether the value says which elements of another tensor are read or written.
static bool isIndex(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *reader = use.getOwner();
    return use.getOperandNumber() == 1 && (graph::isGather(reader) || graph::isScatter(reader));
  });
}

/// Every size that is an argument's, or a result's inside of the example.
static void forEachSize(func::FuncOp example,
                        llvm::function_ref<void(const graph::Dim &, bool isArgument)> each) {
  for (Type type : example.getArgumentTypes())
    for (const graph::Dim &dim : graph::dimsOf(type))
      each(dim, true);
  example.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      for (const graph::Dim &dim : graph::dimsOf(type))
        each(dim, false);
  });
}

/// Makes each size that the model computes from other sizes a symbol of its own, as an example gets
/// it. False if other sizes of the group follow from the symbols in it.
static bool nameSizes(func::FuncOp example) {
  std::vector<std::pair<graph::Dim, graph::Dim>> names;
  forEachSize(example, [&](const graph::Dim &dim, bool isArgument) {
    if (isArgument && !dim.constant() && !dim.symbolName() &&
        llvm::none_of(names, [&](const auto &known) { return known.first == dim; }))
      names.emplace_back(dim, graph::Dim::symbol("size" + std::to_string(names.size())));
  });
  auto nameOf = [&](const graph::Dim &dim) {
    for (const auto &[from, to] : names)
      if (dim == from)
        return to;
    return dim;
  };
  SmallVector<std::string> bound, used;
  forEachSize(example, [&](const graph::Dim &dim, bool isArgument) {
    nameOf(dim).collectSymbols(isArgument ? bound : used);
  });
  bool isClosed = llvm::all_of(
      used, [&](const std::string &symbol) { return llvm::is_contained(bound, symbol); });
  if (isClosed)
    graph::replaceDims(example, nameOf);
  return isClosed;
}

/// Gives all symbols one value, the first that leaves each size a loop: one of 1 has none.
static void fixSizes(func::FuncOp example) {
  for (int64_t value : {17, 33, 65, 129, 257, 513, 1025}) {
    auto fixed = [&](const graph::Dim &dim) {
      return dim.substitute([&](StringRef) { return std::optional(graph::Dim(value)); });
    };
    bool isLooped = true;
    forEachSize(example, [&](const graph::Dim &dim, bool) {
      isLooped &= dim.constant() || fixed(dim).constant().value_or(0) > 1;
    });
    if (isLooped)
      return graph::replaceDims(example, fixed);
  }
}

std::string exampleOf(graph::GroupOp group) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(group.getContext()));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto example =
      builder.create<func::FuncOp>(group.getLoc(), "example", builder.getFunctionType({}, {}));
  Block *block = example.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(group.getBody(), captured);
  IRMapping mapping;
  std::vector<NamedAttrList> attributes;
  for (Value value : captured) {
    auto constant = value.getDefiningOp<graph::ConstantOp>();
    if (constant && isWritten(constant)) {
      mapping.map(value, builder.clone(*constant)->getResult(0));
      continue;
    }
    mapping.map(value, block->addArgument(value.getType(), group.getLoc()));
    NamedAttrList &ofArgument = attributes.emplace_back();
    if (constant)
      ofArgument.set("heddle.constant", builder.getUnitAttr());
    auto range = [&](int64_t low, int64_t high) {
      ofArgument.set("heddle.range", builder.getI64ArrayAttr({low, high}));
    };
    auto numbers = constant ? graph::constantIntegers(value) : std::nullopt;
    if (numbers && !numbers->empty())
      range(*llvm::min_element(*numbers), *llvm::max_element(*numbers));
    else if (isIndex(value))
      range(-1, 0); // inside of every tensor that is not empty
  }
  for (Operation &op : group.getBody().front().without_terminator())
    builder.clone(op, mapping);
  SmallVector<Value> results;
  for (Value result : group.getBody().front().getTerminator()->getOperands())
    results.push_back(mapping.lookup(result));
  builder.create<func::ReturnOp>(group.getLoc(), results);
  example.setType(
      builder.getFunctionType(block->getArgumentTypes(), ValueRange(results).getTypes()));
  for (auto [i, ofArgument] : llvm::enumerate(attributes))
    example.setArgAttrs(i, ofArgument.getDictionary(builder.getContext()));
  if (!nameSizes(example))
    fixSizes(example);
  std::string text, indented;
  llvm::raw_string_ostream(text) << *example;
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  for (StringRef line : lines)
    indented += ("  " + line + "\n").str();
  return indented;
}

} // namespace heddle::cards
