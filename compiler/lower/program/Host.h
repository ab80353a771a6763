// Host: the program around the kernels: in which order they run, control flow, what binds sizes.
// Where tensors lie is in Storage, sizes as code are in SizeCode.
//
// The functions that come out are those of runtime/executable/abi.h: heddle_program_bind (symbols
// that values of inputs are), heddle_program_sizes (arena and output sizes from the symbols) and
// heddle_program_run. Sizes that follow from the inputs are computed once per call; tensors of such
// sizes lie in the arena, those whose sizes are known only at run time are allocated when they are
// made.
#ifndef HEDDLE_LOWER_HOST_H
#define HEDDLE_LOWER_HOST_H

#include "compiler/graph/edit/Words.h"
#include "compiler/lower/Kernel.h"
#include "compiler/lower/program/RowTables.h"
#include "compiler/lower/program/SizeCode.h"
#include "compiler/lower/program/Storage.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

#include <optional>

namespace heddle::lower {

class Host {
public:
  Host(mlir::func::FuncOp model,
       const std::map<mlir::Operation *, std::shared_ptr<Kernel>> &kernels,
       const mechanism::Placements &placements, program::Program &program);
  llvm::Error write();

private:
  // What inputs decide before anything is allocated, and what is overwritten (HostInputs.cpp).
  void writeBind();
  Value areUnbound();
  Values savedInputs(mlir::func::ReturnOp op);

  // Code (Host.cpp).
  Value placeBuffers(Value *overflow);
  void writeSizes();
  void writeRun();
  void beginFunction(llvm::StringRef name, unsigned pointers);
  Value area(program::Area which);
  Value dim(const Dim &dim);
  Value checkedBytes(Value result);
  void failIf(Value overflow, const llvm::Twine &what);
  Value pointerOf(Value value);
  Value alloc(Value bytes);
  Value allocOutput(int64_t output, Value bytes);
  void writeBlock(mlir::Block &block);
  void writeOutputs(mlir::func::ReturnOp op);
  void copy(Value target, Value source, Value bytes);
  void fail(llvm::StringRef message, Value value, Value limit);
  Value isFine();

  // Symbols that values bind while the program runs (HostSizes.cpp).
  void bindSymbols(mlir::Operation *op);
  void bindDims(Value result, llvm::ArrayRef<Value> sizes);
  void requireSize(Value found, const Dim &expected);
  void requireSize(Value found, Value wanted, llvm::StringRef name);
  void bindSizes(graph::BindSizesOp op);
  void bindReshape(graph::DynamicReshapeOp op);
  void bindBroadcast(graph::DynamicBroadcastOp op);
  void bindSlice(graph::DynamicSliceOp op);
  void bindRange(graph::RangeOp op);
  Value readInteger(Value tensor, int64_t index);
  Value loadInteger(Type element, Value memory, int64_t index);

  // Launches (HostLaunch.cpp).
  void writeGroup(graph::GroupOp group);
  void storeArguments(graph::GroupOp group, int64_t base);
  Value versionOf(const Kernel &kernel);
  void launchAlone(graph::GroupOp group, Value slots);
  mlir::func::FuncOp starterOf(mlir::func::FuncOp target);
  void launch(mlir::func::FuncOp target, Value slots, Value tasks, Value work, Value scratch,
              bool needsScratch);
  void launchRegion(llvm::ArrayRef<graph::GroupOp> members);
  mlir::func::FuncOp dispatcherOf(llvm::ArrayRef<mlir::func::FuncOp> targets,
                                  llvm::ArrayRef<int64_t> bases, bool areEqual);
  mlir::func::FuncOp functionOf(const Phase &phase);
  std::optional<mlir::SymbolTable> phaseFunctions;
  llvm::SmallVector<graph::GroupOp> launchedWith(graph::GroupOp group);
  /// Of each block, by their number.
  llvm::DenseMap<mlir::Block *, std::map<int64_t, llvm::SmallVector<graph::GroupOp>>> regions;
  void profile(graph::GroupOp group, llvm::function_ref<void()> launches);
  int64_t argumentSlots();

  // Ragged groups (HostRows.cpp).
  Value isNonzero(Type element, Value memory, Value index);
  Values lengthOfRow(Value memory, Value row);
  std::string wrongLength();
  void bindTotals(Value inputs, Value given);
  Value tableAt(Value table, Value rows, int64_t sum);
  void writeTables(graph::RowLengthsOp op);
  void launchRows(graph::GroupOp group);
  mlir::func::FuncOp rowDispatcher(mlir::func::FuncOp target, const Kernel &kernel,
                                   const Phase &phase);

  // What can be checked only at run time (HostChecks.cpp).
  struct Check {
    Dim a, b;
    enum Kind { NotNegative, Equal, EqualOrOne, AtMost, Memory } kind;
    std::string message;  // with %lld for a and b, or for what is told
    DimVector shape = {}; // Memory: of a tensor whose elements have `elementBytes`
    int64_t elementBytes = 0;
    DimVector told = {}; // two sizes, if not a and b
  };
  void forEachCheck(mlir::Operation *op, llvm::function_ref<void(const Check &)> visit);
  void forEachEntryCheck(llvm::function_ref<void(const Check &)> visit);
  static std::string keyOf(const Check &check);
  bool isEntryKnown(const Check &check) const;
  Value violation(const Check &check);
  Value isBeyondMemory(const Check &check, Value *overflow);
  void checkTensor(Value tensor, const std::string &node,
                   llvm::function_ref<void(const Check &)> visit);
  Value writeEntryChecks(Value values);
  void writeChecks(mlir::Operation *op);
  std::vector<Check> rowChecks();
  /// The sizes that a tensor of integers holds, if shapes tell.
  static std::optional<DimVector> sizesIn(Value tensor);
  Values toldBy(const Check &check);
  std::string messageOf(const Check &check) const;
  void failUnless(const Check &check);

  // Control flow (HostControl.cpp).
  void writeBody(mlir::Block &block, Value iteration);
  void writeIf(graph::IfOp op);
  struct Loop; // HostLoop.cpp
  void writeLoop(graph::LoopOp op);
  void writeScan(graph::ScanOp op);
  void requireSizes(Value found, Value expected);
  Values stackFirst(Value iteration, Value length, mlir::ValueRange carried, Value slice);

  // Sorting, selecting, compacting, trees, transforms (HostRoutines.cpp).
  void writeRoutine(mlir::Operation *op);
  Value scansOf(graph::ForestOp op);

  // Lists and strings (HostServices.cpp).
  void writeHosted(mlir::Operation *op);
  void writeListOp(mlir::Operation *op);
  void writeStringOp(mlir::Operation *op);
  void writeImageDecode(graph::ImageDecodeOp op);
  Value handleOf(Value list);
  Value addressOf(Value tensor);
  void addTensor(llvm::SmallVectorImpl<Value> &frame, Value tensor);
  Value positionOf(Value position, int64_t otherwise);
  Value messages(llvm::ArrayRef<llvm::StringRef> texts);
  Value callOn(program::Service service, llvm::ArrayRef<Value> frame);
  void bindMade(Value result, Value frame, int64_t sizes, llvm::ArrayRef<Value> known = {});

  llvm::SmallVector<std::string> unboundSymbols(mlir::ValueRange values) const;
  void bindFrom(Value result, Value source);

  mlir::func::FuncOp model;
  const std::map<mlir::Operation *, std::shared_ptr<Kernel>> &kernels;
  program::Program &program;
  RowTables tables;
  const Storage storage;
  mlir::OpBuilder builder, entry; // `entry` writes at the top of the function
  std::unique_ptr<Code> code, entryCode;
  mlir::func::FuncOp function;

  llvm::DenseMap<mlir::Attribute, int64_t> weightOf;
  std::map<const void *, int64_t> dataOf;

  // By their keys, the checks that hold where code is being written: those of the entry, then of
  // each block around it.
  llvm::SmallVector<llvm::StringSet<>> checked;
  std::string node; // "node 'conv_1': ", of the op whose code is being written
  // Sizes that heddle_program_run computes unchecked from the symbols of inputs, with the first
  // node that wants them; heddle_program_sizes shows that none overflows.
  std::map<std::string, std::pair<Dim, std::string>> entrySizes;
  std::optional<SizeCode> sizeCode; // of the function that is being written
  llvm::DenseMap<Value, Value> pointers;
  llvm::SmallVector<Value> offsets; // of `buffers` in the arena
  Value call, arena, arguments;
  Value isFirst;                                         // of the innermost loop's iterations
  int64_t openSlots = 0;                                 // of `arguments` that a region waits with
  std::map<std::string, mlir::func::FuncOp> dispatchers; // by their kernels and slots
  llvm::DenseMap<mlir::Operation *, mlir::func::FuncOp> starters; // by the functions they call
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_H
