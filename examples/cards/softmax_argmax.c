/* softmax_argmax.c: loops 0 rows, 1 columns. Deciders 0 the largest and 1 the sum of the softmax, 2
 * the largest share, 3 the first index that has it. The row of result 0 holds what is scaled (value
 * 4), then the powers (value 5), then the shares (value 6). A row's last vector overlaps the one
 * before. */
enum { L = HEDDLE_LANES, WAYS = 4 };
typedef struct {
  const heddle_group *g;
  int64_t row;
  heddle_element top, sum;
} row_t;
int64_t heddle_tasks(const heddle_group *g) {
  return (heddle_extent_0(g) + KNOB_rows - 1) / KNOB_rows;
}
static inline __attribute__((always_inline)) heddle_lanes part(row_t r, int64_t i, int pass) {
  heddle_lanes x = pass ? heddle_load_0_lanes(r.g, r.row, i) : heddle_read_0_lanes(r.g, r.row, i);
  if (pass == 2)
    return heddle_write_0_lanes(r.g, r.row, i, r.sum, x);
  x = pass ? heddle_read_1_lanes(r.g, r.row, i, r.top, x) : x;
  heddle_store_0_lanes(r.g, r.row, i, x);
  return x;
}
static inline __attribute__((always_inline)) heddle_lanes fold(row_t r, int64_t full, int pass) {
  heddle_lanes all[WAYS];
  for (int way = 0; way < WAYS; ++way)
    all[way] = (heddle_lanes){0} - (pass == 1 ? 0 : __builtin_inff());
  for (int64_t i = 0; i < full; i += WAYS * L)
#pragma clang loop unroll(full)
    for (int64_t way = 0; way < WAYS; ++way)
      if (i + way * L < full) {
        heddle_lanes x = part(r, i + way * L, pass);
        all[way] = pass == 1 ? all[way] + x : heddle_max_lanes(r.g, all[way], x);
      }
  for (int way = 1; way < WAYS; ++way)
    all[0] = pass == 1 ? all[0] + all[way] : heddle_max_lanes(r.g, all[0], all[way]);
  return all[0];
}
static void walk(row_t r, int64_t n) {
  int64_t full = n - n % L, last = n - L, i, whole = full == n;
  heddle_lanes tail, more, most = fold(r, full, 0), sums;
  if (!whole)
    most = heddle_max_lanes(r.g, most, tail = heddle_read_0_lanes(r.g, r.row, last));
  r.top = heddle_max_of(r.g, most);
  sums = fold(r, full, 1);
  if (!whole) {
    more = tail = heddle_read_1_lanes(r.g, r.row, last, r.top, tail);
    for (i = 0; i < full - last; ++i)
      more[i] = 0;
    sums += more;
  }
  r.sum = heddle_sum_of(r.g, sums);
  most = fold(r, full, 2);
  if (!whole)
    most = heddle_max_lanes(r.g, most, heddle_write_0_lanes(r.g, r.row, last, r.sum, tail));
  heddle_element best = heddle_max_of(r.g, most);
  heddle_value_3 first = INT32_MAX, place;
  for (i = 0; i < n; ++i) {
    place = heddle_read_3(r.g, r.row, i, best, heddle_load_0(r.g, r.row, i));
    first = place < first ? place : first;
  }
  heddle_write_1(r.g, r.row, first);
}
void heddle_kernel(const heddle_group *g, int64_t begin, int64_t end, void *scratch) {
  for (int64_t row = begin * KNOB_rows; row < end * KNOB_rows && row < heddle_extent_0(g); ++row)
    walk((row_t){g, row, 0, 0}, heddle_extent_1(g));
}
