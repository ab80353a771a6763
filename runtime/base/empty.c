/* empty.c: a shared library needs a source; this one is made of archives. Its symbol says what the
 * library is to who looks with nm. SPDX-License-Identifier: Apache-2.0 */
extern const char heddle_runtime_is_alone[];
__attribute__((visibility("default"))) const char heddle_runtime_is_alone[] = "no compiler inside";
