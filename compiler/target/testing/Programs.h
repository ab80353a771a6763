// Programs: hand-made programs for tests of code generation, and ways to run them.
#ifndef HEDDLE_TARGET_TESTING_PROGRAMS_H
#define HEDDLE_TARGET_TESTING_PROGRAMS_H

#include "compiler/target/cpu/Emit.h"
#include "compiler/target/cpu/Jit.h"

#include "runtime/executable/abi.h"

namespace heddle::testing {

void loadDialects(mlir::MLIRContext &context);
program::Program parseProgram(mlir::MLIRContext &context, llvm::StringRef text);
cpu::Target host();

/// y = 2 x + weights[0] over the symbol `n`: a whole program of one kernel.
program::Program scaleProgram(mlir::MLIRContext &context, std::vector<float> weights);
/// Runs scaleProgram on `x` in two halves.
std::vector<float> runScale(const heddle_executable_t &executable, const std::vector<float> &x);

/// Code that reads at the pointer %x and writes at %y.
class Kernel {
public:
  static std::shared_ptr<Kernel> compile(const std::string &body, const cpu::Target &target);
  void operator()(const void *x, void *y) const;

private:
  mlir::MLIRContext context;
  std::shared_ptr<cpu::LoadedProgram> loaded;
};

} // namespace heddle::testing

#endif // HEDDLE_TARGET_TESTING_PROGRAMS_H
