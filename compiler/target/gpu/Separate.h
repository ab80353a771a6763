// Separate: a program for the host and a device becomes two.
#ifndef HEDDLE_TARGET_GPU_SEPARATE_H
#define HEDDLE_TARGET_GPU_SEPARATE_H

#include "compiler/program/Dialect.h"
#include "compiler/program/Program.h"
#include "compiler/support/Error.h"

namespace heddle::gpu {

/// Takes the functions of the device out of `program`, whose host asks the runtime for all that the
/// device has to do, and adds it to Program::devices, without images. The functions come back as a
/// module without pointers of a space, in which words of arguments are addresses of its global
/// memory; those that are launched are Device::kernels, in order.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> separate(program::Program &program);

} // namespace heddle::gpu

#endif // HEDDLE_TARGET_GPU_SEPARATE_H
