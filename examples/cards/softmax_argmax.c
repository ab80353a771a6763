/* softmax_argmax.c: loops 0 rows, 1 columns. Deciders 0 the largest and 1 the sum of the softmax, 2
 * the largest share, 3 the first index that has it. The row of result 0 holds what is scaled (value
 * 4), then the powers (value 5), then the shares (value 6): one pass each.
 * Its vectors lie as those of the machine do, whatever the length of a row. */
enum { L = HEDDLE_LANES, WAYS = 4 };
#define INLINE static inline __attribute__((always_inline))
typedef struct {
  const heddle_group *g;
  int64_t row;
  heddle_element top, sum;
} row_t;
int64_t heddle_tasks(const heddle_group *g) {
  return (heddle_extent_0(g) + KNOB_rows - 1) / KNOB_rows;
}
/* `all`, and `count` elements from `i` on. */
INLINE heddle_lanes joined(heddle_lanes all, row_t r, int64_t i, int64_t count, int pass) {
  heddle_lanes x = pass == 0 ? heddle_read_0_part(r.g, r.row, i, count)
                             : heddle_load_0_part(r.g, r.row, i, count);
  if (pass == 2)
    x = heddle_write_0_part(r.g, r.row, i, count, r.sum, x);
  else
    heddle_store_0_part(r.g, r.row, i, count,
                        x = pass ? heddle_read_1_part(r.g, r.row, i, count, r.top, x) : x);
  x = heddle_head(r.g, x, count, pass == 1 ? 0 : -__builtin_inff());
  return pass == 1 ? all + x : heddle_max_lanes(r.g, all, x);
}
INLINE heddle_element fold(row_t r, int64_t n, int pass) {
  int64_t first = -(r.row * n) & (L - 1), begin = first < n ? first : n, end = n - (n - begin) % L;
  heddle_lanes all[WAYS];
  for (int way = 0; way < WAYS; ++way)
    all[way] = (heddle_lanes){0} - (pass == 1 ? 0 : __builtin_inff());
  if (begin > 0)
    all[0] = joined(all[0], r, 0, begin, pass);
  for (int64_t i = begin; i < end; i += WAYS * L)
#pragma clang loop unroll(full)
    for (int64_t way = 0; way < WAYS; ++way)
      if (i + way * L < end)
        all[way] = joined(all[way], r, i + way * L, L, pass);
  if (end < n)
    all[0] = joined(all[0], r, end, n - end, pass);
  for (int way = 1; way < WAYS; ++way)
    all[0] = pass == 1 ? all[0] + all[way] : heddle_max_lanes(r.g, all[0], all[way]);
  return pass == 1 ? heddle_sum_of(r.g, all[0]) : heddle_max_of(r.g, all[0]);
}
static void walk(row_t r, int64_t n) {
  r.top = fold(r, n, 0);
  r.sum = fold(r, n, 1);
  heddle_element best = fold(r, n, 2);
  heddle_value_3 first = INT32_MAX, place;
  for (int64_t i = 0; i < n; ++i) {
    place = heddle_read_3(r.g, r.row, i, best, heddle_load_0(r.g, r.row, i));
    first = place < first ? place : first;
  }
  heddle_write_1(r.g, r.row, first);
}
void heddle_kernel(const heddle_group *g, int64_t begin, int64_t end, void *scratch) {
  for (int64_t row = begin * KNOB_rows; row < end * KNOB_rows && row < heddle_extent_0(g); ++row)
    walk((row_t){g, row, 0, 0}, heddle_extent_1(g));
}
