// Jit: objects made runnable in this process.
#ifndef HEDDLE_TARGET_CPU_JIT_H
#define HEDDLE_TARGET_CPU_JIT_H

#include "compiler/target/Backend.h"
#include "compiler/target/cpu/Emit.h"

namespace heddle::cpu {

using target::LoadedProgram;

/// The objects are those of emitObjects for this program. Borrowed weights are copied; they live as
/// long as what is returned.
llvm::Expected<std::shared_ptr<LoadedProgram>> load(const program::Program &program,
                                                    const Target &target, const Objects &objects);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_JIT_H
