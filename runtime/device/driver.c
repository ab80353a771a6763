/* driver.c: opens NVIDIA's driver and finds its functions. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static heddle_driver_t opened; /* complete when it has a device */

void heddle_driver_tell(const heddle_driver_t *driver, CUresult error, heddle_text_t *text) {
  const char *name = NULL, *meaning = NULL;
  if (driver->cuGetErrorName(error, &name) || !name)
    heddle_text_add(text, "error %d of the driver", error);
  else if (driver->cuGetErrorString(error, &meaning) || !meaning)
    heddle_text_add(text, "%s", name);
  else
    heddle_text_add(text, "%s (%s)", name, meaning);
}

static bool succeeds(const heddle_driver_t *driver, CUresult error, const char *function,
                     heddle_text_t *why) {
  if (!error)
    return true;
  heddle_text_add(
      why, "%s: %s: ", error == CUDA_ERROR_NO_DEVICE ? "there is none" : "its driver does not work",
      function);
  heddle_driver_tell(driver, error, why);
  return false;
}

static bool find(void *library, const char *file, heddle_driver_t *found, heddle_text_t *why) {
  int version = 0;
#define X(name, symbol, prototype)                                                                 \
  found->name = (CUresult(*) prototype)dlsym(library, symbol);                                     \
  if (!found->name) {                                                                              \
    heddle_text_add(why, "'%s' has no function '%s': its driver is not of CUDA 12 or later", file, \
                    symbol);                                                                       \
    return false;                                                                                  \
  }
  HEDDLE_DRIVER_FUNCTIONS(X)
#undef X
  if (!succeeds(found, found->cuInit(0), "cuInit", why) ||
      !succeeds(found, found->cuDriverGetVersion(&version), "cuDriverGetVersion", why))
    return false;
  if (version < HEDDLE_CUDA_VERSION) {
    heddle_text_add(why, "its driver is too old: it is of CUDA %d.%d, and has to be of %d.%d",
                    version / 1000, version % 1000 / 10, HEDDLE_CUDA_VERSION / 1000,
                    HEDDLE_CUDA_VERSION % 1000 / 10);
    return false;
  }
  if (!succeeds(found, found->cuDeviceGetCount(&found->device_count), "cuDeviceGetCount", why))
    return false;
  if (found->device_count < 1)
    heddle_text_add(why, "there is none: its driver counts %d", found->device_count);
  return found->device_count > 0;
}

const heddle_driver_t *heddle_driver_open(heddle_text_t *why) {
  pthread_mutex_lock(&mutex);
  if (opened.device_count < 1) {
    const char *named = getenv(HEDDLE_CUDA_VARIABLE);
    const char *file = named && *named ? named : HEDDLE_CUDA_FILE;
    /* Its threads may outlive every module, so it is never closed. */
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    heddle_driver_t found = {0};
    if (!library)
      heddle_text_add(why, "there is no driver: %s", dlerror());
    else if (find(library, file, &found, why))
      opened = found;
  }
  const heddle_driver_t *result = opened.device_count > 0 ? &opened : NULL;
  pthread_mutex_unlock(&mutex);
  return result;
}
