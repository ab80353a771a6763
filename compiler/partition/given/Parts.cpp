// Parts: numbers as attributes, which copies of ops keep.

#include "compiler/partition/given/Parts.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace heddle::partition {

static constexpr StringLiteral kPart = "heddle.part";

static std::string nameOf(Operation *op) { return graph::sourceName(op->getLoc()); }

void numberParts(func::FuncOp function) {
  llvm::StringMap<int64_t> counts;
  Builder builder(function.getContext());
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != function && !isa<graph::ConstantOp>(op))
      op->setAttr(kPart, builder.getI64IntegerAttr(counts[nameOf(op)]++));
  });
}

std::pair<std::string, int64_t> partOf(Operation *op) {
  auto number = op->getAttrOfType<IntegerAttr>(kPart);
  return {nameOf(op), number ? number.getInt() : -1};
}

std::map<std::string, Parts> takeParts(func::FuncOp function) {
  std::map<std::string, Parts> all;
  function.walk([&](graph::GroupOp group) {
    for (Operation &op : group.getBody().front().without_terminator())
      if (auto [node, number] = partOf(&op); number >= 0)
        all[group.getName().str()][node].insert(number);
  });
  function.walk([](Operation *op) { op->removeAttr(kPart); });
  return all;
}

} // namespace heddle::partition
