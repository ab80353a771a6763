// Suppression: NonMaxSuppression, which a routine of the runtime computes.

#include "compiler/onnx/Table.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static void importNonMaxSuppression(Node &n) {
  Value scores = n.in(1);
  if (rankOf(n.in(0)) != 3 || rankOf(scores) != 3 || dimsOf(n.in(0))[2].constant().value_or(4) != 4)
    refuse("the boxes must be [batch, n, 4] and the scores [batch, classes, n], but are " +
           textOf(dimsOf(n.in(0))) + " and " + textOf(dimsOf(scores)));
  DimVector dims = dimsOf(scores);
  Type element = elementOf(scores), f32 = n.builder.getF32Type();
  auto scalarOf = [&](size_t i, Type type) {
    return n.has(i) ? n.cast(n.reshape(n.in(i), {}), type) : n.scalar(type, 0);
  };
  if (!element.isF32() || elementOf(n.in(0)) != element)
    refuse("boxes and scores must be of f32");
  Value boxes = n.reshape(n.in(0), {dims[0], dims[2], Dim(4)});
  Type result = n.tensor({n.freshSymbol("boxes"), Dim(3)}, n.i64());
  n.set(n.typed<SuppressOp>(
      result, {boxes, scores, scalarOf(2, n.i64()), scalarOf(3, f32), scalarOf(4, f32)},
      {n.flag("center", n.getInt("center_point_box", 0)), n.flag("bounded", n.has(4))}));
}

OpRows suppressionRows() {
  static const OpRow rows[] = {
      {"NonMaxSuppression", "", 10, 27, importNonMaxSuppression},
  };
  return rows;
}

} // namespace heddle::onnx
