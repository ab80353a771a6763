/* device.c: see device.h. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/device.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_IMAGES = 64, LOG_BYTES = 8192 };

/* "sm_90a": number 90; code of a name with a letter runs on no other chip. */
typedef struct chip {
  int64_t number;
  bool isExact;
} chip_t;

static bool readChip(const char *name, chip_t *chip) {
  if (!name || strncmp(name, "sm_", 3) != 0)
    return false;
  const char *at = name + 3;
  *chip = (chip_t){0};
  for (; *at >= '0' && *at <= '9' && chip->number < 1000; ++at)
    chip->number = chip->number * 10 + (*at - '0');
  chip->isExact = *at >= 'a' && *at <= 'z';
  return chip->number >= 10 && !at[chip->isExact];
}

/* How good an image is for a chip, or -1: machine code before text, the newest first. */
static int64_t rankOf(const heddle_device_image_t *image, int64_t chip) {
  chip_t of;
  if (!readChip(image->chip, &of))
    return -1;
  bool fits = of.isExact       ? of.number == chip
              : image->is_text ? of.number <= chip
                               : of.number <= chip && of.number / 10 == chip / 10;
  return fits ? (image->is_text ? 0 : INT64_C(1) << 32) + of.number * 2 + of.isExact : -1;
}

static bool isSoundImage(const heddle_device_image_t *image) {
  chip_t chip;
  return readChip(image->chip, &chip) && image->bytes && image->size > 0 &&
         (!image->is_text || ((const char *)image->bytes)[image->size - 1] == 0);
}

static bool isSoundKernel(const heddle_device_kernel_t *kernel) {
  return kernel->name && kernel->group && kernel->words >= 1 &&
         kernel->words <= HEDDLE_MOST_WORDS && kernel->threads >= 0 &&
         kernel->threads <= HEDDLE_MOST_THREADS &&
         (kernel->threads > HEDDLE_WARP || (kernel->threads & (kernel->threads - 1)) == 0) &&
         kernel->shared_bytes >= 0 && kernel->shared_bytes <= INT32_MAX;
}

void heddle_devices_check(const heddle_executable_t *executable, heddle_text_t *problems) {
  if (executable->device_count < 0 || executable->device_count > HEDDLE_MOST_DEVICES ||
      (executable->device_count && !executable->devices)) {
    heddle_text_add(problems, "; it has %lld devices (at most: %d)",
                    (long long)executable->device_count, HEDDLE_MOST_DEVICES);
    return;
  }
  for (int64_t i = 0; i < executable->device_count; ++i) {
    const heddle_device_t *device = &executable->devices[i];
    if (!device->space || device->image_count < 1 || device->image_count > MOST_IMAGES ||
        !device->images || device->kernel_count < 0 || (device->kernel_count && !device->kernels)) {
      heddle_text_add(problems, "; device %lld lacks a name, images or kernels", (long long)i);
      continue;
    }
    for (int64_t j = 0; j < device->image_count; ++j)
      if (!isSoundImage(&device->images[j]))
        heddle_text_add(problems, "; image %lld of device '%s' is empty, or for no known chip",
                        (long long)j, device->space);
    for (int64_t j = 0; j < device->kernel_count; ++j)
      if (!isSoundKernel(&device->kernels[j]))
        heddle_text_add(problems,
                        "; kernel %lld of device '%s' has %d words, %d threads and %lld bytes",
                        (long long)j, device->space, device->kernels[j].words,
                        device->kernels[j].threads, (long long)device->kernels[j].shared_bytes);
  }
}

static bool askAttribute(const heddle_driver_t *driver, CUdevice device, int attribute,
                         int64_t *value, heddle_text_t *why) {
  int found = 0;
  CUresult error = driver->cuDeviceGetAttribute(&found, attribute, device);
  *value = found;
  if (!error)
    return true;
  heddle_text_add(why, "needs an NVIDIA GPU, but cuDeviceGetAttribute: ");
  heddle_driver_tell(driver, error, why);
  return false;
}

static bool askChip(const heddle_driver_t *driver, CUdevice device, int64_t *chip,
                    heddle_text_t *why) {
  int64_t major = 0, minor = 0;
  bool isKnown = askAttribute(driver, device, CU_DEVICE_COMPUTE_CAPABILITY_MAJOR, &major, why) &&
                 askAttribute(driver, device, CU_DEVICE_COMPUTE_CAPABILITY_MINOR, &minor, why);
  *chip = major * 10 + minor;
  return isKnown;
}

static void nameOf(const heddle_driver_t *driver, CUdevice device, char *name, int bytes) {
  if (driver->cuDeviceGetName(name, bytes, device))
    strcpy(name, "NVIDIA GPU");
}

/* Whether the machine's GPU is one that the device's code and its blocks fit. */
static bool fitsGpu(const heddle_driver_t *driver, CUdevice device,
                    const heddle_device_t *description, heddle_text_t *why) {
  char name[128] = "";
  int64_t chip = 0, shared = 0, best = -1;
  if (!askChip(driver, device, &chip, why) ||
      !askAttribute(driver, device, CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared, why))
    return false;
  nameOf(driver, device, name, sizeof name);
  for (int64_t i = 0; i < description->image_count; ++i) {
    int64_t rank = rankOf(&description->images[i], chip);
    best = rank > best ? rank : best;
  }
  if (best < 0) {
    heddle_text_add(why, "has code for");
    for (int64_t i = 0; i < description->image_count; ++i)
      heddle_text_add(why, "%s %s%s", i ? "," : "", description->images[i].chip,
                      description->images[i].is_text ? " and later" : "");
    heddle_text_add(why, ", but '%s' is sm_%lld", name, (long long)chip);
    return false;
  }
  for (int64_t i = 0; i < description->kernel_count; ++i) {
    const heddle_device_kernel_t *kernel = &description->kernels[i];
    if (kernel->shared_bytes <= shared)
      continue;
    heddle_text_add(why, "needs %lld bytes of shared memory for group '%s', but '%s' has %lld",
                    (long long)kernel->shared_bytes, kernel->group, name, (long long)shared);
    return false;
  }
  return true;
}

void heddle_devices_missing(const heddle_executable_t *executable, heddle_text_t *why) {
  const heddle_driver_t *driver = NULL;
  for (int64_t i = 0; i < executable->device_count; ++i) {
    const heddle_device_t *description = &executable->devices[i];
    CUdevice device = 0;
    CUresult error = 0;
    if (strcmp(description->space, "cuda") != 0) {
      heddle_text_add(why, "needs a device that this runtime does not know (it knows 'cuda')");
      return;
    }
    heddle_text_t reason = {0};
    if (!driver && !(driver = heddle_driver_open(&reason))) {
      heddle_text_add(why, "needs an NVIDIA GPU, but %s", reason.data ? reason.data : "?");
      heddle_text_free(&reason);
      return;
    }
    if (i >= driver->device_count) {
      heddle_text_add(why, "needs %lld NVIDIA GPUs, but there are %d",
                      (long long)executable->device_count, driver->device_count);
      return;
    }
    if ((error = driver->cuDeviceGet(&device, (int)i))) {
      heddle_text_add(why, "needs an NVIDIA GPU, but cuDeviceGet: ");
      heddle_driver_tell(driver, error, why);
      return;
    }
    if (!fitsGpu(driver, device, description, why))
      return;
  }
}

/* After these a context answers every call with the same error. */
static bool losesContext(CUresult error) {
  return error == CUDA_ERROR_ECC_UNCORRECTABLE || error == CUDA_ERROR_NVLINK_UNCORRECTABLE ||
         error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_TIMEOUT ||
         error == CUDA_ERROR_CONTEXT_IS_DESTROYED || error == CUDA_ERROR_ASSERT ||
         (error >= CUDA_ERROR_HARDWARE_STACK_ERROR && error <= CUDA_ERROR_LAUNCH_FAILED);
}

heddle_status_t *heddle_gpu_check(heddle_gpu_t *gpu, CUresult error, const char *function,
                                  const char *group) {
  if (!error)
    return NULL;
  heddle_text_t text = {0};
  heddle_text_add(&text, "model '%s': %s%s%s%s: ", gpu->model, group ? "group '" : "",
                  group ? group : "", group ? "': " : "", function);
  heddle_driver_tell(gpu->driver, error, &text);
  bool isLost = losesContext(error);
  if (error == CUDA_ERROR_OUT_OF_MEMORY)
    heddle_text_add(&text, "; use smaller inputs or fewer runs at once");
  else if (isLost)
    heddle_text_add(&text, "; what this process has on the GPU is lost, so start it again");
  heddle_status_t *status =
      heddle_status_make(error == CUDA_ERROR_OUT_OF_MEMORY ? HEDDLE_LIMIT : HEDDLE_REFUSED, "%s",
                         text.data ? text.data : "out of memory for a driver's message");
  char *none = NULL;
  if (isLost && text.data &&
      __atomic_compare_exchange_n(&gpu->lost, &none, text.data, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    text = (heddle_text_t){0}; /* the GPU's now */
  heddle_text_free(&text);
  return status;
}

heddle_status_t *heddle_gpu_enter(heddle_gpu_t *gpu) {
  return HEDDLE_ASK(gpu, NULL, cuCtxPushCurrent, gpu->context);
}

heddle_status_t *heddle_gpu_leave(heddle_gpu_t *gpu, heddle_status_t *status) {
  CUcontext former;
  heddle_status_t *left = HEDDLE_ASK(gpu, NULL, cuCtxPopCurrent, &former);
  if (!status)
    return left;
  heddle_status_destroy(left);
  return status;
}

/* The best image that the driver takes: it may be older than one of them. */
static heddle_status_t *loadImage(heddle_gpu_t *gpu) {
  const heddle_device_t *description = gpu->description;
  heddle_text_t why = {0};
  int64_t chip = 0;
  uint64_t refused = 0; /* bit i: image i */
  if (!askChip(gpu->driver, gpu->device, &chip, &why)) {
    heddle_status_t *status =
        heddle_status_make(HEDDLE_REFUSED, "model '%s' %s", gpu->model, why.data ? why.data : "?");
    heddle_text_free(&why);
    return status;
  }
  for (;;) {
    int64_t best = -1, found = -1;
    for (int64_t i = 0; i < description->image_count; ++i) {
      int64_t rank = refused >> i & 1 ? -1 : rankOf(&description->images[i], chip);
      if (rank > best)
        best = rank, found = i;
    }
    if (best < 0)
      break;
    char log[LOG_BYTES] = "";
    int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    const heddle_device_image_t *image = &description->images[found];
    CUresult error =
        gpu->driver->cuModuleLoadDataEx(&gpu->module, image->bytes, 2, options, values);
    if (!error) {
      heddle_text_free(&why);
      return NULL;
    }
    gpu->module = NULL;
    if (losesContext(error)) {
      heddle_text_free(&why);
      return heddle_gpu_check(gpu, error, "cuModuleLoadDataEx", NULL);
    }
    refused |= UINT64_C(1) << found;
    heddle_text_add(&why, "; %s of %s: cuModuleLoadDataEx: ", image->is_text ? "text" : "code",
                    image->chip);
    heddle_driver_tell(gpu->driver, error, &why);
    if (log[0])
      heddle_text_add(&why, ": %s", log);
  }
  heddle_status_t *status =
      heddle_status_make(HEDDLE_REFUSED,
                         "model '%s': the GPU's driver takes none of its code: sm_%lld%s; a newer "
                         "driver may, or compile the model for this GPU",
                         gpu->model, (long long)chip, why.data ? why.data : "");
  heddle_text_free(&why);
  return status;
}

static heddle_status_t *findKernels(heddle_gpu_t *gpu) {
  const heddle_device_t *description = gpu->description;
  gpu->functions = calloc((size_t)description->kernel_count + 1, sizeof *gpu->functions);
  if (!gpu->functions)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory for model '%s'", gpu->model);
  heddle_status_t *status = NULL;
  for (int64_t i = 0; !status && i < description->kernel_count; ++i) {
    const heddle_device_kernel_t *kernel = &description->kernels[i];
    status = HEDDLE_ASK(gpu, kernel->group, cuModuleGetFunction, &gpu->functions[i], gpu->module,
                        kernel->name);
    if (!status && kernel->shared_bytes) /* 48 KiB less what it declares, unless it is told */
      status = HEDDLE_ASK(gpu, kernel->group, cuFuncSetAttribute, gpu->functions[i],
                          CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)kernel->shared_bytes);
  }
  return status;
}

static heddle_status_t *copyWeights(heddle_gpu_t *gpu, const uint8_t *weights, int64_t bytes) {
  if (bytes <= 0 || !weights)
    return NULL;
  heddle_status_t *status = HEDDLE_ASK(gpu, NULL, cuMemAlloc, &gpu->weights, (size_t)bytes);
  if (status) {
    gpu->weights = 0;
    return status;
  }
  status = HEDDLE_ASK(gpu, NULL, cuMemcpyHtoDAsync, gpu->weights, weights, (size_t)bytes, NULL);
  return status ? status : HEDDLE_ASK(gpu, NULL, cuStreamSynchronize, NULL);
}

static heddle_status_t *openGpu(heddle_gpu_t *gpu, int ordinal,
                                const heddle_executable_t *executable) {
  int processors = 0;
  heddle_status_t *status = HEDDLE_ASK(gpu, NULL, cuDeviceGet, &gpu->device, ordinal);
  if (!status)
    status = HEDDLE_ASK(gpu, NULL, cuDeviceGetAttribute, &processors,
                        CU_DEVICE_MULTIPROCESSOR_COUNT, gpu->device);
  gpu->processors = processors > 0 ? processors : 1;
  if (!status) {
    status = HEDDLE_ASK(gpu, NULL, cuDevicePrimaryCtxRetain, &gpu->context, gpu->device);
    if (status)
      gpu->context = NULL;
  }
  if (!status)
    status = heddle_gpu_enter(gpu);
  if (status)
    return status;
  status = loadImage(gpu);
  if (!status)
    status = findKernels(gpu);
  if (!status)
    status = copyWeights(gpu, executable->weights, executable->weights_bytes);
  return heddle_gpu_leave(gpu, status);
}

heddle_status_t *heddle_devices_open(const heddle_executable_t *executable,
                                     heddle_devices_t **result) {
  size_t count = (size_t)executable->device_count;
  heddle_text_t why = {0};
  const heddle_driver_t *driver = heddle_driver_open(&why);
  heddle_text_free(&why);
  heddle_devices_t *devices =
      driver ? calloc(1, sizeof *devices + count * sizeof *devices->gpus) : NULL;
  if (!devices)
    return heddle_status_make(HEDDLE_LIMIT, "out of memory for model '%s'", executable->model);
  heddle_status_t *status = NULL;
  for (size_t i = 0; !status && i < count; ++i) {
    devices->gpus[i].driver = driver;
    devices->gpus[i].model = executable->model ? executable->model : "";
    devices->gpus[i].description = &executable->devices[i];
    devices->count = (int64_t)i + 1;
    status = openGpu(&devices->gpus[i], (int)i, executable);
  }
  if (status)
    heddle_devices_close(devices);
  else
    *result = devices;
  return status;
}

void heddle_devices_close(heddle_devices_t *devices) {
  for (int64_t i = 0; devices && i < devices->count; ++i) {
    heddle_gpu_t *gpu = &devices->gpus[i];
    const heddle_driver_t *driver = gpu->driver;
    CUcontext former;
    if (gpu->context && !driver->cuCtxPushCurrent(gpu->context)) {
      if (gpu->weights) {
        driver->cuStreamSynchronize(NULL); /* their copy may have failed half-way */
        driver->cuMemFree(gpu->weights);
      }
      if (gpu->module)
        driver->cuModuleUnload(gpu->module);
      driver->cuCtxPopCurrent(&former);
    }
    if (gpu->context)
      driver->cuDevicePrimaryCtxRelease(gpu->device);
    free(gpu->functions);
    free(gpu->lost);
  }
  free(devices);
}
