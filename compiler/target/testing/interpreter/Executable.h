// Executable: a program as the runtime runs it, each of whose functions is interpreted.
#ifndef HEDDLE_TARGET_TESTING_INTERPRETER_EXECUTABLE_H
#define HEDDLE_TARGET_TESTING_INTERPRETER_EXECUTABLE_H

#include "compiler/target/Backend.h"

namespace heddle::interpreter {

/// The program has to outlive it. Refused where it has an op that is not interpreted.
llvm::Expected<std::shared_ptr<target::LoadedProgram>> load(const program::Program &program,
                                                            const target::Target &target);

} // namespace heddle::interpreter

#endif // HEDDLE_TARGET_TESTING_INTERPRETER_EXECUTABLE_H
