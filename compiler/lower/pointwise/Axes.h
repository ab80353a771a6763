// Axes: how the memory that an elementwise group reads lies beside its results: which axis of a
// result each dimension in memory follows. From that it follows which axes are walked as one, and
// along which one vectors are read best.
#ifndef HEDDLE_LOWER_POINTWISE_AXES_H
#define HEDDLE_LOWER_POINTWISE_AXES_H

#include "compiler/lower/Schedule.h"

namespace heddle::lower {

/// A tensor in memory; for each of its dimensions the axis of the results that indexes it, or
/// kNoAxis where it is repeated, or kAnyAxis where it is indexed otherwise or known only at run
/// time.
struct ReadTensor {
  static constexpr int64_t kNoAxis = -1, kAnyAxis = -2;
  Value tensor;
  llvm::SmallVector<int64_t, 6> axes;
  llvm::SmallVector<int64_t, 2> slicedAxes; // of the results, along which only a part is read
};

/// Tensors read to compute `roots`, which have equal shapes; none if an op other than elementwise
/// ones, broadcasts, transposes, slices and resizes is in between.
std::optional<llvm::SmallVector<ReadTensor, 4>> readTensors(mlir::Block *group,
                                                            llvm::ArrayRef<Value> roots);

/// Whether axes `outer` and `inner` of the results, neighbours but for sizes of 1, are neighbours
/// in everything that is read, or in none of their sizes there.
bool isOneAxis(llvm::ArrayRef<ReadTensor> reads, int64_t outer, int64_t inner);

/// The axis along which most of what is read is contiguous, -1 for none; of what is the same all
/// along axis `last` only if that is -1. Sizes that are symbols count as equal.
int64_t contiguousAxis(llvm::ArrayRef<ReadTensor> reads, int64_t last);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_POINTWISE_AXES_H
