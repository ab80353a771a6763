// Jit: objects made runnable in this process.
#ifndef HEDDLE_TARGET_CPU_JIT_H
#define HEDDLE_TARGET_CPU_JIT_H

#include "compiler/target/cpu/Emit.h"

#include "runtime/executable/abi.h"

namespace heddle::cpu {

/// A program in memory; the descriptor and the weights live as long as this.
class LoadedProgram {
public:
  virtual ~LoadedProgram() = default;
  virtual const heddle_executable_t *executable() const = 0;
};

/// The objects are those of emitObjects for this program. Borrowed weights are copied.
llvm::Expected<std::shared_ptr<LoadedProgram>> load(const program::Program &program,
                                                    const Target &target, const Objects &objects);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_JIT_H
