// Team: threads of a device that carry out a task together.
//
// A team of Machine::threadsInStep threads exchanges values by shuffles alone; a larger one is a
// block, which shares memory.
#ifndef HEDDLE_LOWER_THREADS_TEAM_H
#define HEDDLE_LOWER_THREADS_TEAM_H

#include "compiler/lower/elements/Elements.h"

namespace heddle::lower {

class Team {
public:
  /// The team of the phase that the kernel is in, which was begun with so many threads.
  Team(KernelBuilder &kernel, int64_t threads) : threads(threads), kernel(kernel) {}

  /// Threads that serve rows of this length, of which there are so many: one where a row has few
  /// elements, all of a block where rows are few and long.
  static int64_t sizeFor(const program::Machine &machine, int64_t rows, int64_t length);

  Value rank(); // of this thread, i64
  /// Runs `body` for each place of [low, high), which this thread shares with the others.
  Values fold(Elements &elements, Value low, Value high, mlir::ValueRange initial,
              llvm::function_ref<Values(Value, mlir::ValueRange)> body);
  /// The values of all threads combined as the reduction does, in the same order for each.
  Value combine(mlir::Operation *reduction, Value value);
  /// Runs `body` on the first thread alone.
  void onFirst(llvm::function_ref<void()> body);
  void barrier();
  /// Memory of the team: so many elements, as many for each call.
  Value shared(Type element, int64_t count);

  const int64_t threads;

private:
  KernelBuilder &kernel;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_THREADS_TEAM_H
