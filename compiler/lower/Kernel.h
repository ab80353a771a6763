// Kernel: the functions that one group becomes, and what they are called with.
//
// A kernel is a list of phases that run one after the other; the tasks of a phase run in parallel.
// All phases share one array of 8-byte arguments: slot 0 is the heddle_call_t, the others are
// pointers and sizes.
#ifndef HEDDLE_LOWER_KERNEL_H
#define HEDDLE_LOWER_KERNEL_H

#include "compiler/graph/Graph.h"
#include "compiler/loop/Code.h"
#include "compiler/loop/Machine.h"

namespace heddle::lower {

using graph::Dim;
using graph::DimVector;
using loop::Code;
using loop::Values;
using mlir::Type;
using mlir::Value;

struct Argument {
  enum class Kind { Call, Tensor, Temporary, Data, Symbol, Message };
  Kind kind;
  Value tensor;      // Tensor: a value of the graph, constants included
  int64_t index = 0; // Temporary or Data: its number
  std::string text;  // Symbol: its name; Message: what a failure says, with %lld for two values
};

struct Phase {
  std::string function;
  Dim tasks;
  Dim work;         // about how many scalar operations all tasks take together
  Dim scratchBytes; // of one worker
};

struct Kernel {
  std::string name;
  std::vector<Argument> arguments;
  std::vector<Phase> phases;
  std::vector<Dim> temporaries; // bytes of buffers that live while the kernel runs
  std::vector<std::shared_ptr<std::vector<char>>> data; // constants in the layout the kernel wants
};

/// Code of a size expression; `symbol` gives the value of a name.
Value emitDim(Code &code, const Dim &dim, llvm::function_ref<Value(llvm::StringRef)> symbol);

/// Makes the functions of one kernel. Between beginPhase and endPhase, `code` writes the body.
class KernelBuilder {
public:
  KernelBuilder(mlir::ModuleOp module, llvm::StringRef name, mlir::Location location,
                const loop::Machine &machine);

  /// For a mechanism that cannot carry the group out; the first reason is kept.
  mlir::LogicalResult refuse(const llvm::Twine &why);

  void beginPhase();
  void endPhase(const Dim &tasks, const Dim &work, const Dim &scratchBytes = Dim(0));
  /// Runs `body` for each of the phase's tasks that this call was given.
  void forEachTask(llvm::function_ref<void(Value task)> body);
  /// Runs `body` for pieces [first, end) of those tasks, of `most` tasks each.
  void forEachRun(int64_t most, llvm::function_ref<void(Value first, Value end)> body);

  Value pointer(Value tensor);
  Value temporary(int64_t number);
  Value data(int64_t number);
  Value dim(const Dim &dim);
  int64_t addTemporary(const Dim &bytes);
  int64_t addData(std::vector<char> bytes);

  Code &code() { return *current; }
  Value message(llvm::StringRef text) { // its number, for heddle_call_t::fail
    return argument({Argument::Kind::Message, {}, 0, text.str()}, false);
  }
  Value call() { return argument({Argument::Kind::Call, {}, 0, ""}, true); }
  Value scratch() { return function.getArgument(3); }

  const loop::Machine machine;
  Kernel kernel;
  bool isTrial = false; // mechanisms only find out whether they can carry the group out
  std::string refusal;

private:
  Value argument(const Argument &wanted, bool isPointer);
  Value symbol(llvm::StringRef name);

  mlir::ModuleOp module;
  mlir::Location location;
  mlir::func::FuncOp function;
  mlir::OpBuilder body, prologue;
  std::unique_ptr<Code> current, early; // `early` writes at the top of the function
  std::map<std::string, Value> dims;
  std::map<int64_t, Value> slots;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_KERNEL_H
