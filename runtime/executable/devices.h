/* devices.h: the part of abi.h that is about devices beside the host.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_EXECUTABLE_DEVICES_H
#define HEDDLE_EXECUTABLE_DEVICES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of a device that is there for the whole run. */
enum { HEDDLE_DEVICE_ARENA, HEDDLE_DEVICE_WEIGHTS };

/* Words of `args` that a kernel may have: with the other parameters they are 4 KiB at most. */
enum { HEDDLE_MOST_WORDS = 508 };

/* Most threads of a worker that shares its block with others. */
enum { HEDDLE_WARP = 32 };

/* A kernel of a device: a function of its images. Its parameters are the words of `args` as one
 * array by value, where word 0 is the run's heddle_device_failure_t; the number of tasks (i64); the
 * memory of all workers (a pointer); and the bytes of it that one worker has (i64). */
typedef struct heddle_device_kernel {
  const char *name;
  const char *group;    /* for messages */
  int32_t words;        /* of args */
  int32_t threads;      /* of a worker: a power of two up to HEDDLE_WARP, or a block; 0: one */
  int64_t shared_bytes; /* of a block, beside those that the function declares */
} heddle_device_kernel_t;

/* The first failure of a run on a device, in the device's memory. */
typedef struct heddle_device_failure {
  int64_t status; /* 0, or 1 + a message's number */
  int64_t value, limit;
} heddle_device_failure_t;

/* One form of the code of all kernels of a device. */
typedef struct heddle_device_image {
  const char *chip;  /* that it is made for: "sm_80" */
  const void *bytes; /* machine code, or text that ends with a 0 */
  int64_t size;      /* of it, that 0 included */
  int32_t is_text;   /* PTX, of which the driver makes machine code for any later chip */
} heddle_device_image_t;

/* A device beside the host that has kernels and memory. */
typedef struct heddle_device {
  const char *space; /* "cuda" */
  const heddle_device_image_t *images;
  int64_t image_count;
  const heddle_device_kernel_t *kernels;
  int64_t kernel_count;
  int32_t may_fail; /* some kernel writes heddle_device_failure_t */
} heddle_device_t;

#ifdef __cplusplus
}
#endif
#endif
