/* C that is none: a semicolon is missing, and a hole is misspelt. */
int64_t heddle_tasks(const heddle_group *g) { return heddle_rows(g) }
void heddle_kernel(const heddle_group *g, int64_t begin, int64_t end, void *scratch) {
  heddle_write(g, 0, 0, 0, heddle_raed_a(g, 0, 0, 0));
}
