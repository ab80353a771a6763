"""compiler_test: that options, bytes, callbacks and errors cross into C as the header says.

The compiler behind it is a stand-in of 60 lines that reports what it was given; what the real one
makes of a model is tested in test/. SPDX-License-Identifier: Apache-2.0
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from session_test import built_runtimes

ROOT = Path(__file__).resolve().parents[2]

STAND_IN = r"""
#include "heddle/compiler.h"
#include "runtime/executable/testing/increment.c"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#pragma GCC visibility push(default)
struct heddle_compiled { char report[1000]; };

static heddle_status_t *make(const char *model, size_t bytes, const heddle_compile_options_t *o,
                             heddle_compiled_t **result) {
  if (strcmp(o->target, "avx5") == 0) return heddle_module_load("/none/avx5", 0);
  heddle_compiled_t *c = *result = calloc(1, sizeof *c);
  char shapes[200] = "";
  for (size_t i = 0; i < o->shape_count; ++i) strcat(strcat(shapes, o->shapes[i]), " ");
  if (o->progress) o->progress(o->progress_data, "lower", 0.5);
  char plan[50] = "";
  FILE *file = o->plan ? fopen(o->plan, "r") : 0;
  if (file) fgets(plan, sizeof plan, file), fclose(file);
  for (char *at = plan; *at; ++at) if (*at == '"') *at = '\'';
  sprintf(c->report, "{\"model\":\"%.*s\",\"size\":%d,\"target\":\"%s\",\"level\":%d,"
          "\"shapes\":\"%s\",\"plan\":\"%s\",\"schedules\":\"%s\",\"threads\":%d,\"fold\":%lld,"
          "\"records\":\"%s\",\"math\":\"%s\",\"typical\":\"%s\",\"in_place\":\"%s\","
          "\"ragged\":\"%s, %s\"}",
          (int)bytes, model, o->size == sizeof *o, o->target, o->opt_level, shapes, plan,
          o->schedules ? o->schedules : "-", o->threads, (long long)o->fold_limit_bytes,
          o->records ? o->records : "-", o->math ? o->math : "-",
          o->typical_count == 1 ? o->typical[0] : "-",
          o->in_place_count == 1 ? o->in_place[0] : "-",
          o->ragged_count == 1 ? o->ragged[0] : "-", o->ragged_outputs);
  return NULL;
}
heddle_status_t *heddle_compile(const char *path, const heddle_compile_options_t *o,
                                heddle_compiled_t **c) { return make(path, strlen(path), o, c); }
heddle_status_t *heddle_compile_bytes(const void *m, size_t n, const char *name,
                                      const heddle_compile_options_t *o, heddle_compiled_t **c) {
  (void)name; return make(m, n, o, c);
}
void heddle_compiled_destroy(heddle_compiled_t *c) { free(c); }
const char *heddle_compiled_report(const heddle_compiled_t *c) { return c->report; }
const char *heddle_compiled_plan(const heddle_compiled_t *c) { (void)c; return "{\"groups\": []}"; }
heddle_status_t *heddle_compiled_write(const heddle_compiled_t *c, const char *kind,
                                       const char *path) {
  FILE *file = fopen(path, "w"); fprintf(file, "%s of %.10s", kind, c->report); fclose(file);
  return NULL;
}
heddle_status_t *heddle_compiled_module(const heddle_compiled_t *c, heddle_module_t **m) {
  (void)c; return heddle_module_from_executable(&increment_executable, NULL, NULL, m);
}
heddle_status_t *heddle_reference_run_with(const char *path, const heddle_compile_options_t *o,
    const heddle_tensor_t *inputs, size_t n,
    void (*each)(void *, const char *, const char *, const char *, const heddle_tensor_t *),
    void *data) {
  (void)o;
  for (size_t i = 0; i < n; ++i) each(data, path, "Identity", "y", &inputs[i]);
  return NULL;
}
"""

PROGRAM = r"""
import heddle, numpy as np
seen = []
module = heddle.compile("m.onnx", shapes={"x": (1, 3, None), "batch": 4}, threads=3, opt_level=2,
                        plan={"groups": 1}, schedules="cards", fold_limit_bytes=1 << 40,
                        records="found.db", math="strict", typical={"seq": 128},
                        in_place={"out": "in"}, ragged="batch:seq=lengths", ragged_outputs="packed",
                        progress=lambda stage, fraction: seen.append((stage, fraction)))
assert module.compiled.report == {
    "model": "m.onnx", "size": 1, "target": "host", "level": 2, "shapes": "x=1x3x? batch=4 ",
    "plan": "{'groups': 1}", "schedules": "cards", "threads": 3, "fold": 1 << 40,
    "records": "found.db", "math": "strict", "typical": "seq=128",
    "in_place": "out=in", "ragged": "batch:seq=lengths, packed"}
assert seen == [("lower", 0.5)], seen
assert module.compiled.plan == {"groups": []}
y = module(np.ones((2, 4), np.float32), np.zeros(2, np.float32))
assert (y == 2).all()
report = heddle.compile(b"ab\0c", shapes=["x=1"]).compiled.report
assert report["model"] == "ab" and report["shapes"] == "x=1 " and report["plan"] == ""
assert module.compiled.text("graph") == 'graph of {"model":"'
try:
    heddle.compile("m.onnx", target="avx5")
    raise SystemExit("not refused")
except heddle.UsageError as error:
    assert "needs a path and a place" in str(error)
try:
    module.compiled.write("model.txt")
    raise SystemExit("not refused")
except heddle.UsageError as error:
    assert "its ending says no kind; known: .so, .o" in str(error), error
x = np.arange(6, dtype=np.int64).reshape(2, 3)
((node, op, value, array),) = heddle.reference("m.onnx", [x])
assert (node, op, value) == ("m.onnx", "Identity", "y") and (array == x).all()
"""


def test_everything_crosses_into_c(tmp_path):
    runtimes = built_runtimes()
    if not runtimes:
        pytest.skip("libheddle_runtime.so is not built")
    source, library = tmp_path / "compiler.c", tmp_path / "libheddle.so"
    source.write_text(STAND_IN)
    subprocess.run(
        ["cc", "-w", "-shared", "-fPIC", f"-I{ROOT}", f"-I{ROOT / 'include'}", str(source)]
        + [str(runtimes[0]), f"-Wl,-rpath,{runtimes[0].parent}", "-o", str(library)],
        check=True,
    )
    environment = {**os.environ, "HEDDLE_LIBRARY": str(library), "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env=environment, cwd=tmp_path)
