/* loader.c: a module from an artefact file. An object file of its own, so that a program with its
 * model linked in does not need dlopen. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/status.h"
#include "runtime/executable/elf.h"
#include "runtime/executable/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A library, and the file by whose descriptor it was opened, or -1. */
typedef struct heddle_library {
  void *handle;
  int file;
} heddle_library_t;

static void closeLibrary(void *data) {
  heddle_library_t *library = data;
  if (library->handle)
    dlclose(library->handle);
  if (library->file >= 0)
    close(library->file);
  free(library);
}

/* The file that is at the path now. dlopen takes a library that is open for the one it is asked for
 * where the names are the same, even if the path is that of another file by now; a descriptor's
 * name is its own as long as it is open, and where the file is the same dlopen sees that, too. */
static bool openLibrary(const char *path, heddle_library_t *library) {
  void *former = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (former) {
    char name[64];
    library->file = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(name, sizeof name, "/proc/self/fd/%d", library->file);
    library->handle = dlopen(library->file < 0 ? path : name, RTLD_NOW | RTLD_LOCAL);
    dlclose(former);
  } else {
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  return library->handle;
}

heddle_status_t *heddle_module_load(const char *path, heddle_module_t **module) {
  if (!path || !module)
    return heddle_status_make(HEDDLE_USAGE, "heddle_module_load: needs a path and a place");
  char *absolute = realpath(path, NULL); /* a bare name would be sought in the system's folders */
  if (!absolute)
    return heddle_status_make(HEDDLE_USAGE, "cannot open '%s': %s", path, strerror(errno));
  heddle_library_t *library = malloc(sizeof *library);
  if (library)
    *library = (heddle_library_t){NULL, -1};
  heddle_status_t *status = library
                                ? heddle_elf_check(absolute)
                                : heddle_status_make(HEDDLE_LIMIT, "out of memory for '%s'", path);
  if (!status && !openLibrary(absolute, library))
    status = heddle_status_make(HEDDLE_REFUSED, "cannot load '%s': %s", path, dlerror());
  free(absolute);
  const heddle_executable_t *executable =
      status ? NULL : dlsym(library->handle, HEDDLE_ENTRY_SYMBOL);
  if (!status && !executable)
    status =
        heddle_status_make(HEDDLE_REFUSED, "'%s' does not export '%s'", path, HEDDLE_ENTRY_SYMBOL);
  if (!status)
    status = heddle_module_create(executable, path, closeLibrary, library, module);
  if (status && library)
    closeLibrary(library);
  return status;
}
