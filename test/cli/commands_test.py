"""Each command on a small model with a dynamic batch: numbers, files and JSON."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node
from onnx import helper

from command import DIFFERS, dense, fails, heddle, json_of, needs_heddle, ok, save

pytestmark = needs_heddle
needs_onnxruntime = pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None,
                                       reason="onnxruntime is not installed")
X = np.float32([[1, 2, 3], [-4, 5, 0.5]])


def test_stages_are_printed_by_name(model, tmp_path):
    stages = ["import", "simplify", "partition", "plan", "lower", "emit"]
    marks = ["graph.matmul", "graph.matmul", "graph.group", "card = ", "func.func", ".text"]
    for _ in range(2):  # the second time the artefact is in the cache
        done = ok("compile", model, "-o", tmp_path / "m.so", "--target", "x86-64-v3", "--cache",
                  tmp_path / "cache", "--print-after", ",".join(stages))
        parts = dict(part.split("\n", 1) for part in done.errors.split("// after ")[1:])
        assert list(parts) == stages[:2] + [f"{stage} for x86-64-v3" for stage in stages[2:]]
        assert all(mark in text for mark, text in zip(marks, parts.values()))
    fails("compile", model, "-o", tmp_path / "m.so", "--print-after", "plan,link",
          says="there is no stage 'link'; stages: import, simplify")


def test_run_prints_and_writes(model, tmp_path):
    np.save(tmp_path / "x.npy", X)
    done = ok("run", model, "--input", f"x=@{tmp_path}/x.npy", "--output", f"y=@{tmp_path}/y.npy")
    assert "output" in done.output and "2x4" in done.output
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), dense(X), 1e-5)
    assert not list(tmp_path.glob("*part*"))


def test_run_takes_literals_and_fortran_order(model, tmp_path):
    done = heddle("run", model, "--json", "--input", "x=2x3xf32=1,2,3,-4,5,0.5")
    assert done.json["outputs"][0]["first"] == pytest.approx(list(dense(X).ravel()))
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    same = heddle("run", model, "--json", "--input", f"x=@{tmp_path}/x.npy")
    assert same.json["outputs"] == done.json["outputs"]


def test_random_feeds_are_the_same_at_every_run(model):
    one, two = (json_of("run", model, "--dim", "batch=5") for _ in range(2))
    assert one == two and one["inputs"][0]["shape"] == [5, 3]
    other = json_of("run", model, "--shape", "x=5x3", "--seed", "1")
    assert other["inputs"][0]["first"] != one["inputs"][0]["first"]


def test_a_size_that_nothing_gives_is_1_and_said(model):
    done = heddle("run", model, "--json")
    assert done.json["inputs"][0]["shape"] == [1, 3]
    assert "size 0 ('batch') is taken as 1" in done.errors


def test_run_expects(model, tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", dense(X))
    feeds = ["--input", f"x=@{tmp_path}/x.npy", "--expect", f"y=@{tmp_path}/y.npy", "--json"]
    assert ok("run", model, *feeds).json["agrees"]
    np.save(tmp_path / "y.npy", dense(X) + np.float32([[0, 0, 0, 0], [0, 0, 0.5, 0]]))
    done = fails("run", model, *feeds, status=DIFFERS,
                 says="output 'y' 1 element differs, the worst at 6")
    assert not done.json["agrees"]
    ok("run", model, *feeds, "--atol", "1")


def test_run_reads_onnx_test_data(model, tmp_path):
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    save(onnx.numpy_helper.from_array(X, "x"), folder / "input_0.pb")
    save(helper.make_tensor("y", 1, [2, 4], dense(X).ravel()), folder / "output_0.pb")
    assert json_of("run", model, "--data", tmp_path)["agrees"]


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int16", "int32",
                                   "int64", "uint32", "uint64", "bool"])
def test_every_dtype_of_numpy_passes_through_files(tmp_path, dtype):
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    path = save(make_model([make_node("Reshape", "x s", "y")], {"x": ([2, 3], number)},
                           {"y": ([3, 2], number)}, [helper.make_tensor("s", 7, [2], [3, 2])]),
                tmp_path / "m.onnx")
    x = np.array([[0, 1, 2], [100, 5, 6]]).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    ok("run", path, "--input", f"x=@{tmp_path}/x.npy", "--output", f"y=@{tmp_path}/y.npy")
    y = np.load(tmp_path / "y.npy")
    assert y.dtype == x.dtype and (y == x.reshape(3, 2)).all()


def test_compile_writes_an_artefact_that_runs(model, tmp_path):
    made = json_of("compile", model, "-o", tmp_path / "m.so", "--plan-out", tmp_path / "p.json")
    assert [Path(file["path"]).name for file in made["files"]] == ["m.so", "m.h", "p.json"]
    assert all(file["bytes"] > 0 for file in made["files"])
    assert made["seconds"] > 0 and made["report"]["groups"] >= 1
    json.loads((tmp_path / "p.json").read_text())
    assert "include" in (tmp_path / "m.h").read_text()
    np.save(tmp_path / "y.npy", dense(X))
    for batch in [X, X[:1], np.concatenate([X] * 5)]:
        np.save(tmp_path / "x.npy", batch)
        np.save(tmp_path / "y.npy", dense(batch))
        ok("run", tmp_path / "m.so", "--input", f"x=@{tmp_path}/x.npy", "--expect",
           f"y=@{tmp_path}/y.npy")


@pytest.mark.parametrize("suffix", ["o", "h", "ll", "s", "json", "mlir", "loops"])
def test_compile_emits_by_ending(model, tmp_path, suffix):
    ok("compile", model, "-o", tmp_path / f"m.{suffix}")
    assert (tmp_path / f"m.{suffix}").stat().st_size > 0


def test_compile_with_a_fixed_shape(model, tmp_path):
    ok("compile", model, "-o", tmp_path / "m.so", "--dim", "batch=2")
    assert json_of("run", tmp_path / "m.so")["outputs"][0]["shape"] == [2, 4]
    fails("run", tmp_path / "m.so", "--input", "x=3x3xf32=0", says="'x'")


def test_an_artefact_takes_no_options_of_the_compiler(tmp_path):
    (tmp_path / "m.so").write_bytes(b"\177ELF")
    fails("run", tmp_path / "m.so", "--target", "haswell",
          says="is an artefact, which is compiled already")


def test_bench(model):
    times = json_of("bench", model, "--dim", "batch=8", "--iters", "20", "--threads", "1")
    assert times["runs"] == 20 and times["threads"] == 1 and times["arena_bytes"] >= 0
    assert 0 < times["min_ms"] <= times["median_ms"] <= times["p90_ms"] <= times["p99_ms"]
    assert "ratio" not in times and "gflops" in times


@needs_onnxruntime
def test_bench_beside_onnxruntime(model):
    times = json_of("bench", model, "--vs", "onnxruntime", "--time", "0.1")
    assert times["onnxruntime"]["runs"] == times["runs"] >= 10
    assert times["ratio"] == pytest.approx(times["onnxruntime"]["median_ms"] / times["median_ms"])


@pytest.fixture(params=["no Python", "no package"])
def without_onnxruntime(request, tmp_path, monkeypatch):
    """The message where the peer is missing."""
    python = tmp_path / "python"
    if request.param == "no package":
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
        python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    return (f"cannot run '{python}'" if request.param == "no Python"
            else "-m pip install onnxruntime' installs it; HEDDLE_PYTHON names another Python")


def test_bench_without_onnxruntime_says_how_to_get_it(model, without_onnxruntime):
    done = fails("bench", model, "--vs", "onnxruntime", says=without_onnxruntime)
    assert "Traceback" not in done.errors


def test_compare_without_onnxruntime(model, without_onnxruntime):
    sizes = "--dim", "batch=10000"  # more bytes than a pipe holds
    done = ok("compare", model, *sizes, "--per-node", "--json")
    assert [row["against"] for row in done.json["outputs"]] == ["reference"]
    assert without_onnxruntime in done.errors and "Traceback" not in done.errors
    assert "no nodes are compared: that takes both the reference and ONNX Runtime" in done.errors
    done = fails("compare", model, *sizes, "--against", "onnxruntime", says=without_onnxruntime)
    assert done.output == ""
    assert "Traceback" not in done.errors


@needs_onnxruntime
def test_compare(model):
    result = json_of("compare", model, "--dim", "batch=3", "--per-node")
    assert result["agrees"] and result["first_parting"] is None
    pairs = [(row["engine"], row["against"]) for row in result["outputs"]]
    assert pairs == [("heddle", "reference"), ("heddle", "onnxruntime"),
                     ("onnxruntime", "reference")]
    assert [row["node"] for row in result["nodes"]] == ["product", "positive"]


def test_compare_against_the_reference_alone(model):
    assert len(json_of("compare", model, "--against", "reference")["outputs"]) == 1


@needs_onnxruntime
def test_compare_names_the_node_that_parts(tmp_path):
    """A sum of 257 products parts by its rounding where no difference is allowed."""
    weights = np.random.default_rng(0).standard_normal((257, 64)).astype(np.float32)
    path = save(make_model([make_node("Neg", "x", "n", "exact"),
                            make_node("MatMul", "n w", "y", "product")],
                           {"x": ["batch", 257]}, {"y": ["batch", 64]}, {"w": weights}),
                tmp_path / "m.onnx")
    done = fails("compare", path, "--rtol", "0", "--atol", "0", "--dim", "batch=2", "--json",
                 status=DIFFERS)
    result = done.json
    assert not result["agrees"] and result["first_parting"]["node"] == "product"
    assert result["first_parting"]["wrong_elements"] > 0


def test_plan(model, tmp_path):
    assert json_of("plan", model)["groups"]
    ok("plan", model)
    ok("plan", model, "-o", tmp_path / "p.json")
    assert "fits" in ok("plan", "--check", tmp_path / "p.json", model).output
    (tmp_path / "p.json").write_text("{")
    fails("plan", "--check", tmp_path / "p.json", model, says="p.json:1: error: this is not JSON")


@pytest.mark.parametrize("edit", [
    lambda plan: plan.update(groups=[]),
    lambda plan: plan.update(groups=[], fusion={"product": "apart"}),
    lambda plan: plan.update(groups=plan["groups"][::-1]),
    lambda plan: [group.update(order=7 + 3 * group["order"]) for group in plan["groups"]],
    lambda plan: [group.update(ops=group["ops"][::-1]) for group in plan["groups"]],
    lambda plan: [group.update(knobs={"m": group["knobs"]["m"]}) for group in plan["groups"]],
    lambda plan: [group.pop(field) for group in plan["groups"] for field in
                  ("ops", "key", "card_hash", "knobs", "order")],
    lambda plan: [group.update(device=0, card_hash="", region=3) for group in plan["groups"]],
])
def test_a_plan_that_is_carried_out_fits(model, tmp_path, edit):
    plan = json_of("plan", model)
    edit(plan)
    (tmp_path / "p.json").write_text(json.dumps(plan))
    ok("compile", model, "--plan", tmp_path / "p.json", "-o", tmp_path / "made.json")
    done = ok("plan", model, "--check", tmp_path / "p.json", "--json")
    assert done.json["fits"], done.output + done.errors


@pytest.mark.parametrize("name", ["INT4", "UINT4", "INT2", "UINT2"])
def test_files_of_elements_of_which_a_byte_holds_several(tmp_path, name):
    number = getattr(onnx.TensorProto, name, None)
    if number is None:
        pytest.skip(f"this onnx has no {name}")
    model = save(make_model([make_node("Identity", "x", "y")], {"x": ([5], number)},
                            {"y": ([5], number)}, opset=25),
                 tmp_path / "m.onnx")
    numbers = np.array([1, 0, 1, -2 if name[0] == "I" else 3, 0], "i1" if name[0] == "I" else "u1")
    np.save(tmp_path / "x.npy", numbers)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "input_0.pb").write_bytes(
        helper.make_tensor("x", number, [5], numbers.tolist()).SerializeToString())
    for feed in (["--input", f"x=@{tmp_path}/x.npy"], ["--data", tmp_path / "data"]):
        ok("run", model, "--no-cache", *feed, "--output", f"y=@{tmp_path}/y.npy")
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), numbers)
