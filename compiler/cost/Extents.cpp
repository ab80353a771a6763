// Extents: see Extents.h.

#include "compiler/cost/Extents.h"

#include "compiler/graph/cost/Traffic.h"

using namespace mlir;

namespace heddle::cost {

using graph::Dim;

double countOf(ArrayRef<Dim> dims) {
  double count = 1;
  for (const Dim &dim : dims)
    count *= static_cast<double>(dim.constant().value_or(0));
  return count;
}

bool hasConstantSizes(graph::GroupOp group) {
  auto isConstant = [](Value value) {
    return llvm::all_of(graph::dimsOf(value), [](const Dim &dim) { return dim.constant(); });
  };
  WalkResult result = group.walk([&](Operation *op) {
    bool all = llvm::all_of(op->getOperands(), isConstant) &&
               llvm::all_of(op->getResults(), isConstant) && flopsOf(op).constant();
    return all ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

/// The op that does most; a product before any other, the first of equals.
static Operation *rootOf(graph::GroupOp group) {
  Operation *root = nullptr;
  auto weightOf = [](Operation *op) {
    return std::tuple(graph::isContraction(op) || isa<graph::ConvFilterGradientOp>(op),
                      !graph::combinedAxes(op).empty(), flopsOf(op).constant().value_or(0),
                      op->getNumResults() ? countOf(graph::dimsOf(op->getResult(0))) : 0);
  };
  for (Operation &op : group.getBody().front().without_terminator())
    if (!root || weightOf(&op) > weightOf(root))
      root = &op;
  return root;
}

static void readMatmul(graph::MatmulOp op, Extents &extents) {
  graph::DimVector b = graph::dimsOf(op.getB()), result = graph::dimsOf(op.getResult());
  extents.rows = countOf(result[result.size() - 2]);
  extents.columns = countOf(result.back());
  extents.depth = countOf(graph::dimsOf(op.getA()).back());
  // Batches that share one right operand are more rows of the same product.
  size_t outer = result.size() - 2;
  for (; outer > 0 && b[outer - 1].isConstant(1); --outer)
    extents.rows *= countOf(result[outer - 1]);
  extents.batches = countOf(ArrayRef(result).take_front(outer));
}

static void readConv(graph::ConvOp op, Extents &extents) {
  graph::DimVector w = graph::dimsOf(op.getW()), result = graph::dimsOf(op.getResult());
  double groups = static_cast<double>(op.getGroups());
  bool isLast = op.getChannelsLast();
  ArrayRef<Dim> space = ArrayRef(result).drop_front(isLast ? 1 : 2).take_front(w.size() - 2);
  extents.taps = countOf(ArrayRef(w).drop_front(2));
  extents.depth = countOf(ArrayRef(w).drop_front());
  extents.columns = std::max(1.0, countOf(w[0]) / std::max(1.0, groups));
  bool isPointwise = extents.taps == 1;
  for (size_t d = 0; d < space.size(); ++d)
    isPointwise &= op.getStrides()[d] == 1 && op.getLow()[d] == 0 && op.getHigh()[d] == 0;
  while (space.size() > 1 && space.back().isConstant(1))
    space = space.drop_back();
  extents.rows = isPointwise     ? countOf(result[0]) * countOf(space)
                 : space.empty() ? 1
                                 : countOf(space.back());
  extents.batches = countOf(result) / std::max(1.0, extents.rows) / std::max(1.0, extents.columns);
}

/// Rows are the weights of a filter, columns the filters, and all pixels are summed up.
static void readFilterGradient(graph::ConvFilterGradientOp op, Extents &extents) {
  graph::DimVector made = graph::dimsOf(op.getResult()), dy = graph::dimsOf(op.getDy());
  double filters = countOf(made[0]);
  extents.taps = countOf(ArrayRef(made).drop_front(2));
  extents.rows = countOf(ArrayRef(made).drop_front());
  extents.columns = filters;
  extents.depth = countOf(dy) / std::max(1.0, filters);
}

static void readOther(Operation *op, Extents &extents) {
  bool reduces = !graph::combinedAxes(op).empty();
  graph::DimVector dims = graph::dimsOf(reduces ? op->getOperand(0) : op->getResult(0));
  if (reduces) {
    for (int64_t axis : graph::combinedAxes(op))
      extents.columns *= countOf(dims[axis]);
    extents.rows = countOf(dims) / std::max(1.0, extents.columns);
  } else if (!dims.empty()) {
    extents.columns = countOf(dims.back());
    extents.rows = countOf(ArrayRef(dims).drop_back());
  }
}

Extents extentsOf(graph::GroupOp group) {
  Extents extents;
  extents.root = rootOf(group);
  if (!extents.root || extents.root->getNumResults() == 0)
    return extents;
  Operation *root = extents.root;
  extents.isProduct = isa<graph::MatmulOp, graph::ConvOp, graph::ConvFilterGradientOp>(root);
  if (root->getNumOperands() > 0)
    extents.elementBytes =
        static_cast<double>(graph::bytesOf(graph::elementOf(root->getOperand(0))));
  llvm::TypeSwitch<Operation *>(root)
      .Case([&](graph::MatmulOp op) { readMatmul(op, extents); })
      .Case([&](graph::ConvOp op) { readConv(op, extents); })
      .Case([&](graph::ConvFilterGradientOp op) { readFilterGradient(op, extents); })
      .Default([&](Operation *op) { readOther(op, extents); });
  return extents;
}

} // namespace heddle::cost
