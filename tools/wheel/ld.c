/* ld.c: the linker that artefacts are made with where no other one is installed: LLD, which
 * libheddle.so holds. SPDX-License-Identifier: Apache-2.0 */

int heddle_ld_main(int count, const char **words);

int main(int count, char **words) { return heddle_ld_main(count, (const char **)words); }
