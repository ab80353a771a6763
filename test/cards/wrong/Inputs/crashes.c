/* Writes to an address that no process has. */
int64_t heddle_tasks(const heddle_group *g) { return heddle_rows(g); }
void heddle_kernel(const heddle_group *g, int64_t begin, int64_t end, void *scratch) {
  for (int64_t row = begin; row < end; ++row) {
    *(volatile heddle_element *)16 = heddle_read_a(g, 0, row, 0) * heddle_read_b(g, 0, 0, 0);
    heddle_write(g, 0, row, 0, 1);
  }
}
