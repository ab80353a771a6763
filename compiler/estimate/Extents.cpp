// Extents: see Extents.h.

#include "compiler/estimate/Extents.h"

#include "compiler/estimate/Traffic.h"
#include "compiler/mechanism/Extents.h"

using namespace mlir;

namespace heddle::estimate {

using graph::Dim;

double countOf(const Dim &size) { return static_cast<double>(size.constant().value_or(0)); }

double countOf(ArrayRef<Dim> dims) {
  double count = 1;
  for (const Dim &dim : dims)
    count *= countOf(dim);
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

static void readProduct(Operation *op, Extents &extents) {
  mechanism::Extents product = mechanism::extentsOfProduct(op);
  extents.batches = countOf(product.batches);
  extents.rows = countOf(product.rows);
  extents.columns = countOf(product.columns);
  extents.depth = countOf(product.depth);
  extents.taps = countOf(product.taps);
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
  if (extents.isProduct)
    readProduct(root, extents);
  else
    readOther(root, extents);
  return extents;
}

} // namespace heddle::estimate
