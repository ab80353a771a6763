// CutOut: see CutOut.h. All stays in the context of the model, so weights are shared, not copied.

#include "compiler/graph/edit/CutOut.h"

#include "compiler/graph/Typical.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace heddle::graph {

GroupOp CutOut::group() {
  GroupOp found;
  module->walk([&](GroupOp each) { found = each; });
  return found;
}

ElementsAttr ownConstant(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant ? cast<ElementsAttr>(constant.getValue()) : ElementsAttr();
}

CutOut cutOut(ArrayRef<GroupOp> groups, llvm::function_ref<ElementsAttr(Value)> constantOf) {
  Location loc = groups.back()->getLoc();
  CutOut made{ModuleOp::create(loc), {}};
  auto model = groups.back()->getParentOfType<ModuleOp>();
  for (StringRef name : {StringRef(kTypicalAttr), StringRef(kThresholdsAttr)})
    if (Attribute carried = model ? model->getAttr(name) : nullptr)
      (*made.module)->setAttr(name, carried);
  OpBuilder builder = OpBuilder::atBlockEnd(made.module->getBody());
  auto main = builder.create<func::FuncOp>(loc, "main", builder.getFunctionType({}, {}));
  Block *block = main.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  IRMapping mapping;
  Operation *copy = nullptr;
  for (GroupOp group : groups) {
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(group.getBody(), captured);
    for (Value value : captured) {
      if (mapping.contains(value))
        continue;
      if (ElementsAttr constant = constantOf(value)) {
        mapping.map(value, builder.create<ConstantOp>(loc, constant));
        continue;
      }
      mapping.map(value, block->addArgument(value.getType(), loc));
      made.outside.push_back(value);
    }
    copy = builder.clone(*group, mapping);
  }
  builder.create<func::ReturnOp>(loc, copy->getResults());
  main.setType(builder.getFunctionType(block->getArgumentTypes(), copy->getResultTypes()));
  return made;
}

} // namespace heddle::graph
