// Axes: follows the axes of results back to memory, through the ops of the group.

#include "compiler/lower/pointwise/Axes.h"

#include "compiler/graph/Typical.h"
#include "compiler/lower/elements/Definitions.h"

#include <numeric>
#include <set>

using namespace mlir;

namespace heddle::lower {

namespace {
using Axes = SmallVector<int64_t, 6>;

struct Walk {
  Block *group;
  SmallVector<ReadTensor, 4> reads;
  std::set<std::tuple<void *, std::vector<int64_t>, std::vector<int64_t>>> seen;

  /// Notes what is read; false if an op moves elements in another way.
  bool visit(Value value, const Axes &axes, const Axes &sliced) {
    if (!seen.insert({value.getAsOpaquePointer(), std::vector(axes.begin(), axes.end()),
                      std::vector(sliced.begin(), sliced.end())})
             .second)
      return true;
    Operation *op = value.getDefiningOp();
    if (auto constant = dyn_cast_if_present<graph::ConstantOp>(op)) {
      auto dense = dyn_cast<DenseElementsAttr>(graph::codesOf(constant.getValue()));
      if (dense && dense.isSplat())
        return true; // a number in the code
    }
    if (!op || op->getBlock() != group || isa<graph::ConstantOp>(op)) {
      reads.push_back({value, axes, {sliced.begin(), sliced.end()}});
      return true;
    }
    if (op->hasTrait<graph::Elementwise>())
      return llvm::all_of(op->getOperands(),
                          [&](Value operand) { return visit(operand, axes, sliced); });
    if (auto transpose = dyn_cast<graph::TransposeOp>(op)) {
      Axes source(axes.size());
      for (auto [result, from] : llvm::enumerate(transpose.getPermutation()))
        source[from] = axes[result];
      return visit(transpose.getX(), source, sliced);
    }
    if (auto broadcast = dyn_cast<graph::BroadcastOp>(op)) {
      DimVector from = graph::dimsOf(broadcast.getX()), to = graph::dimsOf(broadcast.getResult());
      Axes source;
      size_t added = to.size() - from.size();
      for (size_t i = 0; i < from.size(); ++i)
        source.push_back(from[i].isConstant(1)      ? ReadTensor::kNoAxis
                         : from[i] == to[i + added] ? axes[i + added]
                                                    : ReadTensor::kAnyAxis);
      return visit(broadcast.getX(), source, sliced);
    }
    if (auto resize = dyn_cast<graph::ResizeOp>(op)) {
      Axes source(axes);
      for (size_t i = 0; i < axes.size(); ++i)
        if (!keepsAxis(resize, i))
          source[i] = ReadTensor::kAnyAxis;
      return visit(resize.getX(), source, sliced);
    }
    if (auto slice = dyn_cast<graph::SliceOp>(op)) {
      Axes source(axes), parts(sliced);
      DimVector from = graph::dimsOf(slice.getX()), to = graph::dimsOf(slice.getResult());
      for (size_t i = 0; i < axes.size(); ++i) {
        if (slice.getSteps()[i] != 1)
          source[i] = ReadTensor::kAnyAxis;
        else if (to[i].isConstant(1))
          source[i] = ReadTensor::kNoAxis;
        else if (from[i] != to[i] && axes[i] >= 0)
          parts.push_back(axes[i]);
      }
      return visit(slice.getX(), source, parts);
    }
    return false;
  }
};
} // namespace

std::optional<SmallVector<ReadTensor, 4>> readTensors(Block *group, ArrayRef<Value> roots) {
  Walk walk{group, {}, {}};
  for (Value root : roots) {
    Axes axes(graph::dimsOf(root).size());
    std::iota(axes.begin(), axes.end(), 0);
    if (!walk.visit(root, axes, {}))
      return std::nullopt;
  }
  return std::move(walk.reads);
}

/// The axes of the dimensions that are not of size 1.
static Axes lastingAxes(const ReadTensor &read) {
  Axes axes;
  for (auto [dim, axis] : llvm::zip(graph::dimsOf(read.tensor), read.axes))
    if (!dim.isConstant(1))
      axes.push_back(axis);
  return axes;
}

bool isOneAxis(ArrayRef<ReadTensor> reads, int64_t outer, int64_t inner) {
  return llvm::all_of(reads, [&](const ReadTensor &read) {
    Axes axes = lastingAxes(read);
    if (llvm::is_contained(axes, ReadTensor::kAnyAxis) ||
        llvm::is_contained(read.slicedAxes, inner))
      return false;
    auto first = llvm::find(axes, outer), second = llvm::find(axes, inner);
    if (first == axes.end() || second == axes.end())
      return first == second;
    return first + 1 == second;
  });
}

int64_t contiguousAxis(ArrayRef<ReadTensor> reads, int64_t last) {
  std::map<int64_t, int64_t> elements;
  for (const ReadTensor &read : reads) {
    Axes axes = lastingAxes(read);
    bool isSame =
        !llvm::is_contained(axes, last) && !llvm::is_contained(axes, ReadTensor::kAnyAxis);
    if (last >= 0 && isSame)
      continue;
    if (!axes.empty() && axes.back() >= 0) {
      int64_t count = 1;
      for (const Dim &dim : graph::dimsOf(read.tensor))
        count *= graph::typicalSize(Value(read.tensor).getParentBlock()->getParentOp(), dim);
      elements[axes.back()] += count;
    }
  }
  auto most = llvm::max_element(elements, llvm::less_second());
  return most == elements.end() ? -1 : most->first;
}

} // namespace heddle::lower
