/* images.c: opens ImageMagick's MagickWand, of version 6 or 7, and has it read an image.
 *
 * Bytes reach it only where they begin as one of the formats of images.h does: the library would
 * also take in programs that draw (SVG, PostScript). SPDX-License-Identifier: Apache-2.0 */
#include "runtime/library/images.h"

#include "runtime/executable/abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct wand wand_t; /* MagickWand */
enum { CHAR_PIXEL = 1 };    /* of StorageType */

#define FUNCTIONS(X)                                                                               \
  X(void, MagickWandGenesis, (void))                                                               \
  X(wand_t *, NewMagickWand, (void))                                                               \
  X(wand_t *, DestroyMagickWand, (wand_t *))                                                       \
  X(int, MagickReadImageBlob, (wand_t *, const void *, size_t))                                    \
  X(void, MagickSetFirstIterator, (wand_t *))                                                      \
  X(int, MagickNextImage, (wand_t *))                                                              \
  X(size_t, MagickGetImageHeight, (wand_t *))                                                      \
  X(size_t, MagickGetImageWidth, (wand_t *))                                                       \
  X(int, MagickExportImagePixels,                                                                  \
    (wand_t *, ptrdiff_t, ptrdiff_t, size_t, size_t, const char *, int, void *))

static struct {
#define X(type, name, parameters) type(*name) parameters;
  FUNCTIONS(X)
#undef X
} magick;
static bool isThere;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct heddle_image {
  wand_t *wand;
  size_t height, width;
};

static void openLibrary(void) {
  const char *named = getenv(HEDDLE_IMAGES_VARIABLE);
  const char *files[] = {named && *named ? named : "libMagickWand-6.Q16.so.6",
                         named && *named ? NULL : "libMagickWand-7.Q16.so.10"};
  void *library = NULL;
  for (int i = 0; i < 2 && !library && files[i]; ++i)
    library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library)
    return;
#define X(type, name, parameters)                                                                  \
  magick.name = (type(*) parameters)dlsym(library, #name);                                         \
  if (!magick.name)                                                                                \
    return;
  FUNCTIONS(X)
#undef X
  magick.MagickWandGenesis();
  isThere = true;
}

static bool hasKnownFormat(const uint8_t *bytes, int64_t size) {
  static const struct {
    int at, length;
    const char *text;
  } beginnings[] = {
      {0, 2, "BM"},
      {0, 3, "\xff\xd8\xff"},
      {4, 8, "jP  \r\n\x87\n"},
      {0, 4, "\xff\x4f\xff\x51"},
      {0, 8, "\x89PNG\r\n\x1a\n"},
      {0, 4, "II*\0"},
      {0, 4, "MM\0*"},
      {8, 4, "WEBP"},
  };
  for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; ++i)
    if (size >= beginnings[i].at + beginnings[i].length &&
        memcmp(bytes + beginnings[i].at, beginnings[i].text, (size_t)beginnings[i].length) == 0)
      return true;
  return size > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6'; /* PBM, PGM, PPM */
}

heddle_image_status_t heddle_image_open(const void *bytes, int64_t size, heddle_image_t **image,
                                        int64_t *height, int64_t *width) {
  pthread_once(&once, openLibrary);
  if (!isThere)
    return HEDDLE_IMAGE_NO_LIBRARY;
  heddle_image_t *made = hasKnownFormat(bytes, size) ? calloc(1, sizeof *made) : NULL;
  if (!made)
    return HEDDLE_IMAGE_DAMAGED;
  made->wand = magick.NewMagickWand();
  if (!made->wand || !magick.MagickReadImageBlob(made->wand, bytes, (size_t)size)) {
    heddle_image_close(made);
    return HEDDLE_IMAGE_DAMAGED;
  }
  magick.MagickSetFirstIterator(made->wand);
  magick.MagickNextImage(made->wand);
  made->height = magick.MagickGetImageHeight(made->wand);
  made->width = magick.MagickGetImageWidth(made->wand);
  *height = (int64_t)made->height;
  *width = (int64_t)made->width;
  *image = made;
  return HEDDLE_IMAGE_READ;
}

static bool readRow(heddle_image_t *image, size_t row, const char *channels, uint8_t *pixels) {
  return magick.MagickExportImagePixels(image->wand, 0, (ptrdiff_t)row, image->width, 1, channels,
                                        CHAR_PIXEL, pixels);
}

heddle_image_status_t heddle_image_pixels(heddle_image_t *image, int64_t format, uint8_t *pixels) {
  const char *channels = format == HEDDLE_PIXELS_BGR ? "BGR" : "RGB";
  size_t pitch = image->width * (format == HEDDLE_PIXELS_GRAY ? 1 : 3);
  uint8_t *colours = format == HEDDLE_PIXELS_GRAY ? malloc(image->width * 3) : NULL;
  bool isFine = format != HEDDLE_PIXELS_GRAY || colours;
  for (size_t row = 0; row < image->height && isFine; ++row, pixels += pitch) {
    isFine = readRow(image, row, channels, colours ? colours : pixels);
    for (size_t x = 0; x < image->width && colours; ++x) {
      const uint8_t *rgb = colours + 3 * x;
      pixels[x] = (uint8_t)((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
    }
  }
  free(colours);
  return isFine ? HEDDLE_IMAGE_READ : HEDDLE_IMAGE_DAMAGED;
}

void heddle_image_close(heddle_image_t *image) {
  if (image->wand)
    magick.DestroyMagickWand(image->wand);
  free(image);
}
