// Versions: see Versions.h.

#include "compiler/plan/Versions.h"

#include "compiler/mechanism/Versions.h"

using namespace mlir;

namespace heddle::plan {

using graph::Dim;

/// The symbols in the types of all that the group reads and makes.
static SmallVector<std::string> symbolsOf(graph::GroupOp group) {
  SmallVector<std::string> names;
  auto collect = [&](Value value) {
    if (isa<RankedTensorType>(value.getType()))
      for (const Dim &dim : graph::dimsOf(value))
        dim.collectSymbols(names);
  };
  group.getBody().walk([&](Operation *op) {
    llvm::for_each(op->getOperands(), collect);
    llvm::for_each(op->getResults(), collect);
  });
  return names;
}

std::string whyNoCondition(graph::GroupOp group, const std::map<std::string, int64_t> &when) {
  if (when.empty())
    return "its 'when' names no size, so that nothing after it would ever be taken";
  SmallVector<std::string> known = symbolsOf(group);
  std::string symbols = known.empty() ? "none" : llvm::join(known, ", ");
  for (auto &[text, most] : when) {
    std::optional<Dim> size = Dim::parse(text);
    if (!size)
      return "'" + text + "' is no size; write one of the group's symbols (" + symbols +
             "), or an expression of them";
    if (size->constant())
      return "'" + text + "' is always the same; write a size of the group's symbols: " + symbols;
    for (const std::string &symbol : size->symbolNames())
      if (!llvm::is_contained(known, symbol))
        return "'" + text + "' is no size of the group, whose symbols are: " + symbols;
    if (most < 0)
      return "'" + text + "' is at most " + std::to_string(most) + ", but no size is negative";
  }
  return "";
}

llvm::Error applyChoice(const Choice &choice, graph::GroupOp group) {
  group.setDevice(choice.device ? std::optional<uint64_t>(choice.device) : std::nullopt);
  Builder builder(group.getContext());
  if (choice.isShort)
    group.setPrecisionAttr(builder.getStringAttr(graph::GroupOp::kShort));
  if (!choice.card)
    return llvm::Error::success();
  SmallVector<Attribute> versions;
  for (const Version &version : choice.versions) {
    if (llvm::Error error = warehouse::apply(*choice.card, group, version.knobs))
      return error;
    NamedAttrList when;
    for (auto &[size, most] : version.when)
      when.set(size, builder.getI64IntegerAttr(most));
    NamedAttrList schedule(group.getScheduleAttr());
    schedule.set(mechanism::kWhen, when.getDictionary(group.getContext()));
    if (version.isShort)
      schedule.set(mechanism::kPrecision,
                   builder.getStringAttr(*version.isShort ? graph::GroupOp::kShort
                                                          : graph::GroupOp::kExact));
    versions.push_back(schedule.getDictionary(group.getContext()));
  }
  if (llvm::Error error = warehouse::apply(*choice.card, group, choice.knobs))
    return error;
  if (versions.empty())
    return llvm::Error::success();
  NamedAttrList schedule(group.getScheduleAttr());
  schedule.set(mechanism::kVersions, builder.getArrayAttr(versions));
  group.setScheduleAttr(schedule.getDictionary(group.getContext()));
  return llvm::Error::success();
}

} // namespace heddle::plan
