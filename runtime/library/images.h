/* images.h: files of images, held in memory, as pixels. ImageMagick reads them; it is opened when
 * the first one comes. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_LIBRARY_IMAGES_H
#define HEDDLE_LIBRARY_IMAGES_H

#include "runtime/executable/abi.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_IMAGES_VARIABLE "HEDDLE_MAGICKWAND" /* of the environment: another file */

typedef enum heddle_image_status {
  HEDDLE_IMAGE_READ,
  HEDDLE_IMAGE_NO_LIBRARY,
  HEDDLE_IMAGE_DAMAGED,
} heddle_image_status_t;

typedef struct heddle_image heddle_image_t;

/* A BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP file, of several images the first. `image` is
 * only set where it was read, and the caller's to close. */
heddle_image_status_t heddle_image_open(const void *bytes, int64_t size, heddle_image_t **image,
                                        int64_t *height, int64_t *width);
/* Writes height x width pixels, row by row from the top, as `format`, HEDDLE_PIXELS_* of abi.h,
 * says. Without alpha; grey is ITU-R 601's luma. */
heddle_image_status_t heddle_image_pixels(heddle_image_t *image, int64_t format, uint8_t *pixels);
void heddle_image_close(heddle_image_t *image);

#ifdef __cplusplus
}
#endif
#endif
