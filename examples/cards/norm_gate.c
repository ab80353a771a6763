/* norm_gate.c: loops 0 rows, 1 depth, 2 columns. A task normalises its rows into scratch; then both
 * sums of KNOB_m rows by a vector of columns, or of one row by four, stay in registers. */
enum { M = KNOB_m, ROWS = KNOB_rows, COLUMNS = KNOB_columns, L = HEDDLE_LANES, V = 4 };
static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }
int64_t heddle_tasks(const heddle_group *g) {
  return parts(heddle_extent_0(g), ROWS) * parts(heddle_extent_2(g), COLUMNS);
}
int64_t heddle_scratch(const heddle_group *g) {
  return (ROWS + 2 * L) * heddle_extent_1(g) * (int64_t)sizeof(heddle_element);
}
static void normalise(const heddle_group *g, int64_t row, heddle_element *x, int64_t depth) {
  heddle_lanes sums = {0};
  int64_t full = depth - depth % L, k = 0;
  for (; k < full; k += L)
    sums += heddle_read_0_lanes(g, row, k);
  heddle_element sum = heddle_sum_of(g, sums);
  for (; k < depth; ++k)
    sum += heddle_read_0(g, row, k);
  for (k = 0; k < depth; ++k) /* becomes vectors by itself */
    x[k] = heddle_read_1_a(g, row, k, sum);
}
static inline __attribute__((always_inline)) void
tile(const heddle_group *g, const heddle_element *x, const heddle_lanes *w, int64_t depth,
     int64_t row, int64_t column, int64_t width, int rows, int vectors) {
  heddle_lanes a[M + V] = {0}, b[M + V] = {0};
  for (int64_t k = 0; k < depth; ++k)
#pragma clang loop unroll(full)
    for (int t = 0; t < rows * vectors; ++t) {
      heddle_element s = x[t % rows * depth + k];
      a[t] += s * (w ? w[2 * k] : heddle_read_1_b_lanes(g, k, column + t / rows * L));
      b[t] += s * (w ? w[2 * k + 1] : heddle_read_2_b_lanes(g, k, column + t / rows * L));
    }
#pragma clang loop unroll(full)
  for (int t = 0; t < rows * vectors; ++t)
    if (!w)
      heddle_write_0_lanes(g, row + t % rows, column + t / rows * L, a[t], b[t]);
    else
      for (int64_t j = 0; j < width; ++j)
        heddle_write_0(g, row + t, column + j, a[t][j], b[t][j]);
}
void heddle_kernel(const heddle_group *g, int64_t begin, int64_t end, void *scratch) {
  int64_t depth = heddle_extent_1(g), across = parts(heddle_extent_2(g), COLUMNS), i, j;
  heddle_lanes *w = scratch;
  heddle_element *x = (heddle_element *)(w + 2 * depth);
  for (int64_t task = begin; task < end; ++task) {
    int64_t row = task / across * ROWS, column = task % across * COLUMNS;
    int64_t rows = heddle_extent_0(g) - row, last = heddle_extent_2(g) - column;
    rows = rows < ROWS ? rows : ROWS, last = column + (last < COLUMNS ? last : COLUMNS);
    for (i = 0; i < rows; ++i)
      normalise(g, row + i, x + i * depth, depth);
    for (int64_t width; column < last; column += width) {
      width = last - column < V * L ? last - column < L ? last - column : L : V * L;
      for (i = 0; i < depth * (width < L); ++i) /* what is left, as vectors */
        for (j = 0; j < width; ++j) {
          w[2 * i][j] = heddle_read_1_b(g, i, column + j);
          w[2 * i + 1][j] = heddle_read_2_b(g, i, column + j);
        }
      for (i = 0; i + M <= rows && width >= L; i += M)
        for (j = 0; j < width; j += L)
          tile(g, x + i * depth, 0, depth, row + i, column + j, L, M, 1);
      for (; i < rows; ++i)
        if (width > L)
          tile(g, x + i * depth, 0, depth, row + i, column, L, 1, V);
        else
          tile(g, x + i * depth, width < L ? w : 0, depth, row + i, column, width, 1, 1);
    }
  }
}
