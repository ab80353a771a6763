"""Ops of the user's own, in C and in Python: in process, command line, programs and artefacts."""

import signal
import subprocess
import sys

import heddle
import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node
from heddle_lab.fuzz.check import run_reference
from onnx import helper

import command
from command import OK, REFUSED, ROOT, fails, ok

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The library of custom_op.c, which is loaded into this process."""
    path = tmp_path_factory.mktemp("custom") / "libops.so"
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                    f"-I{ROOT / 'include'}", ROOT / "test/onnx/custom_op.c", "-o", path],
                   check=True)
    heddle.load_custom_ops(path)
    return path


def model_of(op, dims=("n", 3), outputs=1, before=(), domain="org.example", **attributes):
    """y = op(x) after `before`, then + 1 on the first result."""
    names = ["made", *[f"y{i}" for i in range(1, outputs)]]
    nodes = [*before,
             make_node(op, ["v" if before else "x"], names, name="it", domain=domain, **attributes),
             make_node("Identity", "made", "y0")]
    return make_model(nodes, {"x": dims},
                      [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)], opset=21)


def run(model, x=X):
    module = heddle.compile(model, cache=False)
    return heddle.Session(module, threads=1).run(None, {"x": x}), module


@pytest.mark.parametrize("dims", [(2, 3), ("n", 3), ("n", "m")])
def test_an_op_of_a_library(library, dims):
    model = model_of("Scale", dims, factor=2.5)
    for rows in ((2,) if dims[0] == 2 else (2, 0, 5)):
        x = np.ones((rows, 3), np.float32) * 3
        (y,), module = run(model, x)
        np.testing.assert_array_equal(y, x * 2.5)
        np.testing.assert_array_equal(
            run_reference(model.SerializeToString(), module, {"x": x})["y0"], x * 2.5)


def test_sizes_follow_through_an_op(library):
    _, module = run(model_of("Scale", ("n", "m")))
    assert module.outputs[0].shape == ["n", "m"]


def test_several_results_between_other_ops(library):
    before = [make_node("Relu", "x", "v")]
    model = model_of("Doubled", ("n", "m"), 2, before)
    for rows in (0, 1, 4):
        x = np.random.default_rng(rows).standard_normal((rows, 5)).astype(np.float32)
        (y, count), module = run(model, x)
        np.testing.assert_array_equal(y, np.repeat(np.maximum(x, 0), 2, axis=0))
        assert count == 2 * x.size
        np.testing.assert_array_equal(
            run_reference(model.SerializeToString(), module, {"x": x})["y0"], y)


def test_truth_is_0_or_1(library):
    (y,), _ = run(model_of("Truth"))
    assert y.view(np.uint8).tolist() == [[1] * 3] * 2


@pytest.mark.parametrize("op, message", [
    ("Negative", "gives result 0 a rank or element type that cannot be, or a size that cannot be: "
     "-2"),
    ("Huge", "or a size that cannot be: 4611686018427387904"),
    ("Text", "gives result 0 a rank or element type that cannot be"),
    ("Nothing", "op 'Nothing' is of the unknown domain 'org.example'")])
def test_refused_when_compiled(library, op, message):
    with pytest.raises(heddle.RefusedError, match=message) as refusal:
        run(model_of(op))
    assert f"node 'it' ({op})" in str(refusal.value)


@pytest.mark.parametrize("op, message", [
    ("Fickle", "another rank or element type than when it was compiled"),
    ("Fails", "the compute function of its op returns 9"),
    ("Overruns", "writes beyond the end of result 0")])
def test_refused_when_run(library, op, message):
    with pytest.raises(heddle.Error, match=message) as refusal:
        run(model_of(op))
    assert "node 'it'" in str(refusal.value)


def test_attributes_that_are_no_numbers(library):
    with pytest.raises(heddle.RefusedError, match="'factor' is no number or text"):
        run(model_of("Scale", factor=helper.make_tensor("t", 1, [1], [1.0])))


def test_what_is_no_library_of_ops(tmp_path):
    with pytest.raises(heddle.UsageError, match="cannot read the library of ops"):
        heddle.load_custom_ops(tmp_path / "none.so")
    (tmp_path / "text.so").write_text("text")
    with pytest.raises(heddle.UsageError, match="cannot load the library of ops"):
        heddle.load_custom_ops(tmp_path / "text.so")
    (tmp_path / "empty.c").write_text("int heddle_nothing;")
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "empty.c", "-o", tmp_path / "empty.so"],
                   check=True)
    with pytest.raises(heddle.UsageError, match="it must define 'heddle_custom_ops'"):
        heddle.load_custom_ops(tmp_path / "empty.so")


def test_the_command_line_and_a_library_that_is_gone(library, tmp_path, monkeypatch):
    onnx.save(model_of("Scale", factor=3.0), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", X)

    monkeypatch.chdir(tmp_path)
    fails("compile", "m.onnx", "-o", "m.so", status=REFUSED, says="'--custom-op LIBRARY'")
    moved = tmp_path / "libmoved.so"
    moved.write_bytes(library.read_bytes())
    ok("compile", "m.onnx", "--custom-op", moved, "-o", "m.so")
    np.save(tmp_path / "y.npy", X * 3)
    ok("run", "m.so", "--input", "x=@x.npy", "--expect", "y0=@y.npy")
    ok("run", "m.onnx", "--custom-op", moved, "--input", "x=@x.npy", "--expect", "y0=@y.npy")
    moved.unlink()
    missing = command.heddle("run", "m.so", "--input", "x=@x.npy")
    assert missing.status != OK and f"its op is not in '{moved}'" in missing.errors


PROGRAM = """
#include <heddle/custom_op.h>
#include <stdio.h>
#include <stdlib.h>
extern const heddle_custom_op_t *const heddle_custom_ops[];
static void check(heddle_status_t *status) {
  if (!status)
    return;
  fprintf(stderr, "%s\\n", heddle_status_message(status));
  exit(heddle_status_code(status));
}
int main(int count, char **words) {
  float x[6] = {0, 1, 2, 3, 4, 5}, y[6] = {0};
  heddle_tensor_t input = {.data = x, .bytes = sizeof x, .dtype = 1, .rank = 2, .dims = {2, 3}};
  heddle_tensor_t output = {.data = y, .bytes = sizeof y, .dtype = 1, .rank = 2, .dims = {2, 3}};
  heddle_module_t *module;
  heddle_session_t *session;
  if (count > 2)
    check(heddle_custom_op_register(heddle_custom_ops[0]));
  check(heddle_module_load(words[1], &module));
  check(heddle_session_create(module, NULL, &session));
  check(heddle_session_run(session, &input, 1, &output, 1));
  printf("%g\\n", y[5]);
  heddle_session_destroy(session);
  heddle_module_destroy(module);
}
"""


def test_a_program_in_c_that_has_the_op(library, tmp_path):
    moved = tmp_path / "libgone.so"
    moved.write_bytes(library.read_bytes())
    onnx.save(model_of("Scale", (2, 3), factor=4.0), tmp_path / "m.onnx")
    ok("compile", tmp_path / "m.onnx", "--custom-op", moved, "-o", tmp_path / "m.so")
    moved.unlink()
    (tmp_path / "main.c").write_text(PROGRAM)
    libraries = ROOT / "build/release/lib"
    subprocess.run(["cc", "-std=c11", f"-I{ROOT / 'include'}", "main.c",
                    ROOT / "test/onnx/custom_op.c", f"-L{libraries}", "-lheddle_runtime",
                    f"-Wl,-rpath,{libraries}", "-o", "program"], cwd=tmp_path, check=True)
    alone = subprocess.run(["./program", "m.so"], cwd=tmp_path, text=True, capture_output=True,
                           check=False)
    assert alone.returncode != 0 and f"its op is not in '{moved}'" in alone.stderr
    found = subprocess.run(["./program", "m.so", "registered"], cwd=tmp_path, text=True,
                           capture_output=True, check=True)
    assert found.stdout == "20\n"


def test_an_op_in_python():
    @heddle.custom_op("org.python", "Powers", shape=lambda x, exponents: [
        heddle.TensorType(x.dtype, (len(exponents), *x.shape)),
        heddle.TensorType(np.int64, (1,))])
    def powers(x, exponents):
        return np.stack([x ** np.float32(e) for e in exponents]), np.array([x.size])

    model = model_of("Powers", ("n", "m"), 2, domain="org.python", exponents=[1, 2, 3])
    for shape in ((2, 3), (0, 4), (5, 1)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        (y, count), module = run(model, x)
        np.testing.assert_array_equal(y, np.stack([x, x ** np.float32(2), x ** np.float32(3)]))
        assert count.tolist() == [x.size]
        assert module.outputs[0].shape == [3, "n", "m"]


def test_an_exception_in_python():
    heddle.custom_op("org.python", "Wrong", shape=lambda x: x)(lambda x: x[:1])
    with pytest.raises(heddle.Error, match="the compute function of its op returns 1") as failed:
        run(model_of("Wrong", domain="org.python"))
    assert isinstance(failed.value.__cause__, ValueError)
    assert "its shape function float32[2, 3]" in str(failed.value.__cause__)
    heddle.custom_op("org.python", "Shapeless", shape=lambda x: 1 // 0)(lambda x: x)
    with pytest.raises(heddle.RefusedError, match="node 'it'") as failed:
        run(model_of("Shapeless", domain="org.python"))
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    with pytest.raises(heddle.UsageError) as failed:  # another one, which no op has caused
        heddle.load("none.so")
    assert failed.value.__cause__ is None


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_failure_passes_through(kind):
    model = model_of("Stops", domain="org.python")
    heddle.custom_op("org.python", "Stops", shape=lambda x: x)(
        lambda x: (_ for _ in ()).throw(kind("stop")) if x[0, 0] else x)
    module = heddle.compile(model, cache=False)
    session = heddle.Session(module, threads=2)
    for _ in range(2):
        with pytest.raises(kind, match="stop"):
            session.run(None, {"x": X + 1})
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], X)
    with pytest.raises(kind, match="stop"):
        heddle.compile(model, cache=False, progress=lambda *_: (_ for _ in ()).throw(kind("stop")))


def test_a_signal_that_comes_while_c_runs():
    """It is seen at the op's first line, which is no place for it to be lost."""
    heddle.custom_op("org.python", "Late", shape=lambda x: x)(lambda x: x)
    before = [make_node("MatMul", "x x", "v")]
    module = heddle.compile(model_of("Late", ("n", "n"), 1, before, "org.python"), cache=False)
    session, x = heddle.Session(module, threads=1), np.zeros((1500, 1500), np.float32)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            session.run(None, {"x": x})
    finally:
        signal.signal(signal.SIGALRM, previous)


def test_texts_and_files_that_are_no_utf_8(tmp_path):
    """Python has them as it has file names."""
    heddle.custom_op("org.python", "Told", shape=lambda x, text: x)(
        lambda x, text: x + len(text) if text == "a\udcffb" else x)
    path = tmp_path / "m\udcff.onnx"
    data = model_of("Told", domain="org.python", text="a_b").SerializeToString()
    path.write_bytes(data.replace(b"a_b", b"a\xffb"))
    for output in (None, tmp_path / "m\udcff.so"):
        module = heddle.compile(path, cache=tmp_path / "cache", output=output)
        np.testing.assert_array_equal(module.run(None, {"x": X})[0], X + 3)
        assert module.info["model"] == "m\udcff"
        assert module.compiled.plan and module.compiled.report["seconds"]


def test_an_op_may_keep_its_inputs():
    kept = []
    heddle.custom_op("org.python", "Keeps", shape=lambda x: x)(lambda x: kept.append(x) or x)
    before = [make_node("Exp", "x", "v")]
    module = heddle.compile(model_of("Keeps", ("n", 4), 1, before, "org.python"), cache=False)
    session = heddle.Session(module, threads=1)
    for i in range(3):
        session.run(None, {"x": np.full((1000, 4), i, np.float32)})
    del session, module
    for i, array in enumerate(kept):
        np.testing.assert_allclose(array, np.full((1000, 4), np.exp(np.float32(i))), rtol=1e-6)


def test_an_artefact_that_leaves_python(tmp_path):
    heddle.custom_op("org.python", "Same", shape=lambda x: x)(lambda x: x)
    heddle.compile(model_of("Same", domain="org.python"), output=tmp_path / "m.so", load=False)
    script = "import heddle, numpy as np, sys\n" \
             "heddle.load(sys.argv[1]).run(None, {'x': np.zeros((2, 3), np.float32)})"
    found = subprocess.run([sys.executable, "-c", script, tmp_path / "m.so"], text=True,
                           capture_output=True, check=False)
    assert found.returncode != 0
    assert "its op is not registered in this process" in found.stderr
