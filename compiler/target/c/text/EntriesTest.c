/* EntriesTest: the entries around a program by hand, which copies x [batch, 2] to y. */
#include "Interface.h"
#include "Tables.h"

#include <stdio.h>

static const h_io h_inputs[] = {{"x", "[batch, 2]", 1, 2, 4}, {"", "", 0, 0, 0}};
static const h_dim h_inputs_dims[] = {{-1, 0}, {2, -1}, {0, -1}};
static const h_io h_outputs[] = {{"y", "[batch, 2]", 1, 2, 4}, {"", "", 0, 0, 0}};
static const char *const h_messages[] = {"%lld rows, but at most %lld are allowed", ""};
static const char *const h_symbols[] = {"batch", ""};
enum { h_symbol_count = 1, h_output_dim_count = 3 };
static const uint64_t h_weights[] = {0};

static int64_t number(const unsigned char *at) {
  int64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static uint32_t h_heddle_program_bind(unsigned char *run) {
  (void)run;
  return 0;
}

static uint32_t h_heddle_program_sizes(unsigned char *symbols, unsigned char *first,
                                       unsigned char *dims, unsigned char *values) {
  const int64_t batch = number(symbols), arena = 100, two = 2, most = 9;
  memcpy(first, &arena, sizeof arena);
  memcpy(dims, &batch, sizeof batch);
  memcpy(dims + sizeof batch, &two, sizeof two);
  memcpy(values, &batch, sizeof batch);
  memcpy(values + sizeof batch, &most, sizeof most);
  return batch > most ? 1 : 0;
}

static uint64_t h_heddle_program_scratch(unsigned char *run) {
  (void)run;
  return 0;
}

static uint32_t h_heddle_program_run(unsigned char *at) {
  h_run *run = (h_run *)(void *)at;
  unsigned char *to, *from;
  memcpy(&from, run->inputs, sizeof from);
  memcpy(&to, run->outputs, sizeof to);
  memcpy(to, from, (size_t)number(run->symbols) * 8);
  return 0;
}

#include "Entries.c"

static int failures = 0;

static void expect(int isTrue, const char *what) {
  if (isTrue)
    return;
  ++failures;
  printf("not so: %s\n", what);
}

int main(void) {
  float data[20] = {1, 2, 3, 4, 5, 6};
  static float arena[200];
  char message[model_MESSAGE_BYTES] = "";
  int64_t bytes = 0;
  model_tensor x = {data, sizeof data, 1, 2, {3, 2}, NULL};
  model_tensor y = {NULL, 0, 0, 0, {0, 0}, NULL};
  expect(!model_arena_bytes(&x, &y, &bytes, message) && bytes == 128 + 64 + 128, "arena_bytes");
  expect(!model_run(&x, &y, arena, bytes, message), message);
  expect(y.rank == 2 && y.dims[0] == 3 && y.dims[1] == 2 && y.dtype == 1, "the output's shape");
  expect(y.result && !memcmp(y.result, data, 24), "the output's values");
  expect(model_run(&x, &y, arena, bytes - 1, message) && strstr(message, "the arena has 319 bytes"),
         "a small arena is refused");
  x.dtype = 7;
  expect(model_run(&x, &y, arena, bytes, NULL), "no message is needed");
  expect(model_run(&x, &y, arena, bytes, message) &&
             !strcmp(message, "input 'x': its dtype is 7, but 1 is allowed"),
         "another dtype is refused");
  x.dtype = 1;
  x.dims[1] = 3;
  expect(model_run(&x, &y, arena, bytes, message) &&
             !strcmp(message, "input 'x': its shape is [3, 3], but [batch, 2] is allowed"),
         "another shape is refused");
  x.dims[0] = 10;
  x.dims[1] = 2;
  expect(model_run(&x, &y, arena, bytes, message) &&
             !strcmp(message, "10 rows, but at most 9 are allowed"),
         "the program's message has its numbers");
  return failures;
}
