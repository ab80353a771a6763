"""Artefacts for several CPUs: each form gives the oracle's numbers, and the right one runs.

Forms that this machine cannot run are skipped; HEDDLE_CPU chooses among the others.
"""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node
from onnx import TensorProto, numpy_helper

from bench.models import catalogue
from command import REFUSED, fails, heddle, json_of, needs_heddle, ok, save
from models_test import quantisation_steps, worst_difference

ROOT = Path(__file__).resolve().parents[2]
ALL = "x86-64-v2+v3+v4+vnni"
FORMS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-vnni")
FEATURES = {"x86-64-v2": "sse4_2", "x86-64-v3": "avx2", "x86-64-v4": "avx512bw",
            "x86-64-vnni": "avx512_vnni"}
pytestmark = [needs_heddle,
              pytest.mark.skipif(os.uname().machine != "x86_64",
                                 reason="this machine is no x86-64")]


def runnable(form):
    return FEATURES[form] in Path("/proc/cpuinfo").read_text(encoding="utf-8")


def run(form, *arguments):
    """`heddle run` with this form of the artefact."""
    os.environ["HEDDLE_CPU"] = form
    try:
        return heddle("run", *arguments, "--json")
    finally:
        del os.environ["HEDDLE_CPU"]


def small_model():
    """A float product with a bias, softmax, and a product of u8 and i8."""
    random = np.random.default_rng(3)
    constants = {"w": random.normal(size=(40, 24)).astype(np.float32),
                 "bias": random.normal(size=24).astype(np.float32),
                 "q": random.integers(-128, 128, (33, 17)).astype(np.int8)}
    nodes = [make_node("MatMul", "x w", "m"), make_node("Add", "m bias", "b"),
             make_node("Softmax", "b", "y"), make_node("MatMulInteger", "u q", "z")]
    return make_model(nodes, {"x": ["n", 40], "u": (["n", 33], TensorProto.UINT8)},
                      {"y": ["n", 24], "z": (["n", 17], TensorProto.INT32)}, constants)


@pytest.fixture
def model(tmp_path):
    return save(small_model(), tmp_path / "m.onnx")


@pytest.fixture(scope="module")
def artefact(tmp_path_factory):
    """(model, artefact, report, feeds, expected) of the small model for all four."""
    import onnxruntime

    folder = tmp_path_factory.mktemp("variants")
    model = save(small_model(), folder / "small.onnx")
    done = json_of("compile", model, "--target", ALL, "-o", folder / "small.so")
    random = np.random.default_rng(5)
    feeds = {"x": random.normal(size=(7, 40)).astype(np.float32),
             "u": random.integers(0, 256, (7, 33)).astype(np.uint8)}
    for name, array in feeds.items():
        np.save(folder / f"{name}.npy", array)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    np.save(folder / "y.npy", session.run(["y"], feeds)[0])
    # Sums of pairs of ONNX Runtime's saturate at i16 on CPUs without VNNI; ours must not.
    q, = (numpy_helper.to_array(each) for each in small_model().graph.initializer
          if each.name == "q")
    np.save(folder / "z.npy", feeds["u"].astype(np.int32) @ q.astype(np.int32))
    return folder, done["report"]


def arguments_of(folder):
    feeds = [f"--input={name}=@{folder}/{name}.npy" for name in "xu"]
    expected = [f"--expect={name}=@{folder}/{name}.npy" for name in "yz"]
    return [folder / "small.so", *feeds, *expected]


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_right_numbers(artefact, form):
    if not runnable(form):
        pytest.skip(f"this CPU cannot run {form}")
    done = run(form, *arguments_of(artefact[0]))
    assert done.status == 0, done.errors
    assert done.json["target"] == form and done.json["agrees"]


def test_the_form_that_needs_most_runs_unless_told_otherwise(artefact):
    best = [form for form in FORMS if runnable(form)][-1]
    assert json_of("run", *arguments_of(artefact[0]))["target"] == best


def test_the_report_tells_of_each_form(artefact):
    forms = artefact[1]["variants"]
    assert [form["target"] for form in forms] == list(reversed(FORMS))
    assert artefact[1]["target"] == "x86-64-vnni"
    # Panels of different widths are kept beside each other, equal data once.
    assert artefact[1]["weights_bytes"] < sum(form["weights_bytes"] for form in forms) + 64 * 16
    assert all(form["code_bytes"] > 0 for form in forms)


def test_a_form_that_is_not_there_is_refused(artefact):
    done = run("x86-64", *arguments_of(artefact[0]))
    assert done.status == 2
    assert ("HEDDLE_CPU is 'x86-64', but '" in done.errors
            and "has code for: x86-64-vnni, x86-64-v4, x86-64-v3, x86-64-v2" in done.errors)


def test_a_machine_that_can_run_no_form_is_told_what_it_lacks(model, tmp_path):
    target = "bdver4+clearwaterforest"
    ok("compile", model, "--target", target, "-o", tmp_path / "m.so")
    fails("run", tmp_path / "m.so", status=REFUSED,
          says=["has code for 2 machines, of which this is none: for ",
                "'clearwaterforest' it lacks ", "avxvnniint8", "'bdver4' it lacks ", "xop"])


def test_one_of_them_is_loaded_without_a_file(model):
    assert json_of("run", model, "--target", "x86-64+x86-64-v2")["target"] == "x86-64-v2"
    assert run("x86-64", model, "--target", "x86-64+x86-64-v2").json["target"] == "x86-64"


def test_what_is_of_one_cpu_is_not_written_for_several(model, tmp_path):
    for kind in ("ll", "asm", "plan", "graph", "loops"):
        fails("compile", model, "--target", "x86-64-v2+v3", "--emit", kind, "-o",
              tmp_path / "m.txt", says=f"'{kind}' is of one CPU, but the model is compiled for 2")


@pytest.mark.parametrize("target, problem", [
    ("x86-64-v2+v9", "unknown target 'v9'"),
    ("x86-64-v5", "did you mean 'x86-64-v"),
    ("x86-64-v5", "known: host, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, x86-64-vnni, "
                  "x86-64-bf16, x86-64-amx, aarch64, aarch64-dotprod, aarch64-i8mm, aarch64-bf16, "
                  "c, cuda, sm_80, sm_86, sm_89, sm_90, and LLVM's names"),
    ("x86-64-v2+", "there is no name on one side of a '+'"),
    ("x86-64-v2+v3+x86-64-v3", "'x86-64-v3' and 'x86-64-v3' need the same of a CPU"),
    ("x86-64-v2+aarch64", "'x86-64-v2' and 'aarch64' are of different architectures"),
])
def test_lists_that_are_no_targets_are_refused(model, tmp_path, target, problem):
    fails("compile", model, "--target", target, "-o", tmp_path / "m.so", says=problem)


def test_help_lists_the_targets(model, tmp_path):
    done = heddle("compile", model, "--target", "help", "-o", tmp_path / "m.so")
    for name in ("host", "x86-64-vnni", "cascadelake", "aarch64-i8mm", "neoverse-n1"):
        assert f" {name}" in done.errors


def test_bytes_are_reproducible(model, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        ok("compile", model, "--target", ALL, "-o", tmp_path / name / "m.so")
    assert (tmp_path / "a" / "m.so").read_bytes() == (tmp_path / "b" / "m.so").read_bytes()


MAIN = """
#include "m.h"
#include <stdio.h>
int main(void) {
  heddle_module_t *module;
  heddle_status_t *status = heddle_module_from_executable(&m_executable, NULL, NULL, &module);
  puts(status ? heddle_status_message(status) : heddle_module_info(module).target);
  heddle_module_destroy(module);
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_an_object_is_embedded_as_one_model(model, tmp_path):
    for name in ("m.o", "m.h"):
        ok("compile", model, "--target", ALL, "-o", tmp_path / name)
    (tmp_path / "main.c").write_text(MAIN, encoding="utf-8")
    library = ROOT / "build" / "release" / "lib" / "libheddle_runtime.a"
    subprocess.run(["gcc", "main.c", "m.o", str(library), f"-I{ROOT / 'include'}", "-lm", "-ldl",
                    "-lpthread", "-o", "main"], cwd=tmp_path, check=True)
    symbols = subprocess.run(["nm", "m.o"], cwd=tmp_path, capture_output=True, text=True,
                             check=True).stdout
    seen = [line.split()[-1] for line in symbols.splitlines() if line.split()[-2] in "DRTV"]
    assert seen == ["m_executable", "m_weights"]  # of which the second is hidden
    for form in filter(runnable, FORMS):
        done = subprocess.run(["./main"], cwd=tmp_path, env={"HEDDLE_CPU": form},
                              capture_output=True, text=True, check=True)
        assert done.stdout.strip() == form


MODELS = ["kws_fp32", "kws_qdq", "silero_vad", "squeezenet", "ultraface"]


@pytest.mark.parametrize("name", MODELS)
def test_models_agree_in_each_form(tmp_path, name):
    import onnxruntime

    model = catalogue.find(name)
    try:
        path = model.path()
    except catalogue.Missing as reason:
        pytest.skip(str(reason))
    done = ok("compile", path, "--target", ALL, "--threads", "1", "-o", tmp_path / "m.so")
    feeds = model.make_feeds()[0]
    inputs = []
    for i, (key, array) in enumerate(feeds.items()):
        np.save(tmp_path / f"in{i}.npy", array)
        inputs.append(f"--input={key}=@{tmp_path}/in{i}.npy")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    expected = {output.name: session.run([output.name], feeds)[0]
                for output in session.get_outputs()}
    steps = quantisation_steps(path) if model.quantised else {}
    outputs = [f"--output={output}=@{tmp_path}/out{i}.npy" for i, output in enumerate(expected)]
    for form in filter(runnable, FORMS):
        done = run(form, tmp_path / "m.so", *inputs, *outputs, "--threads", "1")
        assert done.status == 0, f"{form}: {done.errors}"
        assert done.json["target"] == form
        for i, (output, wanted) in enumerate(expected.items()):
            found = np.load(tmp_path / f"out{i}.npy")
            assert worst_difference(found, wanted, steps.get(output)) <= 1, f"{form}: {output}"
