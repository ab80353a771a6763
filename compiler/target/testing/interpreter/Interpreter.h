// Interpreter: carries out modules of `program` and the dialects beside it, one op after the other:
// what they mean, for tests of what lowering makes. Memory is that of this process, and each access
// is looked up in what a run has allocated.
#ifndef HEDDLE_TARGET_TESTING_INTERPRETER_INTERPRETER_H
#define HEDDLE_TARGET_TESTING_INTERPRETER_INTERPRETER_H

#include "compiler/program/Dialect.h"
#include "compiler/support/Error.h"
#include "compiler/target/testing/interpreter/Memory.h"

#include "runtime/executable/abi.h"

namespace heddle::interpreter {

/// A value: the bits of each lane, of a pointer its address.
using Bits = llvm::SmallVector<uint64_t, 1>;

class Run;
struct Step;

/// Values of one call of a function, by their numbers.
struct Activation {
  std::vector<Bits> values;
  std::vector<std::unique_ptr<int64_t[]>> arrays;
};

using Action = std::function<void(Run &, Activation &, const Step &)>;
/// Actions by the names of ops.
using Actions = llvm::StringMap<Action>;
void addControl(Actions &actions);
void addIntegers(Actions &actions);
void addFloats(Actions &actions);
void addVectors(Actions &actions);
void addMemory(Actions &actions);
void addRun(Actions &actions);

struct Body {
  llvm::SmallVector<unsigned, 4> arguments;
  std::vector<Step> steps;
  llvm::SmallVector<unsigned, 4> results; // operands of the terminator
};

struct Step {
  mlir::Operation *op = nullptr;
  const Action *action = nullptr;
  llvm::SmallVector<unsigned, 4> operands;
  llvm::SmallVector<unsigned, 2> results;
  std::vector<Body> bodies;
  // Element types and widths of operand 0 and result 0, if there are any.
  mlir::Type element, resultElement;
  unsigned width = 0, resultWidth = 0;
  size_t lanes = 1; // of result 0
};

struct Function {
  Body body;
  size_t values = 0; // and how many there are
  mlir::FunctionType type;
};

/// Operand k, a word or a pointer.
uint64_t wordOf(const Activation &activation, const Step &step, unsigned k);
/// A pointer as a value.
Bits bitsOf(const void *pointer);
/// The action of ops that give back their operand.
void pass(Run &, Activation &activation, const Step &step);

/// An action that computes each lane of result 0: `function` gives its bits from the step and from
/// those of operand k in that lane, `x(k)`; an operand of one lane has it for all.
template <typename Function> Action laneByLane(Function function) {
  return [function](Run &, Activation &activation, const Step &step) {
    Bits &result = activation.values[step.results[0]];
    result.resize(step.lanes);
    for (size_t i = 0; i < step.lanes; ++i)
      result[i] = function(step, [&](unsigned k) {
        const Bits &bits = activation.values[step.operands[k]];
        return bits[bits.size() == 1 ? 0 : i];
      });
  };
}

/// The functions of a module, which it has to outlive.
class Code {
public:
  /// Refuses a module with an op that is not interpreted.
  static llvm::Expected<std::unique_ptr<Code>> make(mlir::ModuleOp module);
  const Function *find(llvm::StringRef name) const;

private:
  llvm::StringMap<Function> functions;
};

/// One call of a function of a program, and all that it calls.
class Run {
public:
  /// `call` is null in heddle_program_sizes.
  Run(const Code &code, heddle_call_t *call) : code(code), call(call) {}

  llvm::SmallVector<Bits> enter(const Function &function, llvm::ArrayRef<Bits> arguments);
  void carryOut(const Body &body, Activation &activation);
  /// Ends the run; the first reason is kept.
  void stop(const Step &step, const llvm::Twine &why);
  /// Whether an access is of memory that there is, at the alignment that the op says.
  bool isFine(const Step &step, mlir::Value pointer, uint64_t address, int64_t bytes,
              int64_t alignment = 1);

  const Code &code;
  heddle_call_t *const call;
  Memory memory;
  std::map<std::string, char *> arenas, weights; // of devices, by their spaces
  std::string space;                             // of the kernel that runs; "" is the host
  std::string problem;
};

} // namespace heddle::interpreter

#endif // HEDDLE_TARGET_TESTING_INTERPRETER_INTERPRETER_H
