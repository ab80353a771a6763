// Passes: steps of this backend by themselves, for heddle-opt.
#ifndef HEDDLE_TARGET_CPU_PASSES_H
#define HEDDLE_TARGET_CPU_PASSES_H

namespace heddle::cpu {

/// heddle-lower-program: ops of the program dialect become those of LLVM.
void registerPasses();

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_PASSES_H
