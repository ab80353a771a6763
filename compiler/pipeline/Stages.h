// Stages: carries out the stages of a compilation by name: how long each takes, who is told of it,
// whether the module after it is valid, and that module as text for who asks for that.
#ifndef HEDDLE_PIPELINE_STAGES_H
#define HEDDLE_PIPELINE_STAGES_H

#include "compiler/pipeline/Pipeline.h"
#include "compiler/support/Json.h"

namespace heddle {

class Stages {
public:
  explicit Stages(const CompileOptions &options) : options(options) {}

  /// Runs `stage`, which begins at `fraction` of a compilation, and verifies the module that it has
  /// made where that is asked for, as it is in builds with assertions.
  llvm::Error run(llvm::StringRef name, double fraction, llvm::function_ref<llvm::Error()> stage,
                  llvm::function_ref<mlir::ModuleOp()> made);
  /// Runs a stage that makes no module, but `text`.
  llvm::Error runToText(llvm::StringRef name, double fraction,
                        llvm::function_ref<llvm::Error()> stage,
                        llvm::function_ref<std::string()> text);
  /// Enters the stages of variant number `i` of `count`, which is compiled for `target`.
  void enterVariant(size_t i, size_t count, llvm::StringRef target);

  Json seconds = Json::object(); // of each ended stage

private:
  llvm::Error carryOut(llvm::StringRef name, double fraction,
                       llvm::function_ref<llvm::Error()> stage);
  void print(llvm::StringRef name, llvm::function_ref<std::string()> text);

  const CompileOptions &options;
  double before = 0, share = 1; // parts of the whole compilation: earlier variants, this one
  std::string target;
};

/// The text of a module, large constants elided.
std::string textOf(mlir::ModuleOp module);

} // namespace heddle

#endif // HEDDLE_PIPELINE_STAGES_H
