/* executables.h: executables written by hand, as the compiler would write them, for tests.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_EXECUTABLE_TESTING_EXECUTABLES_H
#define HEDDLE_EXECUTABLE_TESTING_EXECUTABLES_H

#include "runtime/executable/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y[i,j] = x[i,j] + z[i] + 1 for x: float32[batch,4], z: float32[batch]. One kernel, a task per
 * row; z + 1 goes through the arena, each row through scratch. */
extern const heddle_executable_t increment_executable;

/* positive: the elements of x: float32[n] above zero, whose count is known only at run time.
 * names: each string of picks, but "dog" for "cat".
 * Fails with a message when an element is a NaN, and asks for 2^46 bytes when it is > 1e30. */
extern const heddle_executable_t twisted_executable;

#ifdef __cplusplus
}
#endif
#endif
