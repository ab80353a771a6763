/* letters.c: the simple case mapping of Unicode, by ranges. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/session/text.h"

#include <string.h>

/* Upper-case letters first..last are `distance` before their lower-case ones; distance 1: they
 * are in pairs, upper case first. */
static const struct {
  uint32_t first, last;
  int32_t distance;
} kRanges[] = {
    {0x41, 0x5a, 32},   {0xc0, 0xd6, 32},    {0xd8, 0xde, 32},    {0x100, 0x12f, 1},
    {0x132, 0x137, 1},  {0x139, 0x148, 1},   {0x14a, 0x177, 1},   {0x178, 0x178, -121},
    {0x179, 0x17e, 1},  {0x386, 0x386, 38},  {0x388, 0x38a, 37},  {0x38c, 0x38c, 64},
    {0x38e, 0x38f, 63}, {0x391, 0x3a1, 32},  {0x3a3, 0x3ab, 32},  {0x400, 0x40f, 80},
    {0x410, 0x42f, 32}, {0x460, 0x481, 1},   {0x48a, 0x4bf, 1},   {0x4d0, 0x52f, 1},
    {0x531, 0x556, 48}, {0x1e00, 0x1e95, 1}, {0x1ea0, 0x1eff, 1}, {0xff21, 0xff3a, 32},
};

static uint32_t inCase(uint32_t letter, bool isUpper) {
  if (isUpper && letter == 0x3c2) /* sigma at the end of a word */
    return 0x3a3;
  for (size_t i = 0; i < sizeof kRanges / sizeof *kRanges; ++i) {
    uint32_t first = kRanges[i].first, last = kRanges[i].last;
    int32_t distance = kRanges[i].distance;
    if (distance == 1) {
      if (letter < first || letter > last)
        continue;
      return first + ((letter - first) & ~1u) + (isUpper ? 0 : 1);
    }
    uint32_t move = (uint32_t)distance;
    if (isUpper && letter - move >= first && letter - move <= last)
      return letter - move;
    if (!isUpper && letter >= first && letter <= last)
      return letter + move;
  }
  return letter;
}

/* Bytes of the UTF-8 letter at `text`; 0 where there is none. */
static size_t decode(const unsigned char *text, size_t size, uint32_t *letter) {
  size_t bytes = text[0] < 0x80   ? 1
                 : text[0] < 0xc2 ? 0
                 : text[0] < 0xe0 ? 2
                 : text[0] < 0xf0 ? 3
                                  : 0;
  if (bytes == 0 || bytes > size)
    return 0;
  *letter = bytes == 1 ? text[0] : text[0] & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((text[i] & 0xc0) != 0x80)
      return 0;
    *letter = *letter << 6 | (text[i] & 0x3f);
  }
  return bytes;
}

static char *encode(char *to, uint32_t letter) {
  if (letter < 0x80) {
    *to++ = (char)letter;
  } else if (letter < 0x800) {
    *to++ = (char)(0xc0 | letter >> 6);
    *to++ = (char)(0x80 | (letter & 0x3f));
  } else {
    *to++ = (char)(0xe0 | letter >> 12);
    *to++ = (char)(0x80 | (letter >> 6 & 0x3f));
    *to++ = (char)(0x80 | (letter & 0x3f));
  }
  return to;
}

char *heddle_text_in_case(char *to, heddle_string_t text, bool isUpper) {
  const unsigned char *from = (const unsigned char *)text.data;
  for (size_t i = 0; i < text.size;) {
    uint32_t letter;
    size_t bytes = decode(from + i, text.size - i, &letter);
    uint32_t mapped = bytes ? inCase(letter, isUpper) : 0;
    if (bytes && mapped != letter) {
      to = encode(to, mapped);
    } else {
      if (!bytes)
        bytes = 1;
      memcpy(to, from + i, bytes);
      to += bytes;
    }
    i += bytes;
  }
  return to;
}
