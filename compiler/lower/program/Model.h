// Model: a planned model as kernels and the program around them.
#ifndef HEDDLE_LOWER_PROGRAM_MODEL_H
#define HEDDLE_LOWER_PROGRAM_MODEL_H

#include "compiler/program/Machine.h"
#include "compiler/program/Program.h"

#include "llvm/Support/Error.h"

namespace heddle::lower {

/// Fills in `program`, all but what it is named and how it is measured, from the groups of `model`
/// and their schedules, which their mechanisms must serve (lower::settle).
llvm::Error lowerModel(mlir::func::FuncOp model, const program::Machine &machine,
                       program::Program &program);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_PROGRAM_MODEL_H
