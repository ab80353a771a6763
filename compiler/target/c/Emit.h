// Emit: a program as one portable C99 file.
#ifndef HEDDLE_TARGET_C_EMIT_H
#define HEDDLE_TARGET_C_EMIT_H

#include "compiler/program/Program.h"
#include "compiler/support/Error.h"

namespace heddle::c {

/// The file; `program` stays as it is. Programs that need the runtime are refused: strings, lists,
/// images, and services.
llvm::Expected<std::string> emit(const program::Program &program);

/// The functions of a module, after declarations and what they call; makes the module ready first.
llvm::Expected<std::string> printFunctions(mlir::ModuleOp module);

/// For heddle-opt: each pass by itself.
void registerPasses();

} // namespace heddle::c

#endif // HEDDLE_TARGET_C_EMIT_H
