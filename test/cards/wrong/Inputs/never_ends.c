/* Waits for a number that nobody writes. */
int64_t heddle_tasks(const heddle_group *g) { return heddle_rows(g); }
void heddle_kernel(const heddle_group *g, int64_t begin, int64_t end, void *scratch) {
  volatile heddle_element last = heddle_read_a(g, 0, begin, 0) * heddle_read_b(g, 0, 0, 0);
  while (last == last)
    ;
  heddle_write(g, 0, begin, 0, last);
}
