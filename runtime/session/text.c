/* text.c: the services on strings. Frames are as enum heddle_service of abi.h says.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/session/text.h"

#include "heddle/runtime.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *pointerOf(int64_t number) { return (void *)(uintptr_t)number; }

static heddle_string_t textOf(heddle_call_t *call, int64_t number) {
  return heddle_strings_text(heddle_run_strings(call), number);
}

/* The number of bytes that live as long as the run; 0, after the call has failed, when memory is
 * out. */
static int64_t numberOf(heddle_call_t *call, const char *data, size_t size) {
  int64_t number = heddle_strings_number(heddle_run_strings(call), data, size);
  if (number >= 0)
    return number;
  call->alloc(call, INT64_MAX); /* says that memory is out */
  return 0;
}

static int64_t copiedNumberOf(heddle_call_t *call, const char *data, size_t size) {
  char *copy = call->alloc(call, (int64_t)size);
  if (!copy)
    return 0;
  memcpy(copy, data, size);
  return numberOf(call, copy, size);
}

void heddle_service_string_concat(heddle_call_t *call, int64_t *frame) {
  const int64_t *x = pointerOf(frame[1]), *y = pointerOf(frame[2]);
  int64_t *result = pointerOf(frame[3]), bytes = 0;
  for (int64_t i = 0; i < frame[0]; ++i)
    for (int side = 0; side < 2; ++side)
      if (__builtin_add_overflow(bytes, (int64_t)textOf(call, (side ? y : x)[i]).size, &bytes))
        bytes = INT64_MAX; /* which no memory has */
  char *joined = call->alloc(call, bytes);
  for (int64_t i = 0; joined && i < frame[0]; ++i) {
    heddle_string_t first = textOf(call, x[i]), second = textOf(call, y[i]);
    memcpy(joined, first.data, first.size);
    memcpy(joined + first.size, second.data, second.size);
    result[i] = numberOf(call, joined, first.size + second.size);
    joined += first.size + second.size;
  }
}

static bool isSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Cuts a string. */
typedef struct {
  heddle_string_t text, rest; /* `data` of the rest is NULL after the last piece */
  heddle_string_t delimiter;  /* empty: white space */
  const int32_t *scanner;     /* cuts where it matches, if there is one */
  heddle_string_t match;      /* is the next piece, unless its `data` is NULL */
} cutter_t;

/* The next piece between delimiters; false where there is none. */
static bool nextBetween(cutter_t *cutter, bool mayCut, heddle_string_t *piece) {
  heddle_string_t *rest = &cutter->rest, delimiter = cutter->delimiter;
  bool isSpaces = delimiter.size == 0;
  while (isSpaces && rest->size && isSpace(*rest->data)) {
    ++rest->data;
    --rest->size;
  }
  if (!rest->data || (isSpaces && !rest->size))
    return false;
  size_t end = rest->size;
  if (mayCut && isSpaces) {
    for (end = 0; end < rest->size && !isSpace(rest->data[end]);)
      ++end;
  } else if (mayCut) {
    const char *found = memmem(rest->data, rest->size, delimiter.data, delimiter.size);
    end = found ? (size_t)(found - rest->data) : rest->size;
  }
  *piece = (heddle_string_t){rest->data, end};
  if (end == rest->size) {
    *rest = (heddle_string_t){NULL, 0};
  } else {
    rest->data += end + delimiter.size;
    rest->size -= end + delimiter.size;
  }
  return true;
}

/* Which of a scanner's first states or last columns stands for the byte at `place`, or for none. */
static int sideOf(heddle_string_t text, size_t place) {
  if (place >= text.size)
    return 0;
  unsigned char byte = (unsigned char)text.data[place];
  bool isWord =
      byte == '_' || (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
  return isWord ? 2 : 1;
}

/* Bytes of the letter at `place`, which is before `end`. */
static size_t letterAt(const char *place, const char *end) {
  const char *next = place + 1;
  while (next < end && ((unsigned char)*next & 0xc0) == 0x80)
    ++next;
  return (size_t)(next - place);
}

/* The longest of the first matches in the rest; false where there is none. */
static bool findMatch(cutter_t *cutter) {
  const char *end = cutter->rest.data + cutter->rest.size;
  for (const char *from = cutter->rest.data;; from += letterAt(from, end)) {
    int32_t state = sideOf(cutter->text, (size_t)(from - cutter->text.data) - 1);
    cutter->match.data = NULL;
    for (const char *place = from; state >= 0; ++place) {
      const int32_t *row = cutter->scanner + (int64_t)state * 259;
      if (row[256 + sideOf(cutter->text, (size_t)(place - cutter->text.data))])
        cutter->match = (heddle_string_t){from, (size_t)(place - from)};
      if (place == end)
        break;
      state = row[(unsigned char)*place];
    }
    if (cutter->match.data || from == end)
      return cutter->match.data != NULL;
  }
}

/* By turns what lies before a match, and the match. */
static bool nextAround(cutter_t *cutter, heddle_string_t *piece) {
  heddle_string_t *rest = &cutter->rest;
  if (!rest->data)
    return false;
  if (cutter->match.data) {
    const char *end = rest->data + rest->size, *after = cutter->match.data + cutter->match.size;
    *piece = cutter->match;
    cutter->match.data = NULL;
    if (piece->size == 0)
      after = after < end ? after + letterAt(after, end) : NULL;
    *rest = (heddle_string_t){after, after ? (size_t)(end - after) : 0};
  } else {
    *piece = *rest;
    if (findMatch(cutter))
      piece->size = (size_t)(cutter->match.data - rest->data);
    else
      *rest = (heddle_string_t){NULL, 0};
  }
  return true;
}

void heddle_service_string_split(heddle_call_t *call, int64_t *frame) {
  int64_t count = frame[2], most = frame[5], width = 0;
  const int64_t *x = pointerOf(frame[3]);
  cutter_t cutter = {0};
  if (frame[7])
    cutter.scanner = pointerOf(frame[4]);
  else
    cutter.delimiter = textOf(call, *(int64_t *)pointerOf(frame[4]));
  int64_t *counts = pointerOf(frame[6]), *pieces = NULL;
  /* Once to count, once to write. */
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t i = 0; i < count; ++i) {
      heddle_string_t piece;
      int64_t found = 0;
      cutter.text = cutter.rest = textOf(call, x[i]);
      cutter.match.data = NULL;
      while (cutter.scanner ? nextAround(&cutter, &piece)
                            : nextBetween(&cutter, most < 0 || found < most, &piece)) {
        if (pass == 1)
          pieces[i * width + found] = numberOf(call, piece.data, piece.size);
        ++found;
      }
      counts[i] = found;
      if (pass == 0 && found > width)
        width = found;
      for (; pass == 1 && found < width; ++found)
        pieces[i * width + found] = numberOf(call, "", 0);
    }
    if (pass == 0) {
      int64_t bytes;
      if (__builtin_mul_overflow(count * 8, width, &bytes))
        bytes = INT64_MAX;
      pieces = call->alloc(call, bytes);
      if (!pieces)
        return;
    }
  }
  frame[0] = (int64_t)(uintptr_t)pieces;
  frame[1] = width;
}

/* `text` in another case, as a number. */
static int64_t numberInCase(heddle_call_t *call, int64_t number, bool isUpper) {
  heddle_string_t text = textOf(call, number);
  char *buffer = call->alloc(call, (int64_t)(2 * text.size));
  if (!buffer)
    return 0;
  return numberOf(call, buffer, (size_t)(heddle_text_in_case(buffer, text, isUpper) - buffer));
}

void heddle_service_string_normalize(heddle_call_t *call, int64_t *frame) {
  int64_t count = frame[2], stops = frame[4], kept = 0;
  const int64_t *x = pointerOf(frame[3]), *stopwords = pointerOf(frame[5]);
  bool isSensitive = frame[7] != 0;
  int64_t *result = call->alloc(call, (count + 1) * 8);
  int64_t *folded = call->alloc(call, stops * 8);
  if (!result || !folded)
    return;
  for (int64_t i = 0; i < stops; ++i)
    folded[i] = isSensitive ? stopwords[i] : numberInCase(call, stopwords[i], false);
  for (int64_t i = 0; i < count; ++i) {
    int64_t compared = isSensitive || !stops ? x[i] : numberInCase(call, x[i], false);
    bool isStop = false;
    for (int64_t j = 0; j < stops; ++j)
      isStop |= folded[j] == compared;
    if (!isStop)
      result[kept++] = frame[6] ? numberInCase(call, x[i], frame[6] == 2) : x[i];
  }
  if (kept == 0)
    result[kept++] = numberOf(call, "", 0);
  frame[0] = (int64_t)(uintptr_t)result;
  frame[1] = kept;
}

void heddle_service_string_match(heddle_call_t *call, int64_t *frame) {
  const int64_t *x = pointerOf(frame[1]);
  const int32_t *transitions = pointerOf(frame[2]);
  uint8_t *result = pointerOf(frame[3]);
  for (int64_t i = 0; i < frame[0]; ++i) {
    heddle_string_t text = textOf(call, x[i]);
    int32_t state = 0;
    for (size_t j = 0; state >= 0 && j < text.size; ++j)
      state = transitions[state * 257 + (unsigned char)text.data[j]];
    result[i] = state >= 0 && transitions[state * 257 + 256] != 0;
  }
}

/* The fewest digits that read as the same number; as NumPy and Python spell it. */
static int formatFloat(char *to, size_t size, double value, bool isSingle) {
  if (value != value)
    return snprintf(to, size, "nan");
  if (value - value != 0)
    return snprintf(to, size, value < 0 ? "-inf" : "inf");
  char digits[40];
  for (int precision = 0; precision < 17; ++precision) {
    snprintf(digits, sizeof digits, "%.*e", precision, value);
    if (isSingle ? strtof(digits, NULL) == (float)value : strtod(digits, NULL) == value)
      break;
  }
  char *mark = strchr(digits, 'e');
  int exponent = atoi(mark + 1), precision = (int)(mark - digits) - (digits[0] == '-') - 2;
  if (value != 0 && (exponent < -4 || exponent >= 16))
    return snprintf(to, size, "%s", digits);
  int decimals = (precision < 0 ? 0 : precision) - exponent;
  return snprintf(to, size, "%.*f", decimals < 1 ? 1 : decimals, value);
}

static int64_t formatted(heddle_call_t *call, int32_t dtype, const void *x, int64_t i) {
  char text[400];
  int size = 0;
  if (dtype == HEDDLE_FLOAT32)
    size = formatFloat(text, sizeof text, ((const float *)x)[i], true);
  else if (dtype == HEDDLE_FLOAT64)
    size = formatFloat(text, sizeof text, ((const double *)x)[i], false);
  else if (dtype == HEDDLE_BOOL)
    size = snprintf(text, sizeof text, "%d", ((const uint8_t *)x)[i] != 0); /* as ONNX Runtime */
  else if (dtype == HEDDLE_UINT64)
    size = snprintf(text, sizeof text, "%" PRIu64, ((const uint64_t *)x)[i]);
  else
    size = snprintf(text, sizeof text, "%" PRId64, ((const int64_t *)x)[i]);
  return copiedNumberOf(call, text, (size_t)size);
}

/* False when the text is no number. Spaces around it do not count. */
static bool parse(heddle_string_t given, int32_t dtype, void *result, int64_t i) {
  char text[512], *end = text;
  while (given.size && isSpace(*given.data))
    ++given.data, --given.size;
  while (given.size && isSpace(given.data[given.size - 1]))
    --given.size;
  if (given.size == 0 || given.size >= sizeof text || memchr(given.data, 0, given.size))
    return false;
  memcpy(text, given.data, given.size);
  text[given.size] = 0;
  errno = 0;
  bool isHex = strpbrk(text, "xX") != NULL;
  if (dtype == HEDDLE_FLOAT32)
    ((float *)result)[i] = strtof(text, &end);
  else if (dtype == HEDDLE_FLOAT64)
    ((double *)result)[i] = strtod(text, &end);
  else if (dtype == HEDDLE_UINT64)
    ((uint64_t *)result)[i] = strtoull(text, &end, 10);
  else
    ((int64_t *)result)[i] = strtoll(text, &end, 10);
  bool isFloat = dtype == HEDDLE_FLOAT32 || dtype == HEDDLE_FLOAT64;
  return *end == 0 && !isHex && (isFloat || errno == 0);
}

void heddle_service_string_cast(heddle_call_t *call, int64_t *frame) {
  int32_t from = (int32_t)frame[2], to = (int32_t)frame[4];
  const void *x = pointerOf(frame[3]);
  void *result = pointerOf(frame[5]);
  /* A decimal point is a point, whatever the program's locale. */
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  locale_t own = plain ? uselocale(plain) : (locale_t)0;
  for (int64_t i = 0; i < frame[1]; ++i) {
    if (from != HEDDLE_STRING)
      ((int64_t *)result)[i] = formatted(call, from, x, i);
    else if (!parse(textOf(call, ((const int64_t *)x)[i]), to, result, i)) {
      call->fail(call, frame[0], i, 0);
      break;
    }
  }
  if (plain) {
    uselocale(own);
    freelocale(plain);
  }
}
