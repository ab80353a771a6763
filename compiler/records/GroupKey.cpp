// GroupKey: the text of the group as a program of its own, with all that does not decide its speed
// made equal.

#include "compiler/records/GroupKey.h"

#include "compiler/graph/Typical.h"
#include "compiler/graph/edit/CutOut.h"
#include "compiler/graph/edit/Sizes.h"
#include "compiler/mechanism/Product.h"

#include "llvm/Support/SHA256.h"

using namespace mlir;

namespace heddle::records {

/// Names of a group's mechanism and of its gates in the text of a key.
static constexpr StringLiteral kKind = "kind", kGates = "gates";

/// How a matrix is kept, without its numbers.
static Attribute kindOf(graph::StoredAttr stored) {
  Builder b(stored.getContext());
  return b.getArrayAttr({TypeAttr::get(stored.getCodes().getElementType()),
                         b.getI64IntegerAttr(stored.getBlock()),
                         b.getBoolAttr(bool(stored.getZeros()))});
}

/// Constants of one type become one constant: which numbers a model has learned decides nothing.
static void forgetValues(ModuleOp module) {
  module.walk([&](graph::ConstantOp constant) {
    auto type = cast<RankedTensorType>(constant.getType());
    if (auto stored = dyn_cast<graph::StoredAttr>(constant.getValue()))
      constant->setAttr("stored", kindOf(stored));
    if (type.getElementType().isSignlessIntOrFloat())
      constant.setValueAttr(
          DenseElementsAttr::get(type, Builder(constant).getZeroAttr(type.getElementType())));
  });
}

static void forgetChoice(graph::GroupOp group) {
  group.setName("group");
  group.clearChoice();
  group.removeRegionAttr();
}

/// Names what the group is made for as the first records do, whose keys stay valid.
static void keepWords(graph::GroupOp group) {
  StringAttr kind = group.getMechanismAttr();
  bool isContraction = mechanism::of(group) == &mechanism::kContraction;
  if (isContraction && mechanism::isReadInParts(mechanism::opsOf(group.getBody().front())))
    kind = StringAttr::get(group.getContext(), kGates);
  group.removeMechanismAttr();
  if (kind)
    group->setAttr(kKind, kind);
}

void readWords(graph::GroupOp group) {
  auto kind = dyn_cast_or_null<StringAttr>(group->removeAttr(kKind));
  if (kind)
    group.setMechanism(kind == kGates ? StringRef(mechanism::kContraction.name) : kind.getValue());
}

GroupKey keyOf(graph::GroupOp group) {
  graph::CutOut cut = graph::cutOut(group, [](Value) { return ElementsAttr(); });
  GroupKey key;
  llvm::StringMap<std::string> names;
  graph::substituteSymbols(*cut.module, [&](StringRef symbol) -> std::optional<graph::Dim> {
    auto [known, isNew] = names.try_emplace(symbol, "$" + std::to_string(names.size()));
    if (isNew)
      key.symbols.push_back(symbol.str());
    return graph::Dim::symbol(known->second);
  });
  for (StringRef hint : {StringRef(graph::kTypicalAttr), StringRef(graph::kThresholdsAttr)})
    (*cut.module)->removeAttr(hint); // no record depends on it
  forgetValues(*cut.module);
  forgetChoice(cut.group());
  keepWords(cut.group());
  for (auto [i, value] : llvm::enumerate(cut.outside))
    if (auto constant = graph::ownConstant(value)) {
      auto stored = dyn_cast<graph::StoredAttr>(constant);
      cut.main().setArgAttr(i, "heddle.constant",
                            stored ? kindOf(stored) : UnitAttr::get(group.getContext()));
    }
  llvm::raw_string_ostream stream(key.text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(16).elideLargeResourceString(16);
  cut.module->print(stream, flags);
  key.hash = hashOf(stream.str());
  return key;
}

std::string hashOf(StringRef text) {
  return "sha256:" + llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), true);
}

} // namespace heddle::records
