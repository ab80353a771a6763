/* small_matmul.c: the kernel of the card small_matmul: KNOB_m rows of the result at a time, as many
 * columns as a vector has lanes. Sums stay in registers; heddle_write puts them through whatever
 * follows the product in the model. */

enum { ROWS = KNOB_m };

static inline __attribute__((always_inline)) void tile(const heddle_group *g, int64_t batch,
                                                       int64_t row, int64_t count, int64_t column,
                                                       int64_t width) {
  int64_t depth = heddle_depth(g);
  heddle_lanes sums[ROWS] = {0};
  for (int64_t k = 0; k < depth; ++k) {
    heddle_lanes b = heddle_read_b_part(g, batch, k, column, width);
#pragma clang loop unroll(full)
    for (int64_t i = 0; i < ROWS; ++i) /* the last row again in place of those beyond */
      sums[i] += heddle_read_a(g, batch, row + (i < count ? i : count - 1), k) * b;
  }
#pragma clang loop unroll(full)
  for (int64_t i = 0; i < ROWS; ++i)
    if (i < count)
      heddle_write_part(g, batch, row + i, column, width, sums[i]);
}

static int64_t tilesOf(const heddle_group *g) { return (heddle_rows(g) + ROWS - 1) / ROWS; }

int64_t heddle_tasks(const heddle_group *g) { return heddle_batches(g) * tilesOf(g); }

void heddle_kernel(const heddle_group *g, int64_t begin, int64_t end, void *scratch) {
  (void)scratch;
  int64_t columns = heddle_columns(g), full = columns - columns % HEDDLE_LANES;
  for (int64_t task = begin; task < end; ++task) {
    int64_t batch = task / tilesOf(g), row = task % tilesOf(g) * ROWS;
    int64_t left = heddle_rows(g) - row, count = left < ROWS ? left : ROWS;
    for (int64_t column = 0; column < full; column += HEDDLE_LANES)
      tile(g, batch, row, count, column, HEDDLE_LANES);
    if (full < columns)
      tile(g, batch, row, count, full, columns - full);
  }
}
