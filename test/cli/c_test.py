"""`heddle compile --target c`: files that C compilers take, that compute what the model says, and
that say what is wrong."""

import ctypes
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node
from onnx import helper

from command import (LLVM, REFUSED, ROOT, USAGE, dense, dense_model, fails, heddle, needs_heddle,
                     ok, save)

pytestmark = needs_heddle
MODELS = ROOT.parent / "shared" / "models"
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
COMPILERS = [name for name in ("gcc", f"clang-{LLVM}") if shutil.which(name)]


class Model:
    """A C file as a library: `prefix_run` on arrays of NumPy."""

    def __init__(self, source, compiler, flags):
        library = source.with_suffix(".so")
        subprocess.run([compiler, *FLAGS, *flags, "-shared", "-fPIC", "-o", library, source, "-lm"],
                       check=True, timeout=900)
        text = source.read_text(errors="replace")
        self.prefix, self.outputs, rank = re.search(
            r"(\w+)_OUTPUTS = (\d+), \w+_MAX_RANK = (\d+)", text).groups()
        self.library = ctypes.CDLL(str(library))

        class Tensor(ctypes.Structure):
            _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_int64),
                        ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                        ("dims", ctypes.c_int64 * int(rank)), ("result", ctypes.c_void_p)]
        self.tensor = Tensor

    def run(self, arrays, shorten=0):
        """The results, or a message as text."""
        inputs = (self.tensor * (len(arrays) + 1))()
        arrays = [np.asarray(array, order="C") for array in arrays]
        for tensor, array in zip(inputs, arrays):
            tensor.data, tensor.bytes = array.ctypes.data, array.nbytes
            tensor.dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
            tensor.rank = array.ndim
            tensor.dims[:min(array.ndim, len(tensor.dims))] = array.shape[:len(tensor.dims)]
        outputs = (self.tensor * int(self.outputs))()
        message, size = ctypes.create_string_buffer(512), ctypes.c_int64()
        if self.call("arena_bytes", inputs, outputs, ctypes.byref(size), message):
            return message.value.decode()
        arena = ctypes.create_string_buffer(size.value)
        if self.call("run", inputs, outputs, arena, ctypes.c_int64(size.value - shorten), message):
            return message.value.decode()
        return [self.array(tensor) for tensor in outputs]

    def call(self, name, *arguments):
        return getattr(self.library, f"{self.prefix}_{name}")(*arguments)

    @staticmethod
    def array(tensor):
        dtype = helper.tensor_dtype_to_np_dtype(tensor.dtype)
        shape = tuple(tensor.dims[:tensor.rank])
        size = int(np.prod(shape)) * dtype.itemsize
        return np.frombuffer(ctypes.string_at(tensor.result, size), dtype).reshape(shape)


def written(model, folder, name="dense"):
    path = model if isinstance(model, Path) else save(model, folder / f"{name}.onnx")
    ok("compile", path, "--target", "c", "--no-cache", "-o", folder / f"{name}.c")
    return folder / f"{name}.c"


@pytest.fixture
def path(tmp_path):
    return save(dense_model(), tmp_path / "dense.onnx")


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_it_computes_the_model(tmp_path, compiler, level):
    model = Model(written(dense_model(), tmp_path), compiler, [level, "-pedantic"])
    for batch in (0, 1, 7):
        x = np.float32(np.random.default_rng(batch).integers(-9, 9, (batch, 3)))
        np.testing.assert_array_equal(model.run([x])[0], dense(x))


def test_rows_of_a_batch_have_lengths_of_their_own(tmp_path):
    """The largest of each row, and what lies beyond it is 0."""
    nodes = [make_node("Exp", "x", "y"), make_node("ReduceSum", "y axis", "z", keepdims=0)]
    path = save(make_model(nodes, {"x": ["batch", "seq", 3]},
                           {"y": ["batch", "seq", 3], "z": ["batch", 3]}, {"axis": np.int64([1])}),
                tmp_path / "rows.onnx")
    ok("compile", path, "--target", "c", "--ragged", "batch:seq=lengths", "--no-cache", "-o",
       tmp_path / "rows.c")
    model = Model(tmp_path / "rows.c", COMPILERS[0], ["-O1"])
    x = np.random.default_rng(0).standard_normal((4, 5, 3)).astype(np.float32)
    lengths = np.int64([2, 0, 5, 1])
    kept = np.arange(5)[None, :, None] < lengths[:, None, None]
    y, z = model.run([x, lengths])
    np.testing.assert_allclose(y, np.where(kept, np.exp(x), 0), rtol=1e-5)
    np.testing.assert_allclose(z, np.where(kept, np.exp(x), 0).sum(1), rtol=1e-5)
    assert "row 1 has the length 6" in model.run([x, np.int64([2, 6, 5, 1])])


def test_wrong_inputs_are_messages(tmp_path):
    model = Model(written(dense_model(), tmp_path), COMPILERS[0], ["-O1"])
    assert model.run([np.zeros((2, 4), np.float32)]) == (
        "input 'x': its shape is [2, 4], but [batch, 3] is allowed")
    assert model.run([np.zeros((2, 3), np.int32)]) == (
        "input 'x': its dtype is 6, but 1 is allowed")
    assert "the arena has" in model.run([np.zeros((2, 3), np.float32)], shorten=1)


def test_the_guide_s_program(tmp_path):
    written(dense_model(), tmp_path)
    guide = (ROOT / "docs/guide/c.md").read_text()
    (tmp_path / "main.c").write_text(re.search(r"```c\n(.*?)```", guide, re.S).group(1))
    subprocess.run([COMPILERS[0], *FLAGS, "main.c", "dense.c", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "a.out"], stdout=subprocess.PIPE, check=True)
    expected = [dense(np.float32([[1, 2, 3], [-1, 0, 1]])[:rows]).ravel() for rows in (1, 2)]
    assert done.stdout.decode().split() == [f"{number:g}" for number in np.concatenate(expected)]


IN_C = r"""
#include "%(file)s.h"
#include <stdio.h>
int main(void) {
  int %(file)s = 3; /* a name of the program's own */
  heddle_module_t *module;
  heddle_status_t *status = heddle_module_from_executable(&%(name)s_executable, 0, 0, &module);
  if (status) { puts(heddle_status_message(status)); return 1; }
  printf("%%s %%d\n", heddle_module_input(module, 0)->name, %(file)s);
  heddle_module_destroy(module);
  return 0;
}
"""
AS_C = r"""
#include <heddle/runtime.h>
#define %(name)s_INTERFACE_ONLY
#include "%(file)s.c"
int main(void) {
  int %(file)s = 3;
  %(name)s_tensor x = {.dtype = 1, .rank = 2, .dims = {2, 3}}, y = {.data = 0};
  int64_t bytes;
  return %(file)s + %(name)s_arena_bytes(&x, &y, &bytes, 0) - 3;
}
"""


@pytest.mark.parametrize("file, name", [
    ("h", "model_h"), ("heddle", "model_heddle"), ("heddle_m", "model_heddle_m"),
    ("runtime", "runtime"), ("version", "version"), ("m", "m")])
def test_any_name_serves_in_c(tmp_path, file, name):
    """Names of the generated code, of Heddle's functions and of its headers, and any other."""
    names = {"file": file, "name": name}
    path = save(dense_model(), tmp_path / f"{file}.onnx")
    for made in (f"{file}.o", f"{file}.c"):
        ok("compile", path, "-o", tmp_path / made, "-O0",
           *(("--target", "c") if made.endswith(".c") else ()))
    (tmp_path / "in_c.c").write_text(IN_C % names)
    (tmp_path / "as_c.c").write_text(AS_C % names)
    include, runtime = ROOT / "include", ROOT / "build/release/lib/libheddle_runtime.a"
    for sources in (["in_c.c", f"{file}.o", runtime], ["as_c.c", f"{file}.c"]):
        subprocess.run([COMPILERS[0], *FLAGS, f"-I{include}", *sources, "-lm", "-o", "program"],
                       cwd=tmp_path, check=True)
        done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True)
        assert done.stdout == ("x 3\n" if "in_c.c" in sources else "")


LOOP = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define grows_INTERFACE_ONLY
#include "grows.c"

static const int64_t rows[] = {3, 3, 50, 1, 0, 50};
static float results[6][2][1600 + 50];

int main(void) {
  char message[grows_MESSAGE_BYTES] = "";
  for (int own = 0; own < 2; ++own) { /* outputs in the arena, then in the caller's memory */
    float *y = malloc(1600 * 4), *z = malloc(50 * 4);
    grows_tensor input = {.dtype = 1, .rank = 2, .dims = {0, 40}}, outputs[2] = {{0}}, before[2];
    if (own) {
      outputs[0].data = y, outputs[0].bytes = 1600 * 4;
      outputs[1].data = z, outputs[1].bytes = 50 * 4;
    }
    memcpy(before, outputs, sizeof before);
    for (int k = 0; k < 6; ++k) {
      int64_t bytes, count = rows[k] * 40;
      input.dims[0] = rows[k], input.bytes = count * 4, input.data = malloc(count * 4 + 1);
      for (int i = 0; i < count; ++i)
        ((float *)input.data)[i] = (float)(i * 37 % 101) / 100;
      if (grows_arena_bytes(&input, outputs, &bytes, message))
        return puts(message), 1;
      bytes += 8192;
      void *arena = malloc(bytes);
      if (grows_run(&input, outputs, arena, bytes, message))
        return puts(message), 1;
      for (int i = 0; i < 2; ++i)
        if (outputs[i].data != before[i].data || outputs[i].bytes != before[i].bytes)
          return puts("the caller's description was changed"), 1;
      if (outputs[1].dims[0] > 50)
        return puts("too many"), 1;
      memcpy(results[k][own], outputs[0].result, 1600 * 4);
      memcpy(results[k][own] + 1600, outputs[1].result, outputs[1].dims[0] * 4);
      if (memcmp(results[k][own], results[k][0], sizeof results[k][0]))
        return puts("the caller's memory has other results than the arena"), 1;
      if (k == 5 && !own) {
        outputs[0].data = outputs[0].result, outputs[0].bytes = 1600 * 4;
        if (!grows_run(&input, outputs, arena, bytes, message))
          return puts("memory of the arena was taken"), 1;
        puts(message);
      }
      free(arena), free(input.data);
    }
    free(y), free(z);
  }
  return memcmp(results[0], results[1], sizeof results[0]) ||
         memcmp(results[2], results[5], sizeof results[2]);
}
"""


def growing(folder):
    """A model with an output of one size, and one whose size is known only at run time."""
    nodes = [make_node("Gemm", "x x", "y", transA=1), make_node("Cast", "x", "ones", to=7),
             make_node("ReduceSum", "ones", "count", keepdims=0),
             make_node("Range", "zero count one", "range"), make_node("Cast", "range", "z", to=1)]
    return save(make_model(nodes, {"x": ["rows", 40]}, {"y": [40, 40], "z": ["k"]},
                           {"zero": 0, "one": 1}), folder / "grows.onnx")


def test_runs_after_the_first_are_as_right(tmp_path):
    written(growing(tmp_path), tmp_path, "grows")
    (tmp_path / "main.c").write_text(LOOP)
    for compiler in COMPILERS:
        subprocess.run([compiler, *FLAGS, "-g", "-fsanitize=address,undefined", "main.c", "grows.c",
                        "-lm"], cwd=tmp_path, check=True)
        done = subprocess.run([tmp_path / "a.out"], stdout=subprocess.PIPE, check=False)
        assert done.returncode == 0, done.stdout
        assert b"output 'y': its buffer lies in the arena" in done.stdout


def test_a_session_s_runs_after_the_first_are_as_right(tmp_path):
    package = pytest.importorskip("heddle")
    module = package.compile(growing(tmp_path), cache=False, output=tmp_path / "grows.so")
    session, place = package.Session(module, threads=1), np.empty((40, 40), np.float32)
    for rows in (3, 3, 50, 1, 0, 50):
        x = np.float32(np.arange(rows * 40) * 37 % 101).reshape(rows, 40) / 100
        for own in ({}, {"y": place}, {"y": package.Tensor(place)}):
            place[:] = np.nan
            for result, wanted in zip(session.run(None, {"x": x}, out=own),
                                      package.Session(module, threads=1).run(None, {"x": x})):
                assert np.asarray(result).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", ["h", "h_heddle_program", "_Exit", "__x", "int", "main", "malloc",
                                  "size_t", "INT64", "3d"])
def test_any_name_of_a_model(tmp_path, name):
    model = Model(written(dense_model(), tmp_path, name), COMPILERS[0], ["-O0"])
    np.testing.assert_array_equal(model.run([np.ones((1, 3), np.float32)])[0],
                                  dense(np.ones((1, 3), np.float32)))


@pytest.mark.parametrize("options, status, words", [
    (["--target", "c", "-o", "m.so"], USAGE, "which gives c, plan, graph and loops"),
    (["-o", "m.c"], USAGE, "'--target c' gives c"),
    (["--target", "c", "--threads", "2", "-o", "m.c"], USAGE, "runs in its caller's thread"),
    (["--target", "c+x86-64-v3", "-o", "m.c"], USAGE, "'c' stands alone"),
])
def test_wrong_options(path, tmp_path, options, status, words):
    options = [tmp_path / option if option.startswith("m.") else option for option in options]
    fails("compile", path, "--no-cache", *options, status=status, says=words)
    assert not list(tmp_path.glob("m.*"))


@pytest.mark.parametrize("command", [["run", "--input", "x=2x3xf32=1"], ["bench"], ["compare"],
                                     ["tune", "--time", "1", "--records", "r.db"]],
                         ids=lambda words: words[0])
def test_nothing_runs_a_c_file_here(path, tmp_path, command):
    fails(command[0], path, "--no-cache", "--target", "c",
          *(tmp_path / word if word == "r.db" else word for word in command[1:]), status=REFUSED,
          says=["dense.onnx' cannot be run here", "heddle compile --target c -o model.c"])


def test_python_runs_no_c_file(path):
    heddle_package = pytest.importorskip("heddle")
    with pytest.raises(heddle_package.RefusedError) as refused:
        heddle_package.compile(path, target="c")
    message = str(refused.value)
    assert "dense.onnx' cannot be run here: it is compiled for 'c'" in message
    assert "note: 'heddle compile --target c -o model.c' writes it" in message


def test_nothing_measures_its_groups(path):
    done = fails("explain", path, "--target", "c", "--measure",
                 says=["error: target 'c' has no profiles: they need heddle's runtime",
                       "note: without '--target c' groups are measured on this machine"])
    assert not done.output


def test_a_plan_says_its_target(path, tmp_path):
    plans = {}
    for target in ("c", "x86-64-v3"):
        plan = tmp_path / f"{target}.json"
        ok("compile", path, "--no-cache", "--target", target, "-o", plan)
        plans[target] = json.loads(plan.read_text())
    assert plans["c"]["target"] == "c" and plans["x86-64-v3"]["target"] == "cpu"
    assert plans["c"]["model"] == plans["x86-64-v3"]["model"]


def test_machine_code_is_not_taken_for_c(path):
    """Loop schedules of CPUs are offered; what calls a library or is written in C is not."""
    done = heddle("cards", "explain", path, "--target", "c", "--json")
    (group, *_) = json.loads(done.output)["groups"]
    cards = {card["card"]: card for card in group["cards"]}
    assert cards["matmul"]["offered"] and group["chosen"] == "matmul"
    assert "'c'" in cards["onednn_matmul"]["refusal"]


def test_services_are_refused(tmp_path):
    node = make_node("NonZero", "x", "y", "places")
    model = make_model([node], {"x": [4]}, {"y": ([1, None], onnx.TensorProto.INT64)})
    fails("compile", save(model, tmp_path / "m.onnx"), "--target", "c", "--no-cache", "-o",
          tmp_path / "m.c", status=REFUSED,
          says=["m.onnx", "node 'places' takes the service 'nonzero'", "cannot be written as C",
                "--target host"])
    assert not (tmp_path / "m.c").exists()


LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_squeezenet.onnx"


@pytest.mark.parametrize("path", [
    LIGHT, *(MODELS / f"{name}.onnx" for name in ("kws_fp32", "silero_vad_v5",
                                                  "ultraface_rfb320"))],
    ids=lambda path: path.stem)
def test_real_models(tmp_path, path):
    """Equal to ONNX Runtime, by both compilers; all but the first lie in ../shared."""
    if not path.exists():
        pytest.skip(f"there is no {path}")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(path)
    random = np.random.default_rng(1)
    inputs = []
    for each in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in each.shape]
        if each.type == "tensor(int64)":
            inputs.append(np.full(shape, 16000, np.int64))
        elif path.stem.startswith("silero") and each.name == "input":
            inputs.append(random.standard_normal((1, 576)).astype(np.float32))
        else:
            inputs.append(random.standard_normal(shape).astype(np.float32))
    names = [each.name for each in session.get_inputs()]
    expected = session.run(None, dict(zip(names, inputs)))
    source = written(path, tmp_path, path.stem)
    for compiler in COMPILERS:
        for result, wanted in zip(Model(source, compiler, ["-O1"]).run(inputs), expected):
            np.testing.assert_allclose(result, wanted, rtol=1e-3, atol=2e-5)
