/* loader.c: a module from an artefact file. An object file of its own, so that a program with its
 * model linked in does not need dlopen. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/status.h"
#include "runtime/executable/elf.h"
#include "runtime/executable/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void closeLibrary(void *library) { dlclose(library); }

heddle_status_t *heddle_module_load(const char *path, heddle_module_t **module) {
  if (!path || !module)
    return heddle_status_make(HEDDLE_USAGE, "heddle_module_load: needs a path and a place");
  char *absolute = realpath(path, NULL); /* a bare name would be sought in the system's folders */
  if (!absolute)
    return heddle_status_make(HEDDLE_USAGE, "cannot open '%s': %s", path, strerror(errno));
  heddle_status_t *status = heddle_elf_check(absolute);
  void *library = status ? NULL : dlopen(absolute, RTLD_NOW | RTLD_LOCAL);
  free(absolute);
  if (status)
    return status;
  if (!library)
    return heddle_status_make(HEDDLE_REFUSED, "cannot load '%s': %s", path, dlerror());
  const heddle_executable_t *executable = dlsym(library, HEDDLE_ENTRY_SYMBOL);
  status = executable ? heddle_module_create(executable, path, closeLibrary, library, module)
                      : heddle_status_make(HEDDLE_REFUSED, "'%s' does not export '%s'", path,
                                           HEDDLE_ENTRY_SYMBOL);
  if (status)
    dlclose(library);
  return status;
}
