// Seconds: how long a kernel takes, roughly, by the rates of the machine (program/Machine.h): where
// it is worth to look, and what is cheaper to compute again than to keep. What candidates are
// compared by is measured.
#ifndef HEDDLE_ESTIMATE_SECONDS_H
#define HEDDLE_ESTIMATE_SECONDS_H

#include "compiler/graph/Graph.h"
#include "compiler/program/Machine.h"

namespace heddle::estimate {

/// The work of ops that run as one kernel.
struct Work {
  double products = 0, others = 0; // operations
  double bytes = 0;                // that are read and written
  double shorts = 0;               // operations of products of bf16
  double matrices = 0;             // the same in registers that hold matrices
};

/// Work of ops whose `results` are stored: tensors that the ops do not compute are read once each.
/// `valueOf` gives the value of a size.
Work workOf(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results,
            llvm::function_ref<double(const graph::Dim &)> valueOf);

/// Work with factors of products rounded to bf16: each element of a factor is rounded
/// once, but for weights, which are kept so.
Work shortened(Work work, llvm::ArrayRef<mlir::Operation *> ops,
               llvm::function_ref<double(const graph::Dim &)> valueOf);

/// A roofline: the start of the kernel, and the slower of arithmetic and memory.
double secondsOf(const Work &work, const program::Machine &machine);
/// Estimates a group, with typical sizes of symbols.
double secondsOf(graph::GroupOp group, const program::Machine &machine);

/// Estimates it with factors of its products as the group has them.
double roofOf(graph::GroupOp group, const program::Machine &machine);

} // namespace heddle::estimate

#endif // HEDDLE_ESTIMATE_SECONDS_H
