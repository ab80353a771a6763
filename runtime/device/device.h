/* device.h: the devices of a loaded module, which its sessions share: the code of their kernels and
 * the weights, in the memory of each. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_DEVICE_DEVICE_H
#define HEDDLE_DEVICE_DEVICE_H

#include "runtime/device/driver.h"
#include "runtime/executable/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names the kind of device whose form of an artefact is to run: "cpu", or "cuda". */
#define HEDDLE_DEVICE_VARIABLE "HEDDLE_DEVICE"

enum { HEDDLE_MOST_DEVICES = 16, HEDDLE_MOST_THREADS = 1024 };

/* One GPU. Device i of an executable is the driver's device i. */
typedef struct heddle_gpu {
  const heddle_driver_t *driver;
  const char *model;
  const heddle_device_t *description;
  CUdevice device;
  CUcontext context; /* the primary one, which all of the process share; NULL: not held */
  CUmodule module;
  CUfunction *functions; /* one per kernel */
  CUdeviceptr weights;
  int64_t processors;
  char *lost; /* atomic: why no run can use it any more, or NULL */
} heddle_gpu_t;

typedef struct heddle_devices {
  int64_t count;
  heddle_gpu_t gpus[];
} heddle_devices_t;

/* Adds to `problems` what is wrong with the tables of devices. */
void heddle_devices_check(const heddle_executable_t *executable, heddle_text_t *problems);

/* Adds to `why` the reason why this machine lacks what the devices of a sound executable are, as
 * "needs an NVIDIA GPU, but there is no driver: ...": nothing where it can run it. */
void heddle_devices_missing(const heddle_executable_t *executable, heddle_text_t *why);

/* Loads the code and the weights of an executable that has devices, of which none is missing. */
heddle_status_t *heddle_devices_open(const heddle_executable_t *executable,
                                     heddle_devices_t **devices);
/* After the last session. NULL: nothing. */
void heddle_devices_close(heddle_devices_t *devices);

/* What the driver said of a function that was called for a group, or NULL for no group in
 * particular. NULL for success. Where the error is one after which the context does nothing any
 * more, all later runs are refused by the same sentence. */
heddle_status_t *heddle_gpu_check(heddle_gpu_t *gpu, CUresult error, const char *function,
                                  const char *group);
#define HEDDLE_ASK(gpu, group, function, ...)                                                      \
  heddle_gpu_check(gpu, (gpu)->driver->function(__VA_ARGS__), #function, group)

/* Makes the GPU's context the thread's, until heddle_gpu_leave, which returns `status` or what the
 * driver says. */
heddle_status_t *heddle_gpu_enter(heddle_gpu_t *gpu);
heddle_status_t *heddle_gpu_leave(heddle_gpu_t *gpu, heddle_status_t *status);

#ifdef __cplusplus
}
#endif
#endif
