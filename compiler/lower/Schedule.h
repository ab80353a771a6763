// Schedule: how a group is to be carried out, as chosen from a card, and the functions that carry
// it out.
//
// Each function is a mechanism: it does what the knobs say and decides nothing about speed.
#ifndef HEDDLE_LOWER_SCHEDULE_H
#define HEDDLE_LOWER_SCHEDULE_H

#include "compiler/lower/elements/Elements.h"
#include "compiler/mechanism/Mechanism.h"

namespace heddle::lower {

struct Schedule {
  const mechanism::Mechanism *mechanism = nullptr; // null: the group names none
  std::map<std::string, int64_t> knobs;
  bool isShort = false;     // factors of products are rounded to bf16
  std::string card, group;  // names, for messages
  std::string source, code; // of a kernel written by hand: its file, or "", and the text
  int64_t knob(llvm::StringRef name, int64_t otherwise) const {
    auto found = knobs.find(name.str());
    return found == knobs.end() ? otherwise : found->second;
  }
};

/// The schedule that the chooser has left on the group; else one with just the mechanism that it
/// is made for.
Schedule scheduleOf(graph::GroupOp group);

/// A schedule for sizes within bounds.
struct Version {
  std::vector<Bound> bounds;
  Schedule schedule;
};
/// All schedules of the group, the first of which is carried out that is for a run's sizes; the
/// last is for all.
std::vector<Version> versionsOf(graph::GroupOp group);

/// Whether neighbours along this axis and the one before it are none in memory, since the tensor is
/// a part of a larger one.
bool isPlacedAlong(const KernelBuilder &kernel, Value tensor, int64_t axis);

/// Every output element on its own: parallel loops over the outputs, the last dimension in lanes.
/// Knobs: `chunk`, elements of one task.
/// `prepare` may bind what is already computed.
void emitPointwise(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule,
                   llvm::function_ref<void(Elements &)> prepare = {});

/// Reductions over trailing dimensions: one task per row, all of a row's reductions and what
/// follows them while it is in the cache. Knobs: `rows` of one task.
mlir::LogicalResult emitRows(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule);

/// A product or convolution with its elementwise epilogue in registers: packed right operand,
/// register tiles. Knobs: `m` x `n` of a register tile, `panels` of one task.
mlir::LogicalResult emitContraction(KernelBuilder &kernel, mlir::Block *group,
                                    const Schedule &schedule);

/// A convolution of few filters, the reduction in lanes, with its elementwise epilogue. Knobs: `m`
/// pixels of a register tile, `tiles` of one task.
mlir::LogicalResult emitNarrowConv(KernelBuilder &kernel, mlir::Block *group,
                                   const Schedule &schedule);

/// A 3x3 convolution of stride 1 as products of transformed tiles of its images, with its
/// elementwise epilogue. Knobs: `tile` x `tile` pixels of an image's tile (2 or 4), `m` x `n` of a
/// register tile, `tiles` of one task, `late` for filters that tasks transform.
mlir::LogicalResult emitWinograd(KernelBuilder &kernel, mlir::Block *group,
                                 const Schedule &schedule);

/// The gradient of a convolution's filters as sums over positions. Knobs: `m` channels x `n`
/// filters of a register tile, `parts` that a sum is divided into.
mlir::LogicalResult emitFilterGradient(KernelBuilder &kernel, mlir::Block *group,
                                       const Schedule &schedule);

/// A product, its epilogue and reductions over its rows: the rows of a few tiles stay in the
/// worker's scratch or the L2 between the two. Knobs: `m` x `n` of a register tile, `panels` at a
/// time, `rows` at a time.
mlir::LogicalResult emitStitch(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule);

/// Two products with a softmax between them, which stays in the worker's scratch: strips of rows
/// times all keys. Knobs: `m` rows of a strip, `n` columns of a register tile, `rows` of one task.
mlir::LogicalResult emitAttention(KernelBuilder &kernel, mlir::Block *group,
                                  const Schedule &schedule);

/// An attention's gradient: scores, their rows and the products of these, a few rows of queries at
/// a time. Knobs: `m` rows and `n` columns of a register tile, `rows` of queries at a time.
mlir::LogicalResult emitAttentionGradient(KernelBuilder &kernel, mlir::Block *group,
                                          const Schedule &schedule);

/// A depthwise convolution or pool over channels-last images: channels in lanes, blocks of them
/// whose rows the L1 holds. Knobs: `pixels` of a row at most at a time.
mlir::LogicalResult emitWindow(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule);

/// A function of a library (compiler/mechanism/foreign/Calls.h), then what it cannot do, element by
/// element.
mlir::LogicalResult emitCall(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule);

/// A kernel that is written by hand, with the group's ops in its holes
/// (compiler/mechanism/foreign/Holes.h).
mlir::LogicalResult emitHandwritten(KernelBuilder &kernel, mlir::Block *group,
                                    const Schedule &schedule);

/// A product or convolution, with its elementwise epilogue, by teams of threads.
mlir::LogicalResult emitThreadProduct(KernelBuilder &kernel, mlir::Block *group,
                                      const Schedule &schedule);
/// Such a product and reductions over its rows.
mlir::LogicalResult emitBlockStitch(KernelBuilder &kernel, mlir::Block *group,
                                    const Schedule &schedule);

/// Two products with a softmax between them by blocks of threads: of numbers, or, where factors are
/// rounded, of fragments.
mlir::LogicalResult emitNumberAttention(KernelBuilder &kernel, mlir::Block *group,
                                        const Schedule &schedule);
mlir::LogicalResult emitFragmentAttention(KernelBuilder &kernel, mlir::Block *group,
                                          const Schedule &schedule);

/// A scatter, whose updates may meet: each task has a part of the result, and takes its updates in
/// order.
mlir::LogicalResult emitSerial(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule);

/// Phases that end the run where an index that is data lies outside of its dimension.
void emitIndexChecks(KernelBuilder &kernel, graph::GroupOp group);

/// Runs a mechanism: `prepare` finds out whether it serves the group, `emit` writes.
template <typename Mechanism>
mlir::LogicalResult carryOut(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule) {
  Mechanism mechanism(kernel, group, schedule);
  if (failed(mechanism.prepare()))
    return mlir::failure();
  if (!kernel.isTrial)
    mechanism.emit();
  return mlir::success();
}

/// Carries out a schedule, or finds out only whether it can (KernelBuilder::isTrial).
using Emit = mlir::LogicalResult (*)(KernelBuilder &, mlir::Block *, const Schedule &);
struct Lowering {
  const mechanism::Mechanism *mechanism;
  program::Form form;
  Emit emit;
};
/// The lowerings: one of each mechanism for machines of lanes, and of some for machines of threads.
llvm::ArrayRef<Lowering> lowerings();

/// Refuses groups whose device the machine does not have.
llvm::Error checkDevices(mlir::func::FuncOp model, const program::Machine &machine);

/// Why a schedule cannot be carried out for a group, or what a policy asks of one that can.
struct Refusal {
  enum class Kind {
    None,
    NotServed, // the mechanism is not for the ops, as its row of the table says
    Numbers,   // it is, but not with these sizes on this machine
    Broken     // the row says that it serves the ops, and the function fails: a defect
  };
  Kind kind = Kind::None;
  std::string why;
  std::optional<estimate::Stitching> stitching = {}; // of a stitch, with its last schedule
};
/// The refusal of any of the group's schedules, or what the last one found. Writes no code.
Refusal refusal(graph::GroupOp group, const program::Machine &machine);

/// Whether all schedules of a group read the same packed constants, so that none is stored twice.
bool sharesData(graph::GroupOp group, const program::Machine &machine);

/// A group whose mechanism does not serve it, and that is computed element by element instead.
struct Settled {
  std::string group, mechanism, card, why;
};
/// Gives each such group of the model, which is not split any further, the schedule for that.
std::vector<Settled> settle(mlir::func::FuncOp model, const program::Machine &machine);

/// Carries out the schedules of the group. Fails if a mechanism does not serve it.
mlir::LogicalResult emitGroup(KernelBuilder &kernel, graph::GroupOp group);

/// The yielded values of a group.
mlir::ValueRange outputsOf(mlir::Block *group);
/// Whether an op of the group makes the value, other than a constant.
bool isComputedIn(mlir::Block *group, Value value);
/// Runs body over [low, high) in full vectors, then once with a mask for what is left. In the body
/// Elements::mask is set.
void forLanes(Elements &elements, Value low, Value high, llvm::function_ref<void(Value)> body);
/// Runs body likewise, with carried values.
Values foldLanes(Elements &elements, Value low, Value high, mlir::ValueRange initial,
                 llvm::function_ref<Values(Value, mlir::ValueRange)> body);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_SCHEDULE_H
