/* digest.c: XXH3 of 128 bits, which reads as fast as memory gives. An object file of its own, as
 * loader.c is. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/executable/digest.h"

#include "runtime/base/status.h"

#include "heddle/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PIECE ((size_t)16 << 20) /* a multiple of all sizes of pages */

typedef struct heddle_footer {
  char magic[8];
  uint64_t size; /* of what precedes it */
  uint64_t low, high;
  uint64_t reserved;
} heddle_footer_t;

static const char kMagic[8] = {'H', 'e', 'd', 'd', 'l', 'e', 'D', '1'};

/* Of `size` bytes, a piece of which is in memory at a time. Errno when they cannot be read. */
static int footerOf(int file, size_t size, heddle_footer_t *footer) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (size_t at = 0, piece; at < size; at += piece) {
    piece = size - at < PIECE ? size - at : PIECE;
    void *memory = mmap(NULL, piece, PROT_READ, MAP_PRIVATE, file, (off_t)at);
    if (memory == MAP_FAILED)
      return errno;
    XXH3_128bits_update(&state, memory, piece);
    munmap(memory, piece);
  }
  XXH128_hash_t hash = XXH3_128bits_digest(&state);
  *footer = (heddle_footer_t){{0}, size, hash.low64, hash.high64, 0};
  memcpy(footer->magic, kMagic, sizeof kMagic);
  return 0;
}

int heddle_digest_append(const char *path) {
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return errno;
  struct stat status;
  heddle_footer_t footer;
  int failure = fstat(file, &status) ? errno : footerOf(file, (size_t)status.st_size, &footer);
  ssize_t done = failure ? 0 : pwrite(file, &footer, sizeof footer, status.st_size);
  if (!failure && done != sizeof footer)
    failure = done < 0 ? errno : ENOSPC;
  if (close(file) && !failure)
    failure = errno;
  return failure;
}

heddle_status_t *heddle_module_verify(const char *path) {
  if (!path)
    return heddle_status_make(HEDDLE_USAGE, "heddle_module_verify: needs a path");
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (file < 0 || fstat(file, &status)) {
    heddle_status_t *failed =
        heddle_status_make(HEDDLE_USAGE, "cannot open '%s': %s", path, strerror(errno));
    if (file >= 0)
      close(file);
    return failed;
  }
  if (!S_ISREG(status.st_mode)) {
    close(file);
    return heddle_status_make(HEDDLE_USAGE, "cannot open '%s': it is not a regular file", path);
  }
  heddle_footer_t found, footer;
  off_t size = status.st_size - (off_t)sizeof found;
  heddle_status_t *result = NULL;
  if (size < 0 || pread(file, &found, sizeof found, size) != sizeof found ||
      memcmp(found.magic, kMagic, sizeof kMagic) != 0)
    result = heddle_status_make(HEDDLE_REFUSED,
                                "'%s' has no digest at its end: it is no artefact, was cut off, or "
                                "was changed by another tool; compile the model again",
                                path);
  else if (footerOf(file, (size_t)size, &footer))
    result = heddle_status_make(HEDDLE_LIMIT, "cannot read '%s': %s", path, strerror(errno));
  else if (memcmp(&found, &footer, sizeof found) != 0)
    result = heddle_status_make(HEDDLE_REFUSED,
                                "'%s' is damaged: its digest is %016llx%016llx, but its bytes give "
                                "%016llx%016llx; compile the model again",
                                path, (unsigned long long)found.high, (unsigned long long)found.low,
                                (unsigned long long)footer.high, (unsigned long long)footer.low);
  close(file);
  return result;
}
