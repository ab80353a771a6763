// Operators: what C has no operator for that is defined for all operands.

#include "compiler/target/c/Printer.h"

namespace heddle::c {

namespace {
struct Helper {
  const char *name, *text;
};
} // namespace

// Each follows those that it calls.
static const Helper all[] = {
    {"float_of", R"(static inline float h_float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
})"},
    {"double_of", R"(static inline double h_double_of(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
})"},
    {"bits_of_float", R"(static inline uint32_t h_bits_of_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
})"},
    {"bits_of_double", R"(static inline uint64_t h_bits_of_double(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
})"},
    {"maximumf", R"(static inline float h_maximumf(float x, float y) {
  if (isnan(x) || x > y)
    return x;
  return x == y && signbit(y) ? x : y;
})"},
    {"minimumf", R"(static inline float h_minimumf(float x, float y) {
  if (isnan(x) || x < y)
    return x;
  return x == y && !signbit(y) ? x : y;
})"},
    {"maximum", R"(static inline double h_maximum(double x, double y) {
  if (isnan(x) || x > y)
    return x;
  return x == y && signbit(y) ? x : y;
})"},
    {"minimum", R"(static inline double h_minimum(double x, double y) {
  if (isnan(x) || x < y)
    return x;
  return x == y && !signbit(y) ? x : y;
})"},
    {"to_int32", R"(static inline uint32_t h_to_int32(double x) {
  return x > -2147483649.0 && x < 2147483648.0 ? (uint32_t)(int32_t)x : 0x80000000u;
})"},
    {"to_int64", R"(static inline uint64_t h_to_int64(double x) {
  return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (uint64_t)(int64_t)x
                                                                  : (uint64_t)1 << 63;
})"},
    {"to_uint64", R"(static inline uint64_t h_to_uint64(double x) {
  if (x >= 9223372036854775808.0 && x < 18446744073709551616.0)
    return (uint64_t)x;
  return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (uint64_t)(int64_t)x
                                                                  : (uint64_t)1 << 63;
})"},
    {"divide", R"(static inline uint64_t h_divide(int64_t x, int64_t y) {
  return y == 0 ? 0 : y == -1 ? 0 - (uint64_t)x : (uint64_t)(x / y);
})"},
    {"divide_unsigned", R"(static inline uint64_t h_divide_unsigned(uint64_t x, uint64_t y) {
  return y == 0 ? 0 : x / y;
})"},
    {"remainder", R"(static inline uint64_t h_remainder(int64_t x, int64_t y) {
  return y == 0 || y == -1 ? 0 : (uint64_t)(x % y);
})"},
    {"remainder_unsigned", R"(static inline uint64_t h_remainder_unsigned(uint64_t x, uint64_t y) {
  return y == 0 ? 0 : x % y;
})"},
    {"divide_floor", R"(static inline uint64_t h_divide_floor(int64_t x, int64_t y) {
  if (y == 0 || y == -1)
    return y == 0 ? 0 : 0 - (uint64_t)x;
  return (uint64_t)(x / y - (x % y != 0 && (x < 0) != (y < 0)));
})"},
    {"divide_ceil", R"(static inline uint64_t h_divide_ceil(int64_t x, int64_t y) {
  if (y == 0 || y == -1)
    return y == 0 ? 0 : 0 - (uint64_t)x;
  return (uint64_t)(x / y + (x % y != 0 && (x < 0) == (y < 0)));
})"},
    {"magnitude", R"(static inline uint64_t h_magnitude(int64_t x) {
  return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
})"},
    {"power", R"(static inline uint64_t h_power(int64_t x, int64_t y) {
  uint64_t result = 1, base = (uint64_t)x;
  if (y < 0)
    return x == 1 ? 1 : x == -1 ? (y % 2 ? ~(uint64_t)0 : 1) : 0;
  for (; y > 0; y /= 2, base *= base)
    if (y % 2)
      result *= base;
  return result;
})"},
    {"ones", R"(static inline uint64_t h_ones(uint64_t x) {
  uint64_t count = 0;
  for (; x; x &= x - 1)
    ++count;
  return count;
})"},
    {"shift_left", R"(static inline uint64_t h_shift_left(uint64_t x, uint64_t by, unsigned width) {
  return by >= width ? 0 : x << by;
})"},
    {"shift_right",
     R"(static inline uint64_t h_shift_right(uint64_t x, uint64_t by, unsigned width) {
  return by >= width ? 0 : x >> by;
})"},
    {"shift_right_signed",
     R"(static inline uint64_t h_shift_right_signed(int64_t x, uint64_t by, unsigned width) {
  uint64_t sign = x < 0 ? ~(uint64_t)0 : 0;
  return by >= width ? sign : (((uint64_t)x ^ sign) >> by) ^ sign;
})"},
    {"leading_zeros", R"(static inline uint64_t h_leading_zeros(uint64_t x, unsigned width) {
  uint64_t count = width;
  for (; x; x >>= 1)
    --count;
  return count;
})"},
    {"trailing_zeros", R"(static inline uint64_t h_trailing_zeros(uint64_t x, unsigned width) {
  uint64_t count = 0;
  for (; count < width && !(x >> count & 1); ++count) {
  }
  return count;
})"},
    {"add_checked",
     R"(static inline uint64_t h_add_checked(uint64_t x, uint64_t y, uint8_t *overflow) {
  uint64_t sum = x + y;
  *overflow = (uint8_t)(((x ^ sum) & (y ^ sum)) >> 63);
  return sum;
})"},
    {"multiply_checked",
     R"(static inline uint64_t h_multiply_checked(uint64_t x, uint64_t y, uint8_t *overflow) {
  uint64_t negative = (x ^ y) >> 63;
  uint64_t a = x >> 63 ? 0 - x : x, b = y >> 63 ? 0 - y : y;
  uint64_t most = ((uint64_t)1 << 63) - 1 + negative;
  *overflow = (uint8_t)(a != 0 && b > most / a);
  return x * y;
})"},
    {"dot_pairs", R"(static inline uint32_t h_dot_pairs(uint32_t x, uint32_t y) {
  return (uint32_t)((int16_t)x * (int16_t)y) +
         (uint32_t)((int16_t)(x >> 16) * (int16_t)(y >> 16));
})"},
    {"dot_bytes", R"(static inline uint32_t h_dot_bytes(uint32_t x, uint32_t y) {
  uint32_t sum = 0;
  for (int i = 0; i < 32; i += 8)
    sum += (uint32_t)((int8_t)(x >> i) * (int8_t)(y >> i));
  return sum;
})"},
    {"dot_unsigned", R"(static inline uint32_t h_dot_unsigned(uint32_t x, uint32_t y) {
  uint32_t sum = 0;
  for (int i = 0; i < 32; i += 8)
    sum += (uint32_t)((uint8_t)(x >> i) * (int8_t)(y >> i));
  return sum;
})"},
    {"dot_halves", R"(static inline uint32_t h_dot_halves(uint32_t x, uint32_t y, uint32_t sum) {
  uint32_t words[2] = {sum, sum >> 16};
  for (int i = 0; i < 4; ++i)
    words[i / 2] += (uint32_t)((uint8_t)(x >> 8 * i) * (int8_t)(y >> 8 * i));
  return (words[0] & 0xffffu) | words[1] << 16;
})"},
    {"dot_floats", R"(static inline float h_dot_floats(uint32_t x, uint32_t y, float sum) {
  for (int i = 16; i >= 0; i -= 16) {
    uint32_t left = (x << i) & 0xffff0000u, right = (y << i) & 0xffff0000u;
    float a, b;
    memcpy(&a, &left, sizeof a);
    memcpy(&b, &right, sizeof b);
    sum = fmaf(a, b, sum);
  }
  return sum;
})"},
    {"copy",
     R"(static inline void h_copy(unsigned char *to, const unsigned char *from, uint64_t bytes) {
  if (bytes)
    memcpy(to, from, (size_t)bytes);
})"},
    {"move",
     R"(static inline void h_move(unsigned char *to, const unsigned char *from, uint64_t bytes) {
  if (bytes)
    memmove(to, from, (size_t)bytes);
})"},
    {"word", R"(static inline uint64_t h_word(const unsigned char *from) {
  uint64_t word;
  memcpy(&word, from, sizeof word);
  return word;
})"},
    {"fail",
     R"(static void h_fail(unsigned char *handle, int64_t message, int64_t value, int64_t limit) {
  h_run *run = (h_run *)(void *)handle;
  if (run->status)
    return;
  run->status = 1 + (int32_t)message;
  run->value = value;
  run->limit = limit;
})"},
    // A failed run reads and writes nothing, but counts places: none is NULL.
    {"alloc", R"(static unsigned char *h_alloc(unsigned char *handle, uint64_t bytes) {
  h_run *run = (h_run *)(void *)handle;
  uint64_t rest = (uint64_t)(run->end - run->next);
  unsigned char *place = run->next;
  if (bytes > rest || 63 > rest - bytes) {
    if (!run->status) {
      run->status = H_NO_MEMORY;
      run->value = (int64_t)bytes;
      run->limit = (int64_t)rest;
    }
    return place;
  }
  run->next += (bytes + 63) & ~(uint64_t)63;
  return place;
})"},
    {"alloc_output",
     R"(static unsigned char *h_alloc_output(unsigned char *handle, int64_t output,
                                     uint64_t bytes) {
  h_run *run = (h_run *)(void *)handle;
  unsigned char *place = (unsigned char *)run->given[output].data;
  if (place) {
    if ((uint64_t)run->given[output].bytes < bytes && !run->status) {
      run->status = H_SMALL_OUTPUT;
      run->value = (int64_t)bytes;
      run->limit = run->given[output].bytes;
    }
    return place;
  }
  place = h_alloc(handle, bytes);
  if (!run->status)
    run->given[output].result = place;
  return place;
})"},
    {"launch",
     R"(static void h_launch(unsigned char *handle,
                     void (*kernel)(unsigned char *, uint64_t, uint64_t, unsigned char *),
                     unsigned char *arguments, uint64_t tasks, uint64_t scratch) {
  h_run *run = (h_run *)(void *)handle;
  unsigned char *before = run->next, *memory = NULL;
  if (scratch) {
    memory = h_alloc(handle, scratch);
    if (run->status)
      return;
  }
  if ((int64_t)tasks > 0)
    kernel(arguments, 0, tasks, memory);
  run->next = before;
})"}};

std::string helperText(const std::set<std::string> &names) {
  std::set<std::string> wanted = names;
  if (wanted.count("launch") || wanted.count("alloc_output"))
    wanted.insert("alloc");
  std::string text;
  for (const Helper &helper : all)
    if (wanted.count(helper.name))
      text += std::string(helper.text) + "\n\n";
  return text;
}

} // namespace heddle::c
