/* constructor.c: a shared library that is no artefact and would end the process if its code ran.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

__attribute__((constructor)) static void endProcess(void) { abort(); }
