// Program: a trial, or a group cut out of a model, compiled and loaded in this process.
#ifndef HEDDLE_TRIAL_PROGRAM_H
#define HEDDLE_TRIAL_PROGRAM_H

#include "compiler/plan/Plan.h"
#include "compiler/reference/Tensor.h"
#include "compiler/trial/Group.h"

#include "heddle/runtime.h"

namespace heddle {
struct Compiled;
struct CompileOptions;
} // namespace heddle
namespace heddle::target {
class LoadedProgram;
}

namespace heddle::trial {

class Program {
public:
  /// Compiles the module with this card's schedule on its group, with nothing else changed.
  /// Versions for sizes that the group does not have are left out.
  static llvm::Expected<std::unique_ptr<Program>>
  make(const std::string &module, const std::string &cardText, llvm::StringRef cardPath,
       const warehouse::KnobValues &knobs, std::vector<plan::Version> versions = {});
  /// Compiles a module whose groups have their schedules, with the options' target and level. It
  /// lives in a context that outlives the program.
  static llvm::Expected<std::unique_ptr<Program>> borrow(mlir::MLIRContext &context,
                                                         mlir::OwningOpRef<mlir::ModuleOp> module,
                                                         CompileOptions options);
  /// Compiles a module that has no groups yet, as a model with these options.
  static llvm::Expected<std::unique_ptr<Program>> whole(mlir::MLIRContext &context,
                                                        mlir::OwningOpRef<mlir::ModuleOp> module,
                                                        const CompileOptions &options);
  ~Program();
  Program(const Program &) = delete;

  /// Results of these element types, which live in the caller's context.
  llvm::Expected<reference::Tensors> run(llvm::ArrayRef<reference::Tensor> inputs,
                                         llvm::ArrayRef<mlir::Type> elements);
  /// Runs in a child process, which may crash or not end: then an error says so. Nothing of this
  /// process has to be ready but the program, so the two ways are not mixed.
  llvm::Expected<reference::Tensors> runApart(llvm::ArrayRef<reference::Tensor> inputs,
                                              llvm::ArrayRef<mlir::Type> elements, int64_t seconds);
  /// Handle for sessions of another kind than that of `run`, which begins one of two threads.
  heddle_module_t *handle() const { return module; }
  /// Puts code and constants into other memory, with other pages. Ends the sessions' module.
  llvm::Error place();
  /// Bytes of constants, as the kernels read them.
  int64_t weightsBytes() const;
  /// Whether the kernel is what the card's mechanism makes, and not element by element instead.
  bool isCarriedOut = false;

private:
  Program();
  static llvm::Expected<std::unique_ptr<Program>> load(std::shared_ptr<mlir::MLIRContext> context,
                                                       mlir::OwningOpRef<mlir::ModuleOp> module,
                                                       const CompileOptions &options);

  std::unique_ptr<Compiled> compiled;
  std::shared_ptr<target::LoadedProgram> loaded;
  heddle_module_t *module = nullptr;
  heddle_session_t *session = nullptr;
};

/// Elements of less than 8 bits as the C API has them.
reference::Tensor packed(const reference::Tensor &tensor);
/// The tensor as the C API takes it; the bytes stay the tensor's.
heddle_tensor_t viewOf(const reference::Tensor &packed);
llvm::Error errorOf(heddle_status_t *status);

} // namespace heddle::trial

#endif // HEDDLE_TRIAL_PROGRAM_H
