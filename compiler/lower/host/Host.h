// Host: the program around the kernels, from parts that write each what it is about: Entry what a
// call computes before the run; for heddle_program_run Sizes, Memory and Checks what all code asks
// for, Bindings symbols that values bind, Launcher and Rows kernels, Services and Routines ops
// without one, Control regions. Where tensors lie is in Storage, sizes as code are in SizeCode.
//
// The functions that come out are those of runtime/executable/abi.h: heddle_program_bind (symbols
// that values of inputs are), heddle_program_sizes (arena and output sizes from the symbols) and
// heddle_program_run. Sizes that follow from the inputs are computed once per call; tensors of such
// sizes lie in the arena, those whose sizes are known only at run time are allocated when they are
// made.
#ifndef HEDDLE_LOWER_HOST_HOST_H
#define HEDDLE_LOWER_HOST_HOST_H

#include "compiler/lower/Kernel.h"

namespace heddle::lower {

/// Adds the host's functions to a program that has those of all kernels.
void writeHost(mlir::func::FuncOp model,
               const std::map<mlir::Operation *, std::shared_ptr<Kernel>> &kernels,
               const mechanism::Placements &placements, program::Program &program);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_HOST_H
