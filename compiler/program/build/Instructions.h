// Instructions: what a target has a word of its own for, as data: a function whose body is what the
// instruction means, and whose attribute is its text.
#ifndef HEDDLE_PROGRAM_BUILD_INSTRUCTIONS_H
#define HEDDLE_PROGRAM_BUILD_INSTRUCTIONS_H

#include "compiler/program/Dialect.h"

namespace heddle::program {

/// Attribute of a function that is an instruction: its text, "mac $0, $1, $2". The body has ops
/// without effects, and the function one result.
inline constexpr llvm::StringLiteral kInstruction = "program.instruction";

/// "" for a function that can be an instruction, else what is wrong with it.
std::string whyNoInstruction(mlir::func::FuncOp function);

/// Calls the instruction where `kernel` has the ops of its body, which give the same value. Returns
/// how often.
int64_t useInstruction(mlir::func::FuncOp kernel, mlir::func::FuncOp instruction);

} // namespace heddle::program

#endif // HEDDLE_PROGRAM_BUILD_INSTRUCTIONS_H
