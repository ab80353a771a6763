// Model: a planned model as kernels and the program around them.
#ifndef HEDDLE_LOWER_PROGRAM_MODEL_H
#define HEDDLE_LOWER_PROGRAM_MODEL_H

#include "compiler/loop/Machine.h"
#include "compiler/target/Program.h"

#include "llvm/Support/Error.h"

namespace heddle::lower {

/// A group whose schedule could not be carried out, and the form that it asked for; its kernel
/// computes each element on its own.
struct Simplified {
  std::string group, form;
};

/// Fills in `program`, all but what it is named and how it is measured, from the groups of `model`
/// and their schedules.
llvm::Expected<std::vector<Simplified>>
lowerModel(mlir::func::FuncOp model, const loop::Machine &machine, target::Program &program);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_PROGRAM_MODEL_H
