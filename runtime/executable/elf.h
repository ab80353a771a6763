/* elf.h: is this file an artefact that can be handed to the system's loader?
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_EXECUTABLE_ELF_H
#define HEDDLE_EXECUTABLE_ELF_H

#include "heddle/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads headers and the symbol table only. Success means: a shared library for this machine, whole,
 * with an entry symbol that points at this version's magic. */
heddle_status_t *heddle_elf_check(const char *path);

#ifdef __cplusplus
}
#endif
#endif
