// Ragged: the names of sizes of rows and of their sums.

#include "compiler/graph/ragged/Ragged.h"

using namespace mlir;

namespace heddle::graph {

static constexpr StringLiteral kTotal = "total";

Dim rowSize(StringRef size, StringRef of) { return Dim::symbol((size + "(" + of + ")").str()); }

/// The word before the parenthesis, and what is inside; nothing of a plain symbol.
static std::pair<StringRef, StringRef> applied(StringRef symbol) {
  auto [word, rest] = symbol.split('(');
  return rest.consume_back(")") ? std::pair(word, rest) : std::pair(StringRef(), StringRef());
}

StringRef rowsOf(StringRef symbol) {
  auto [word, inside] = applied(symbol);
  return word == kTotal ? StringRef() : inside;
}

std::string rowsOf(const Dim &dim) {
  for (const std::string &name : dim.symbolNames())
    if (StringRef of = rowsOf(name); !of.empty())
      return of.str();
  return "";
}

std::string rowsOf(Type tensor) {
  auto ranked = dyn_cast<RankedTensorType>(tensor);
  auto named = ranked ? dyn_cast_or_null<DimsAttr>(ranked.getEncoding()) : DimsAttr();
  if (!named || llvm::none_of(named.getSizes(),
                              [](StringAttr size) { return size.getValue().contains('('); }))
    return "";
  for (const Dim &dim : dimsOf(tensor))
    if (std::string of = rowsOf(dim); !of.empty())
      return of;
  return "";
}

std::string rowsOf(Operation *op) {
  for (Type type : llvm::concat<Type>(llvm::to_vector(op->getOperandTypes()),
                                      llvm::to_vector(op->getResultTypes())))
    if (std::string of = rowsOf(type); !of.empty())
      return of;
  for (NamedAttribute attribute : op->getAttrs())
    if (auto dims = dyn_cast<DimsAttr>(attribute.getValue()))
      for (const Dim &dim : dimsOf(dims))
        if (std::string of = rowsOf(dim); !of.empty())
          return of;
  return "";
}

llvm::StringSet<> symbolsOf(TypeRange types) {
  llvm::StringSet<> symbols;
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      for (const Dim &dim : dimsOf(tensor))
        for (const std::string &name : dim.symbolNames())
          symbols.insert(name);
  return symbols;
}

bool joinsRows(Operation *op) {
  return isa<ReshapeOp>(op) &&
         rowsOf(op->getOperand(0).getType()) != rowsOf(op->getResult(0).getType());
}

static bool isOfRows(const Dim::Atom &atom) {
  return atom.kind == Dim::Kind::Symbol ? !rowsOf(atom.text).empty()
                                        : !rowsOf(*atom.lhs).empty() || !rowsOf(*atom.rhs).empty();
}

static Dim dimOf(const Dim::Atom &atom) { return *Dim::parse(atom.text); }

Dim overRows(const Dim &ofRow, StringRef of) {
  Dim sum;
  for (const auto &[product, coefficient] : ofRow.sum()) {
    Dim varying(1), common(coefficient);
    for (const Dim::Atom &atom : product)
      (isOfRows(atom) ? varying : common) = (isOfRows(atom) ? varying : common) * dimOf(atom);
    Dim rows = varying.constant() ? Dim::symbol(of)
                                  : Dim::symbol((kTotal + "(" + varying.str() + ")").str());
    sum = sum + common * rows;
  }
  return sum;
}

std::optional<Dim> summedBy(StringRef symbol) {
  auto [word, inside] = applied(symbol);
  return word == kTotal ? Dim::parse(inside) : std::nullopt;
}

Dim inRow(const Dim &dim, StringRef of) {
  return dim.substitute(
      [&](StringRef symbol) { return symbol == of ? std::optional(Dim(1)) : std::nullopt; });
}

DimVector inRow(ArrayRef<Dim> dims, StringRef of) {
  return llvm::map_to_vector<6>(dims, [&](const Dim &dim) { return inRow(dim, of); });
}

bool hasRows(ArrayRef<Dim> dims, StringRef of) {
  auto names = [&](const Dim &dim) { return llvm::is_contained(dim.symbolNames(), of); };
  if (dims.empty() || !names(dims[0]) || llvm::any_of(dims.drop_front(), names))
    return false;
  Dim ofRow = inRow(dims[0], of);
  return dims[0] == ofRow * Dim::symbol(of);
}

/// Sizes of rows, multiplied by the number of rows, are summed over them.
Dim elementCount(ArrayRef<Dim> dims) {
  Dim count(1);
  for (const Dim &dim : dims)
    count = count * dim;
  std::string of = rowsOf(count);
  if (of.empty() || !hasRows(dims, of))
    return count;
  return overRows(elementCount(inRow(dims, of)), of);
}

} // namespace heddle::graph
