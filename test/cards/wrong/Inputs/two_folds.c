/* Holes of two reductions. */
int64_t heddle_tasks(const heddle_group *g) { return heddle_rows(g); }
void heddle_kernel(const heddle_group *g, int64_t begin, int64_t end, void *scratch) {
  for (int64_t row = begin; row < end; ++row) {
    heddle_element first = heddle_read_0(g, row, 0), second = heddle_read_1(g, row, 0, first);
    heddle_write(g, row, 0, first, second);
  }
}
