/* norm_gate.c: loops 0 rows, 1 depth, 2 columns. A task is a vector of columns of a block of rows,
 * which the first of a run of tasks normalises into scratch. A tile's sums stay in registers: those
 * of M rows or, where fewer are left, several a row, which hide how long an addition takes. */
enum { M = KNOB_m, L = HEDDLE_LANES, AHEAD = 16 };
static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }
static int64_t block(const heddle_group *g) { /* of rows, all of about one size */
  int64_t blocks = parts(heddle_extent_0(g), KNOB_rows);
  return blocks ? parts(parts(heddle_extent_0(g), M), blocks) * M : M;
}
int64_t heddle_tasks(const heddle_group *g) {
  return parts(heddle_extent_0(g), block(g)) * parts(heddle_extent_2(g), L);
}
int64_t heddle_scratch(const heddle_group *g) {
  return block(g) * heddle_extent_1(g) * (int64_t)sizeof(heddle_element);
}
static void normalise(const heddle_group *g, int64_t row, heddle_element *x, int64_t depth) {
  heddle_lanes sums = {0};
  for (int64_t k = 0; k < depth; k += L)
    sums += heddle_head(g, heddle_read_0_part(g, row, k, depth - k), depth - k, 0);
  heddle_element sum = heddle_sum_of(g, sums);
  for (int64_t k = 0; k < depth; ++k) /* becomes vectors by itself */
    x[k] = heddle_read_1_a(g, row, k, sum);
}
static inline __attribute__((always_inline)) void
tile(const heddle_group *g, const heddle_element *x, int64_t row, int64_t column, int rows) {
  int64_t depth = heddle_extent_1(g), width = heddle_extent_2(g) - column, ways = M / rows;
  heddle_lanes a[M] = {0}, b[M] = {0};
  for (int64_t k = 0, left; (left = depth - k) > 0; k += left < ways ? 1 : ways)
#pragma clang loop unroll(full)
    for (int t = 0; t < rows * ways && (t < rows || left >= ways); ++t) {
      heddle_element s = x[t % rows * depth + k + t / rows];
      if (rows < M && t % rows == 0) {
        heddle_fetch_1_b(g, k + t / rows + AHEAD, column);
        heddle_fetch_2_b(g, k + t / rows + AHEAD, column);
      }
      a[t] += s * heddle_read_1_b_part(g, k + t / rows, column, width);
      b[t] += s * heddle_read_2_b_part(g, k + t / rows, column, width);
    }
  for (int t = rows; t < rows * ways; ++t)
    a[t % rows] += a[t], b[t % rows] += b[t];
  for (int t = 0; t < rows; ++t)
    heddle_write_0_part(g, row + t, column, width, a[t], b[t]);
}
void heddle_kernel(const heddle_group *g, int64_t begin, int64_t end, void *scratch) {
  int64_t depth = heddle_extent_1(g), across = parts(heddle_extent_2(g), L), size = block(g);
  for (int64_t task = begin; task < end; ++task) {
    int64_t first = task / across * size, column = task % across * L,
            rows = heddle_extent_0(g) - first;
    heddle_element *x = scratch;
    rows = rows < size ? rows : size;
    for (int64_t i = 0; i < rows && (task == begin || column == 0); ++i)
      normalise(g, first + i, x + i * depth, depth);
    for (int64_t i = 0, left; (left = rows - i) > 0; i += M)
#pragma clang loop unroll(full)
      for (int n = 1; n <= M; ++n)
        if (n == (left < M ? left : M))
          tile(g, x + i * depth, first + i, column, n);
  }
}
