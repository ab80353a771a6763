/* strings.c: interning by open addressing. What a run added is removed in the opposite order, which
 * leaves every chain as it was. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/session/strings.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hashOf(const char *data, size_t size) { /* FNV-1a */
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
  return hash;
}

heddle_string_t heddle_strings_text(const heddle_strings_t *strings, int64_t number) {
  if (number >= 0 && number < strings->constant_count)
    return (heddle_string_t){strings->constants[number].data,
                             (size_t)strings->constants[number].size};
  number -= strings->constant_count;
  if (number < 0 || number >= strings->added_count)
    return (heddle_string_t){"", 0};
  return strings->added[number].text;
}

#define TAG UINT64_C(0xffff000000000000) /* memory ends before there are so many strings */

static int64_t numberIn(uint64_t slot) { return (int64_t)(slot & ~TAG) - 1; }

/* The slot that holds these bytes, or the free one where they belong. */
static int64_t findSlot(const heddle_strings_t *strings, uint64_t hash, const char *data,
                        size_t size) {
  int64_t mask = strings->slot_count - 1, slot = (int64_t)(hash & (uint64_t)mask);
  for (;; slot = (slot + 1) & mask) {
    uint64_t found = strings->slots[slot];
    if (!found)
      return slot;
    if ((found ^ hash) & TAG)
      continue;
    heddle_string_t known = heddle_strings_text(strings, numberIn(found));
    if (known.size == size && (size == 0 || memcmp(known.data, data, size) == 0))
      return slot;
  }
}

static void fillSlot(heddle_strings_t *strings, int64_t slot, uint64_t hash, int64_t number) {
  strings->slots[slot] = (hash & TAG) | (uint64_t)(number + 1);
  if (number >= strings->constant_count)
    strings->added[number - strings->constant_count].slot = slot;
}

/* At most half of the slots are taken. */
static bool makeRoom(heddle_strings_t *strings) {
  int64_t count = strings->constant_count + strings->added_count;
  if (strings->slots && 2 * (count + 1) <= strings->slot_count)
    return true;
  int64_t wanted = 64;
  while (wanted < 4 * (count + 1))
    wanted *= 2;
  uint64_t *slots = calloc((size_t)wanted, sizeof *slots);
  if (!slots)
    return false;
  free(strings->slots);
  strings->slots = slots;
  strings->slot_count = wanted;
  for (int64_t i = 0; i < count; ++i) {
    heddle_string_t text = heddle_strings_text(strings, i);
    uint64_t hash = hashOf(text.data, text.size);
    fillSlot(strings, findSlot(strings, hash, text.data, text.size), hash, i);
  }
  return true;
}

int64_t heddle_strings_number(heddle_strings_t *strings, const char *data, size_t size) {
  if (!makeRoom(strings))
    return -1;
  uint64_t hash = hashOf(data, size);
  int64_t slot = findSlot(strings, hash, data, size);
  if (strings->slots[slot])
    return numberIn(strings->slots[slot]);
  if (strings->added_count == strings->added_capacity) {
    int64_t capacity = strings->added_capacity * 2 + 64;
    heddle_added_string_t *added = realloc(strings->added, (size_t)capacity * sizeof *added);
    if (!added)
      return -1;
    strings->added = added;
    strings->added_capacity = capacity;
  }
  int64_t number = strings->constant_count + strings->added_count;
  strings->added[strings->added_count++].text = (heddle_string_t){data, size};
  fillSlot(strings, slot, hash, number);
  return number;
}

void heddle_strings_reset(heddle_strings_t *strings) {
  while (strings->added_count > 0)
    strings->slots[strings->added[--strings->added_count].slot] = 0;
}

void heddle_strings_free(heddle_strings_t *strings) {
  free(strings->added);
  free(strings->slots);
  *strings = (heddle_strings_t){0};
}
