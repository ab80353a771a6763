// Emit: a program as one portable C99 file.
#ifndef HEDDLE_TARGET_C_EMIT_H
#define HEDDLE_TARGET_C_EMIT_H

#include "compiler/loop/Machine.h"
#include "compiler/program/Program.h"
#include "compiler/support/Error.h"

namespace heddle::c {

/// Whether `--target` names this one.
inline bool isTarget(llvm::StringRef name) { return name == "c"; }

/// What schedules are told: short vectors, which C compilers turn into those that a processor has,
/// and one worker.
loop::Machine machine();

/// The file; `program` stays as it is. What needs the runtime is refused: strings, lists, images,
/// and what is a service of the runtime.
llvm::Expected<std::string> emit(const program::Program &program);

} // namespace heddle::c

#endif // HEDDLE_TARGET_C_EMIT_H
