// Typical: kept in the module, so that whatever is cut out or printed takes them along.

#include "compiler/graph/Typical.h"

#include "compiler/graph/ragged/Ragged.h"

using namespace mlir;

namespace heddle::graph {

/// A tensor has at most 2^47 bytes.
static constexpr int64_t kMostTypical = int64_t(1) << 40;

std::optional<int64_t> typicalSymbol(Operation *at, StringRef symbol) {
  auto module = isa<ModuleOp>(at) ? cast<ModuleOp>(at) : at->getParentOfType<ModuleOp>();
  auto sizes = module ? module->getAttrOfType<DictionaryAttr>(kTypicalAttr) : DictionaryAttr();
  auto size = sizes ? sizes.getAs<IntegerAttr>(symbol) : IntegerAttr();
  return size ? std::optional(size.getInt()) : std::nullopt;
}

/// Typical value of a symbol: a row's size has that of `size`, a sum that of all rows.
static std::optional<int64_t> typicalOf(Operation *at, StringRef symbol,
                                        std::optional<int64_t> other) {
  if (auto summed = summedBy(symbol)) {
    Dim rows = *summed * Dim::symbol(rowsOf(*summed));
    return rows.evaluate([&](StringRef name) { return typicalOf(at, name, other); });
  }
  auto known = typicalSymbol(at, rowsOf(symbol).empty() ? symbol : symbol.split('(').first);
  return known ? known : other;
}

std::optional<int64_t> knownTypicalSize(Operation *at, const Dim &dim) {
  return dim.evaluate([&](StringRef symbol) { return typicalOf(at, symbol, std::nullopt); });
}

int64_t typicalSize(Operation *at, const Dim &dim, int64_t other) {
  if (auto constant = dim.constant())
    return std::max<int64_t>(*constant, 0);
  auto size = dim.evaluate([&](StringRef symbol) { return typicalOf(at, symbol, other); });
  return std::max<int64_t>(size.value_or(other), 0);
}

std::string setTypicalSizes(ModuleOp module, ArrayRef<std::string> sizes) {
  if (sizes.empty())
    return "";
  llvm::SetVector<StringRef> symbols;
  SmallVector<std::string> names;
  for (BlockArgument input : module.lookupSymbol<func::FuncOp>("main").getArguments())
    for (const Dim &dim : dimsOf(input))
      dim.collectSymbols(names);
  symbols.insert(names.begin(), names.end());
  NamedAttrList typical;
  for (const std::string &text : sizes) {
    auto [name, number] = StringRef(text).split('=');
    int64_t size;
    if (number.getAsInteger(10, size) || size < 1 || size > kMostTypical)
      return "'--typical " + text + "' must be a name and a size from 1 to 2^40, such as seq=128";
    if (!symbols.contains(name))
      return "'--typical " + text + "': no input has a size '" + name.str() + "'; " +
             (symbols.empty() ? "all sizes of inputs are constant"
                              : "there are: " + llvm::join(symbols, ", "));
    typical.set(name, IntegerAttr::get(IntegerType::get(module.getContext(), 64), size));
  }
  module->setAttr(kTypicalAttr, typical.getDictionary(module.getContext()));
  return "";
}

} // namespace heddle::graph
