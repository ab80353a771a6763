// Backend: programs for a CPU and an NVIDIA GPU: kernels of device "cuda" are PTX in the artefact
// that the CPU's backend writes.
//
// A target's name has chips and, beside them, CPUs: "cuda" (any chip), "sm_80+sm_90",
// "x86-64-v3+sm_80". Without a CPU's name the host is that of the machine that compiles. An
// artefact with CPUs named has a form without the device for each of them, too, which runs where
// there is no GPU.
#ifndef HEDDLE_TARGET_GPU_BACKEND_H
#define HEDDLE_TARGET_GPU_BACKEND_H

#include "compiler/target/Backend.h"

namespace heddle::gpu {

const target::Backend &backend();

} // namespace heddle::gpu

#endif // HEDDLE_TARGET_GPU_BACKEND_H
