// Linker: the linker of the machine, run as a child.
#ifndef HEDDLE_TARGET_CPU_ARTEFACT_LINKER_H
#define HEDDLE_TARGET_CPU_ARTEFACT_LINKER_H

#include "compiler/support/Error.h"

#include <string>
#include <vector>

namespace heddle::cpu {

/// Runs versioned("ld.lld"), ld.lld, ld or cc, whichever PATH has first, with arguments of ld.
/// `path` is what the user asked for: errors name it.
llvm::Error runLinker(std::vector<std::string> arguments, llvm::StringRef path);

/// Will it be LLVM's?
bool hasLLVMLinker();

/// The file that this process loaded a shared library from, or "": it is on the machine even if
/// development packages are not. Addresses of its functions do not tell, since those that a program
/// takes are in the program.
std::string pathOfLoaded(const char *name);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_ARTEFACT_LINKER_H
