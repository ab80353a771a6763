// FatalErrors: LLVM's code generator ends the process when it cannot go on; a library must not.
#ifndef HEDDLE_TARGET_CPU_FATALERRORS_H
#define HEDDLE_TARGET_CPU_FATALERRORS_H

#include "compiler/support/Error.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace heddle::cpu {

/// Runs `body` in this thread. A fatal error of LLVM inside it comes back as an error; what `body`
/// had made until then is lost, memory included.
llvm::Error catchFatalErrors(llvm::function_ref<llvm::Error()> body);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_FATALERRORS_H
