// Threads: what threads of a team ask of each other, as NVPTX's intrinsics.
#ifndef HEDDLE_TARGET_GPU_THREADS_H
#define HEDDLE_TARGET_GPU_THREADS_H

#include "compiler/program/Dialect.h"

#include "runtime/executable/abi.h"

namespace heddle::gpu {

/// Threads of a warp, which are in step.
inline constexpr int64_t kWarp = HEDDLE_WARP;

/// Lowers such ops of the kernel; pointers are LLVM's by now. Returns the bytes of shared memory
/// that a launch has to ask for.
int64_t lowerTeam(mlir::func::FuncOp kernel);

} // namespace heddle::gpu

#endif // HEDDLE_TARGET_GPU_THREADS_H
