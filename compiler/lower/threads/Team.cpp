// Team: see Team.h.

#include "compiler/lower/threads/Team.h"

#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

int64_t Team::sizeFor(const program::Machine &machine, int64_t rows, int64_t length) {
  constexpr int64_t kShort = 8, kEach = 8; // elements of a row, and of each thread of a block
  int64_t few = machine.threadsInStep;
  if (few == 1 || length <= kShort)
    return 1;
  if (rows * few >= machine.workers)
    return few;
  int64_t wanted = llvm::PowerOf2Ceil(llvm::divideCeil(length, kEach));
  return std::clamp(wanted, few, machine.mostThreads);
}

Value Team::rank() {
  Code &code = kernel.code();
  return threads == 1 ? code.number(0) : code.b.create<program::RankOp>(code.loc).getResult();
}

Values Team::fold(Elements &elements, Value low, Value high, ValueRange initial,
                  llvm::function_ref<Values(Value, ValueRange)> body) {
  Code &code = kernel.code();
  return code.fold(code.add(low, rank()), high, threads, initial, [&](Value i, ValueRange in) {
    Elements::Scope scope(elements);
    return body(i, in);
  });
}

Value Team::combine(Operation *reduction, Value value) {
  Code &code = kernel.code();
  int64_t inStep = std::min(threads, kernel.machine.threadsInStep);
  auto combineInStep = [&](int64_t most) {
    for (int64_t distance = most / 2; distance > 0; distance /= 2) {
      Value other = code.b.create<program::ShuffleOp>(code.loc, value, distance);
      value = lower::combine(code, reduction, value, other);
    }
  };
  combineInStep(inStep);
  int64_t parts = threads / inStep;
  if (parts == 1)
    return value;
  // The first thread of each part says what the part came to.
  Type element = value.getType();
  Value memory = shared(element, parts), self = rank(), width = code.number(inStep);
  code.when(code.less(code.rem(self, width), code.number(1)),
            [&] { code.store(element, value, memory, code.div(self, width)); });
  barrier();
  value = code.load(element, memory, code.rem(self, code.number(parts)));
  combineInStep(parts);
  barrier(); // a later one writes there again
  return value;
}

void Team::onFirst(llvm::function_ref<void()> body) {
  Code &code = kernel.code();
  if (threads == 1)
    return body();
  code.when(code.less(rank(), code.number(1)), body);
}

void Team::barrier() {
  Code &code = kernel.code();
  if (threads > 1)
    code.b.create<program::BarrierOp>(code.loc);
}

Value Team::shared(Type element, int64_t count) {
  Code &code = kernel.code();
  return code.b.create<program::SharedOp>(
      code.loc, program::pointerType(code.b.getContext(), kernel.machine.space),
      count * graph::bytesOf(element));
}

} // namespace heddle::lower
