// Launcher: arguments of kernels, and their launches: one after the other, or those of a region all
// at once.
//
// Slots of a region that launches K kernels: 0 the call, then for each kernel the number of its
// tasks, then the slots of each kernel.
#ifndef HEDDLE_LOWER_HOST_LAUNCHER_H
#define HEDDLE_LOWER_HOST_LAUNCHER_H

#include "compiler/lower/host/Memory.h"

namespace heddle::lower {

using Kernels = std::map<mlir::Operation *, std::shared_ptr<Kernel>>;

/// Groups that are launched together.
class Regions {
public:
  explicit Regions(const Kernels &kernels) : kernels(kernels) {}
  /// The groups of the region that one launch runs: the most of one phase that have a device, and a
  /// function if that is of a team, in common, when there are several; otherwise the group alone.
  llvm::SmallVector<graph::GroupOp> launchedWith(graph::GroupOp group);
  const Kernel &kernelOf(graph::GroupOp group) const { return *kernels.at(group); }
  /// Slots that the launches of the model need at a time.
  int64_t argumentSlots(mlir::func::FuncOp model);

private:
  void findRegions(mlir::Block &block);

  const Kernels &kernels;
  /// Groups of each block's regions, by their number, that one launch can run.
  llvm::DenseMap<mlir::Block *, std::map<int64_t, llvm::SmallVector<graph::GroupOp>>> regions;
};

class Launcher {
public:
  /// `arguments` are slots for all launches.
  Launcher(Writer &host, Sizes &sizes, Memory &memory, const Storage &storage, Regions &regions,
           Value arguments)
      : host(host), code(host.code), builder(host.builder), sizes(sizes), memory(memory),
        storage(storage), regions(regions), arguments(arguments) {}

  /// Launches a group: now, or with the last one of its region.
  void write(graph::GroupOp group);

  // Parts of launches of other forms.
  /// The first slot of a launch; those before it wait for the launch of a region.
  int64_t firstSlot() const { return openSlots; }
  Value slotsFrom(int64_t slot);
  void store(Value word, int64_t slot);
  void storeArguments(graph::GroupOp group, int64_t base);
  /// Tells the runtime which group's kernels begin and end here, when it is to know.
  void profile(graph::GroupOp group, llvm::function_ref<void()> launches);
  void launch(mlir::func::FuncOp target, Value slots, Value tasks, Value work, Value scratch,
              bool needsScratch);
  mlir::func::FuncOp functionOf(const Phase &phase, int64_t words);
  /// A function beside the host's that calls the functions of kernels, of their type: made once for
  /// a key, then known by it.
  mlir::func::FuncOp dispatcher(llvm::StringRef name, llvm::StringRef key, mlir::FunctionType type,
                                llvm::function_ref<void(Code &, mlir::Block &)> write);

private:
  Value argumentOf(graph::GroupOp group, const Argument &argument);
  Value tensorOf(graph::GroupOp group, Value tensor);
  Value versionOf(const Kernel &kernel);
  void launchAlone(graph::GroupOp group, Value slots);
  void launchRegion(llvm::ArrayRef<graph::GroupOp> members);
  mlir::func::FuncOp starterOf(mlir::func::FuncOp target);
  mlir::func::FuncOp regionDispatcher(llvm::ArrayRef<mlir::func::FuncOp> targets,
                                      llvm::ArrayRef<int64_t> bases, bool areEqual);

  Writer &host;
  Code &code;
  mlir::OpBuilder &builder;
  Sizes &sizes;
  Memory &memory;
  const Storage &storage;
  Regions &regions;
  Value arguments;
  int64_t openSlots = 0; // that a region waits with
  std::map<const void *, int64_t> dataOf;
  std::optional<mlir::SymbolTable> phaseFunctions;
  std::map<std::string, mlir::func::FuncOp> dispatchers;          // by their kernels and slots
  llvm::DenseMap<mlir::Operation *, mlir::func::FuncOp> starters; // by the functions they call
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_LAUNCHER_H
