/* driver.h: the functions of NVIDIA's driver that running on a GPU needs, found in its library when
 * the first such model is loaded.
 *
 * Nothing of Heddle is linked with CUDA, and none of its headers is needed: the prototypes are
 * those of the driver's stable C ABI. A symbol's suffix is the version of that ABI, which a
 * header's macros would add; the plain names are others. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_DEVICE_DRIVER_H
#define HEDDLE_DEVICE_DRIVER_H

#include "runtime/base/status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_CUDA_FILE "libcuda.so.1"
#define HEDDLE_CUDA_VARIABLE "HEDDLE_CUDA_DRIVER" /* of the environment: another file */

typedef int CUresult; /* 0: success */
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef unsigned long long CUdeviceptr;

enum {
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714, /* then an instruction, an address, a space, a counter */
  CUDA_ERROR_LAUNCH_FAILED = 719,
};
enum { /* CUdevice_attribute */
       CU_DEVICE_MULTIPROCESSOR_COUNT = 16,
       CU_DEVICE_COMPUTE_CAPABILITY_MAJOR = 75,
       CU_DEVICE_COMPUTE_CAPABILITY_MINOR = 76,
       CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
};
enum { CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };        /* CUfunction_attribute */
enum { CU_JIT_ERROR_LOG = 5, CU_JIT_ERROR_LOG_BYTES = 6 }; /* CUjit_option */
enum { CU_STREAM_NON_BLOCKING = 1 };                       /* of cuStreamCreate */
enum { CU_STREAM_CAPTURE_THREAD_LOCAL = 1 };               /* of cuStreamBeginCapture */
enum { HEDDLE_CUDA_VERSION = 12000 /* of the driver, at least: 12.0 */ };

#define HEDDLE_DRIVER_FUNCTIONS(X)                                                                 \
  X(cuInit, "cuInit", (unsigned flags))                                                            \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                      \
  X(cuGetErrorName, "cuGetErrorName", (CUresult, const char **))                                   \
  X(cuGetErrorString, "cuGetErrorString", (CUresult, const char **))                               \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int *))                                                 \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice *, int ordinal))                                         \
  X(cuDeviceGetName, "cuDeviceGetName", (char *, int bytes, CUdevice))                             \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *, int attribute, CUdevice))                \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                 \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                         \
  X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext))                                          \
  X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext *))                                          \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                                      \
    (CUmodule *, const void *image, unsigned count, int *options, void **values))                  \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule))                                                  \
  X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *name))        \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction, int attribute, int value))              \
  X(cuStreamCreate, "cuStreamCreate", (CUstream *, unsigned flags))                                \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream))                                             \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream))                                        \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream, int mode))                         \
  X(cuStreamEndCapture, "cuStreamEndCapture", (CUstream, CUgraph *))                               \
  X(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                                             \
    (CUgraphExec *, CUgraph, unsigned long long flags))                                            \
  X(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec, CUstream))                                       \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec))                                       \
  X(cuGraphDestroy, "cuGraphDestroy", (CUgraph))                                                   \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                          \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr))                                                      \
  X(cuMemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned flags))                           \
  X(cuMemFreeHost, "cuMemFreeHost", (void *))                                                      \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void *, size_t, CUstream))      \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *, CUdeviceptr, size_t, CUstream))            \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, size_t, CUstream))       \
  X(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr, unsigned char, size_t, CUstream))            \
  X(cuLaunchKernel, "cuLaunchKernel",                                                              \
    (CUfunction, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY, \
     unsigned blockZ, unsigned sharedBytes, CUstream, void **parameters, void **extra))

typedef struct heddle_driver {
#define X(name, symbol, prototype) CUresult(*name) prototype;
  HEDDLE_DRIVER_FUNCTIONS(X)
#undef X
  int device_count; /* at least 1 in a driver that is open */
} heddle_driver_t;

/* Opened once in a process; NULL and why not, as "there is no driver: libcuda.so.1: ...". */
const heddle_driver_t *heddle_driver_open(heddle_text_t *why);

/* Adds "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)". */
void heddle_driver_tell(const heddle_driver_t *driver, CUresult error, heddle_text_t *text);

#ifdef __cplusplus
}
#endif
#endif
