// Device: where a group's kernel runs.
#ifndef HEDDLE_GRAPH_EDIT_DEVICE_H
#define HEDDLE_GRAPH_EDIT_DEVICE_H

#include "compiler/graph/Graph.h"

namespace heddle::graph {

/// Attribute of a group: the number of its device, as a plan has it; 0 where there is none.
inline constexpr llvm::StringLiteral kDevice = "device";

inline int64_t deviceOf(GroupOp group) {
  auto number = group->getAttrOfType<mlir::IntegerAttr>(kDevice);
  return number ? number.getInt() : 0;
}

inline void setDevice(GroupOp group, int64_t number) {
  if (number)
    group->setAttr(kDevice, mlir::Builder(group.getContext()).getI64IntegerAttr(number));
  else
    group->removeAttr(kDevice);
}

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_EDIT_DEVICE_H
