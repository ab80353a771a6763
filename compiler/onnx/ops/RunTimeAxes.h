// RunTimeAxes: axes known only at run time, spelt in graph ops on small integer tensors.
#ifndef HEDDLE_ONNX_OPS_RUN_TIME_AXES_H
#define HEDDLE_ONNX_OPS_RUN_TIME_AXES_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// Dimensions of a tensor of `rank`, chosen by integers that the run reads.
class RunTimeAxes {
public:
  /// `axes` is a scalar or a vector, of any length; negative ones count from the end. The run
  /// refuses those outside of the rank.
  RunTimeAxes(Node &n, Value axes, int64_t rank);

  /// i64[rank]: 1 where an axis is chosen, else 0.
  Value mask() const { return chosen; }
  /// i64[rank]: values[i] at the i-th axis, `otherwise` (i64[rank]) where none is chosen.
  Value spread(Value values, Value otherwise) const;
  /// Takes all axes, or none, if the list is empty.
  void whenEmpty(bool all);

  /// x with the chosen axes last; dimensions keep their order otherwise.
  Value toEnd(Value x);
  /// i64[rank]: sizes of x, the chosen ones last.
  Value sortedSizes(Value x);

private:
  void sort();

  Node &n;
  int64_t rank;
  Dim count;    // number of axes
  Value hits;   // i1[count, rank]
  Value chosen; // i64[rank]
  Value order;  // i64[rank]: dimension order[i] of x comes to place i
};

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_OPS_RUN_TIME_AXES_H
