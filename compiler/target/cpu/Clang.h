// Clang: kernels in C and C++ as LLVM code, by the clang of this machine.
#ifndef HEDDLE_TARGET_CPU_CLANG_H
#define HEDDLE_TARGET_CPU_CLANG_H

#include "compiler/program/Program.h"
#include "compiler/target/cpu/Target.h"

#include "llvm/IR/Module.h"

namespace heddle::cpu {

/// "" if C can be compiled on this machine, else why not.
std::string whyNoClang();

/// Fills in the bitcode of each source. Nothing is written to disk; a source has 60 s.
llvm::Error compileSources(std::vector<program::Source> &sources, const Target &target);

/// Links their functions into the module, under the names that its declarations have.
llvm::Error linkSources(llvm::Module &module, const std::vector<program::Source> &sources);

/// Functions that came from a source: they are loops as people write them.
bool isHandwritten(const llvm::Function &function);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_CLANG_H
