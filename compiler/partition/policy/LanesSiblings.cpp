// LanesSiblings: whether groups that walk the same elements or rows are better one kernel with
// several results, on processors with vector registers and caches.

#include "compiler/estimate/Thresholds.h"
#include "compiler/estimate/Traffic.h"
#include "compiler/graph/Typical.h"
#include "compiler/mechanism/Shapes.h"
#include "compiler/partition/policy/Lanes.h"

using namespace mlir;

namespace heddle::partition {

using graph::DimVector;

/// Tensors that a kernel reads and writes side by side: more streams than the hardware follows
/// cost more than reading one of them twice.
static constexpr size_t kMostStreams = 16;
/// Elements of a row, at least, that fill vectors along it.
static constexpr int64_t kShortestRow = 16;
/// Rows, at least, that keep the workers busy.
static constexpr int64_t kLeastRows = 16;

/// Whether rows are many enough that a task takes whole ones, or the whole is small, or the kernel
/// shares out each row.
static bool fillsWorkers(Operation *at, const Group &group) {
  DimVector dims = walkedBy(group);
  int64_t all = graph::typicalSize(at, graph::elementCount(dims));
  for (Operation *member : group.members)
    if (ArrayRef<int64_t> axes = graph::reducedAxes(member); !axes.empty()) {
      auto kept = ArrayRef<graph::Dim>(dims).drop_back(axes.size());
      auto length = graph::elementCount(ArrayRef<graph::Dim>(dims).take_back(axes.size()));
      bool isSharedOut =
          graph::elementCount(kept).constant() &&
          length.constant().value_or(0) >= estimate::thresholdAt(at, estimate::kLongRow);
      return isSharedOut || all <= estimate::thresholdAt(at, estimate::kParallelWork) ||
             graph::typicalSize(at, graph::elementCount(kept)) >= kLeastRows;
    }
  return true;
}

/// Whether the mechanism has a form for the rows of both: those of a few elements lie side by side
/// in lanes, which takes whole bytes.
static bool hasFormForRows(Operation *at, const Group &group, const Group &other) {
  int64_t length = INT64_MAX;
  bool hasBits = false;
  for (const Group *each : {&group, &other})
    for (Operation *member : each->members) {
      for (Value operand : member->getOperands())
        hasBits |= graph::storageOf(operand).getIntOrFloatBitWidth() < 8 &&
                   !llvm::is_contained(each->members, operand.getDefiningOp());
      if (ArrayRef<int64_t> axes = graph::reducedAxes(member); !axes.empty()) {
        DimVector dims = graph::dimsOf(member->getOperand(0));
        auto row = ArrayRef<graph::Dim>(dims).take_back(axes.size());
        length = std::min(length, graph::typicalSize(at, graph::elementCount(row)));
      }
    }
  return !hasBits || length >= kShortestRow;
}

bool joinsOnLanes(const SiblingPair &pair) {
  auto &[earlier, later, made, streams] = pair;
  Operation *root = later.root();
  if (llvm::all_of(later.members, isWidening) || streams > kMostStreams)
    return false;
  return &made != &mechanism::kRows || (fillsWorkers(root, later) && fillsWorkers(root, earlier) &&
                                        hasFormForRows(root, earlier, later));
}

} // namespace heddle::partition
