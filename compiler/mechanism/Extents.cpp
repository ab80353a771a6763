// Extents: see Extents.h.

#include "compiler/mechanism/Extents.h"

using namespace mlir;

namespace heddle::mechanism {

using graph::Dim;
using graph::DimVector;

static Extents ofMatmul(graph::MatmulOp op) {
  DimVector b = graph::dimsOf(op.getB()), result = graph::dimsOf(op.getResult());
  size_t outer = result.size() - 2;
  Extents extents;
  extents.rows = result[outer];
  for (; outer > 0 && b[outer - 1].isConstant(1); --outer)
    extents.rows = extents.rows * result[outer - 1];
  extents.batches = graph::elementCount(ArrayRef(result).take_front(outer));
  extents.columns = result.back();
  extents.depth = graph::dimsOf(op.getA()).back();
  return extents;
}

static Extents ofConv(graph::ConvOp op) {
  DimVector w = graph::dimsOf(op.getW()), result = graph::dimsOf(op.getResult());
  ArrayRef<Dim> space = ArrayRef(result).slice(op.getChannelsLast() ? 1 : 2, w.size() - 2);
  bool isPointwise = true;
  for (size_t d = 0; d < space.size(); ++d)
    isPointwise &= w[d + 2].isConstant(1) && op.getStrides()[d] == 1 && op.getLow()[d] == 0 &&
                   op.getHigh()[d] == 0;
  // The innermost dimension that has rows at all is the one that is tiled.
  while (space.size() > 1 && space.back().isConstant(1))
    space = space.drop_back();
  Dim groups(op.getGroups()), pixels = graph::elementCount(space);
  Extents extents;
  extents.rows = isPointwise ? result[0] * pixels : space.back();
  extents.batches =
      isPointwise ? groups : groups * result[0] * graph::elementCount(space.drop_back());
  extents.columns = w[0].floorDiv(groups);
  extents.depth = graph::elementCount(ArrayRef(w).drop_front());
  extents.taps = graph::elementCount(ArrayRef(w).drop_front(2));
  return extents;
}

static Extents ofFilterGradient(graph::ConvFilterGradientOp op) {
  DimVector made = graph::dimsOf(op.getResult()), summed = graph::dimsOf(op.getDy());
  summed.erase(op.getChannelsLast() ? summed.end() - 1 : summed.begin() + 1);
  Extents extents;
  extents.rows = graph::elementCount(ArrayRef(made).drop_front());
  extents.columns = made[0];
  extents.depth = graph::elementCount(summed);
  extents.taps = graph::elementCount(ArrayRef(made).drop_front(2));
  return extents;
}

Extents extentsOfProduct(Operation *op) {
  return llvm::TypeSwitch<Operation *, Extents>(op).Case(ofMatmul).Case(ofConv).Case(
      ofFilterGradient);
}

} // namespace heddle::mechanism
