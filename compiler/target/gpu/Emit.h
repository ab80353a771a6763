// Emit: the functions of a device as text of PTX, one for each chip.
#ifndef HEDDLE_TARGET_GPU_EMIT_H
#define HEDDLE_TARGET_GPU_EMIT_H

#include "compiler/program/Program.h"
#include "compiler/support/Error.h"
#include "compiler/target/gpu/Chip.h"

namespace heddle::gpu {

/// Makes the images of `device` from its functions (compiler/target/gpu/Separate.h), which it
/// lowers.
llvm::Error emitImages(mlir::ModuleOp functions, llvm::ArrayRef<const Chip *> chips, int optLevel,
                       program::Device &device);

} // namespace heddle::gpu

#endif // HEDDLE_TARGET_GPU_EMIT_H
