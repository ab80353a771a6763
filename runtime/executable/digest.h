/* digest.h: the bytes after an artefact that vouch for those before them: 40 bytes of a file,
 * which no loader reads. They tell damage, not forgery. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_RUNTIME_EXECUTABLE_DIGEST_H
#define HEDDLE_RUNTIME_EXECUTABLE_DIGEST_H

#ifdef __cplusplus
extern "C" {
#endif

/* Appends the digest of all that the file holds. Errno, or 0. */
int heddle_digest_append(const char *path);

#ifdef __cplusplus
}
#endif

#endif
