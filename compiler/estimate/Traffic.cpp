// Traffic: see Traffic.h.

#include "compiler/estimate/Traffic.h"

#include "compiler/graph/Constants.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace heddle::estimate {

using graph::Dim;

Dim bytesOf(Value tensor) {
  auto constant = tensor.getDefiningOp<graph::ConstantOp>();
  if (auto stored = constant ? dyn_cast<graph::StoredAttr>(constant.getValue()) : nullptr)
    return Dim(graph::storedSize(stored));
  return graph::elementCount(graph::dimsOf(tensor)) * Dim(graph::bytesOf(graph::elementOf(tensor)));
}

Value weightsOf(Operation *product) {
  if (!graph::isContraction(product))
    return {};
  Value right = product->getOperand(1);
  while (auto transpose = right.getDefiningOp<graph::TransposeOp>())
    right = transpose.getX();
  auto constant = right.getDefiningOp<graph::ConstantOp>();
  bool isPlain = constant && !isa<graph::StoredAttr>(constant.getValue());
  return isPlain && graph::elementOf(right).isF32() ? right : Value();
}

/// Elements that an op takes of its operand: those of its result where it picks some.
static Dim takenOf(OpOperand &use) {
  Operation *op = use.getOwner();
  bool picks = use.getOperandNumber() == 0 &&
               (graph::isGather(op) || isa<graph::SliceOp, graph::DynamicSliceOp>(op));
  return graph::elementCount(graph::dimsOf(picks ? op->getResult(0) : use.get()));
}

std::vector<GroupInput> inputsOf(graph::GroupOp group) {
  llvm::MapVector<Value, Dim> taken;
  Block *body = &group.getBody().front();
  group.walk([&](Operation *op) {
    for (OpOperand &use : op->getOpOperands()) {
      Operation *maker = use.get().getDefiningOp();
      bool isOutside = maker ? !group->isAncestor(maker) : use.get().getParentBlock() != body;
      if (isOutside)
        taken[use.get()] = taken[use.get()] + takenOf(use);
    }
  });
  llvm::SmallPtrSet<Value, 4> halved;
  if (group.isShort())
    group.walk([&](Operation *op) { halved.insert(weightsOf(op)); });
  std::vector<GroupInput> inputs;
  for (auto &[value, count] : taken) {
    Dim taking = count * Dim(graph::bytesOf(graph::elementOf(value)));
    Dim bytes = Dim::min(bytesOf(value), taking);
    inputs.push_back({value, halved.contains(value) ? bytes.floorDiv(Dim(2)) : bytes});
  }
  return inputs;
}

static bool isFloat(Value value) { return isa<FloatType>(graph::elementOf(value)); }

/// The elements of a box with the dimensions of both; those of ragged tensors are in the first.
static Dim elementsOf(ArrayRef<Dim> first, ArrayRef<Dim> second) {
  graph::DimVector dims(first);
  dims.append(second.begin(), second.end());
  return graph::elementCount(dims);
}

Dim flopsOf(Operation *op) {
  if (op->getNumResults() == 0 || op->getNumOperands() == 0)
    return Dim(0);
  graph::DimVector made = graph::dimsOf(op->getResult(0));
  Dim results = graph::elementCount(made);
  graph::DimVector first = graph::dimsOf(op->getOperand(0));
  if (isa<graph::MatmulOp>(op))
    return Dim(2) * elementsOf(made, first.back());
  if (isa<graph::ConvOp>(op)) {
    graph::DimVector filter = graph::dimsOf(op->getOperand(1));
    return Dim(2) * elementsOf(made, ArrayRef<Dim>(filter).drop_front());
  }
  if (isa<graph::ConvTransposeOp>(op)) {
    graph::DimVector filter = graph::dimsOf(op->getOperand(1));
    return Dim(2) * elementsOf(first, ArrayRef<Dim>(filter).drop_front());
  }
  if (auto gradient = dyn_cast<graph::ConvFilterGradientOp>(op)) {
    graph::DimVector summed = graph::dimsOf(gradient.getDy());
    summed.erase(gradient.getChannelsLast() ? summed.end() - 1 : summed.begin() + 1);
    return Dim(2) * elementsOf(made, summed);
  }
  if (!isFloat(op->getOperand(op->getNumOperands() - 1)))
    return Dim(0);
  if (auto pool = dyn_cast<graph::PoolOp>(op)) {
    int64_t window = 1;
    for (int64_t size : pool.getWindow())
      window *= size;
    return results * Dim(window);
  }
  if (isa<graph::UnpoolOp>(op))
    return graph::elementCount(first);
  if (op->hasTrait<graph::Reduction>() || op->hasTrait<graph::ArgReduction>() ||
      isa<graph::CumsumOp, graph::TopkOp>(op))
    return graph::elementCount(first);
  bool isMove = isa<graph::CastOp, graph::BitcastOp, graph::SelectOp>(op);
  bool computes = op->getName().getStringRef() != "graph.yield" && !isMove &&
                  llvm::all_of(op->getOperands(), [&](Value operand) {
                    return graph::dimsOf(operand) == graph::dimsOf(op->getResult(0));
                  });
  bool moves = graph::isMovement(op) || graph::isGather(op) || graph::isScatter(op);
  if (isa<graph::ResizeOp>(op))
    return results;
  return computes && !moves ? results : Dim(0);
}

Dim flopsOf(graph::GroupOp group) {
  Dim flops;
  for (Operation &op : group.getBody().front().without_terminator())
    flops = flops + flopsOf(&op);
  return flops;
}

int64_t opsPerElement(Block *group) {
  int64_t count = 1;
  for (Operation &op : *group) {
    if (graph::isCostly(&op))
      count += 16;
    else if (!isa<graph::ConstantOp, graph::YieldOp>(op))
      count += isa<graph::ResizeOp, graph::GatherOp, graph::TransposeOp>(op) ? 4 : 1;
  }
  return count;
}

double productFlops(Operation *root) {
  double flops = 0;
  root->walk([&](Operation *op) {
    if (op->hasTrait<graph::SumsProducts>())
      flops += static_cast<double>(flopsOf(op).constant().value_or(0));
  });
  return flops;
}

} // namespace heddle::estimate
