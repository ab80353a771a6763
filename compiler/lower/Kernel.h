// Kernel: the functions that one group becomes, and what they are called with.
//
// A kernel is a list of phases that run one after the other; the tasks of a phase run in parallel.
// All phases share one array of 8-byte arguments: slot 0 is the run, the others are
// pointers and sizes.
#ifndef HEDDLE_LOWER_KERNEL_H
#define HEDDLE_LOWER_KERNEL_H

#include "compiler/estimate/Stitching.h"
#include "compiler/graph/Graph.h"
#include "compiler/mechanism/Placement.h"
#include "compiler/program/Dialect.h"
#include "compiler/program/Machine.h"
#include "compiler/program/Program.h"
#include "compiler/program/build/Code.h"

namespace heddle::lower {

using graph::Dim;
using graph::DimVector;
using mlir::Type;
using mlir::Value;
using program::Code;
using program::Values;

struct Argument {
  enum class Kind { Call, Tensor, Temporary, Data, Size, Number, Message, LibraryCall };
  Kind kind;
  Value tensor;      // Tensor: a value of the graph, constants included
  int64_t index = 0; // Temporary, Data or LibraryCall: its number; Number: the word
  std::string text;  // Size: of a Dim; Message: what a failure says, with %lld for two values
};

/// A size that is at most so much.
struct Bound {
  Dim size;
  int64_t most;
};

struct Phase {
  std::string function;
  Dim tasks;
  Dim work;             // about how many scalar operations all tasks take together
  Dim scratchBytes;     // of one worker
  int64_t threads = 1;  // of a device, that carry out a task together
  bool isAlone = false; // on the thread of the run: a library brings its own threads
  int64_t version = -1; // of the kernel, to which alone it belongs
  /// Whether it writes temporaries alone, and what it reads and its sizes come from outside of the
  /// loop whose body has the group: the first iteration launches it for all.
  bool isInvariant = false;
};

struct Kernel {
  std::string name;
  std::string rows; // of a ragged group: the size that has the rows, of which it computes one
  bool isOfThreads = false; // of a device that shares tasks out one by one
  int64_t space = 0;        // of its results: 0 the host's memory, i that of Program::spaces[i - 1]
  std::vector<Argument> arguments;
  std::vector<Phase> phases;
  /// A run launches phases of the first version all whose bounds hold, besides those of none. Empty
  /// where there is one; the last version has no bounds.
  std::vector<std::vector<Bound>> versions;
  std::vector<Dim> temporaries; // bytes of buffers that live while the kernel runs
  std::vector<Dim> ofRow;       // and of each row's part
  std::vector<Dim> sizes; // that its functions compute, unchecked: whoever launches it checks them
  std::vector<std::shared_ptr<std::vector<char>>> data; // constants in the layout the kernel wants
  std::vector<program::LibraryCall> calls;
  std::vector<program::Source> sources;
};

/// Arithmetic of sizes. With `overflow`, an i1 or null for "no", an operation that leaves int64
/// adds to it; without, the caller knows that none does.
struct SizeArithmetic {
  Code &code;
  Value *overflow = nullptr;

  Value add(Value x, Value y) const;
  Value mul(Value x, Value y) const;
  /// The arithmetic has left int64 also where `found` is true.
  void noteOverflow(Value found) const;
  /// Code of a size expression; `symbol` gives the value of a name, and `part`, where there is one,
  /// that of an operand which is an expression itself.
  Value emit(const Dim &dim, llvm::function_ref<Value(llvm::StringRef)> symbol,
             llvm::function_ref<Value(const Dim &)> part = nullptr) const;
};

/// Makes the functions of one kernel. Between beginPhase and endPhase, `code` writes the body.
class KernelBuilder {
public:
  KernelBuilder(mlir::ModuleOp module, llvm::StringRef name, mlir::Location location,
                const program::Machine &machine);

  /// Refuses a group that the mechanism cannot carry out; the first reason is kept.
  mlir::LogicalResult refuse(const llvm::Twine &why);

  /// Begins a version, for sizes that are within these bounds and in no version before; it has the
  /// temporaries and packed constants of the versions before.
  void beginVersion(std::vector<Bound> bounds);
  /// `threads` of a device carry out each task together.
  void beginPhase(int64_t threads = 1);
  /// Begins a function, which `code` writes until `endHole`, that a kernel written by hand calls
  /// with its arguments; it is copied to where it is called. `inputs` follow the pointer to the
  /// kernel's arguments.
  mlir::ValueRange beginHole(llvm::StringRef name, llvm::ArrayRef<Type> inputs, Type result,
                             int64_t lanes);
  void endHole(Value result);
  Value arguments() { return function.getArgument(0); }
  mlir::ModuleOp program() { return module; }
  /// Ends a phase of one task, which the thread of the run carries out.
  void endLonePhase();
  void endPhase(const Dim &tasks, const Dim &work, const Dim &scratchBytes = Dim(0));
  /// Runs `body` for each of the phase's tasks that this call was given.
  void forEachTask(llvm::function_ref<void(Value task)> body);
  /// Runs `body` for the part [low, high) of each row of `length` tasks that has any, so that only
  /// a row, and not each task, costs divisions.
  void forEachTaskRow(Value length,
                      llvm::function_ref<void(Value row, Value low, Value high)> body);
  /// Runs `body` for pieces [first, end) of those tasks, about equal ones of at most `most` tasks.
  void forEachRun(int64_t most, llvm::function_ref<void(Value first, Value end)> body);

  Value pointer(Value tensor);
  Value temporary(int64_t number);
  Value data(int64_t number);
  Value dim(const Dim &dim);
  int64_t addTemporary(const Dim &bytes);
  int64_t addData(std::vector<char> bytes); // equal ones are one

  Code &code() { return *current; }
  Value message(llvm::StringRef text) { // its number, for program.fail
    return argument({Argument::Kind::Message, {}, 0, text.str()}, false);
  }
  Value libraryCall(program::LibraryCall call) { // its number, for the service `library`
    kernel.calls.push_back(std::move(call));
    return argument({Argument::Kind::LibraryCall, {}, (int64_t)kernel.calls.size() - 1, ""}, false);
  }
  Value call() { return argument({Argument::Kind::Call, {}, 0, ""}, true); }
  Value scratch() { return function.getArgument(3); }

  const program::Machine machine;
  Kernel kernel;
  /// Placements of results of groups, and of values in this one that are such.
  const mechanism::Placements *placements = nullptr;
  mechanism::Placements ownPlacements;
  const mechanism::Placement *placementOf(Value tensor) const;
  bool checksReads = false; // what is gathered is checked where it is read, by no phase before
  bool isTrial = false;     // mechanisms only find out whether they can carry the group out
  std::string refusal;
  std::optional<estimate::Stitching> stitching; // of a stitch

private:
  void begin(llvm::StringRef name, mlir::FunctionType type, int64_t lanes);
  Value argument(const Argument &wanted, bool isPointer);
  Value size(llvm::StringRef text);

  mlir::ModuleOp module;
  mlir::Location location;
  mlir::func::FuncOp function;
  bool isHole = false;
  mlir::OpBuilder body, prologue;
  std::unique_ptr<Code> current, early; // `early` writes at the top of the function
  std::map<std::string, Value> dims;
  std::map<int64_t, Value> slots;
  size_t temporaryCount = 0; // of this version
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_KERNEL_H
