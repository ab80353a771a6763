"""Precisions by a budget of error: `heddle compile --tolerance`, and heddle.choose_precision."""

import json
import os
import signal
import subprocess
import sys

import heddle as package
import numpy as np
import onnx.parser
import pytest
from command import OK, USAGE, find_heddle, heddle, save
from google.protobuf.message import EncodeError
from heddle.precision.choices import Groups, Nodes
from heddle.precision.search import Search, tried
from heddle.quantize.measure import OutputError

pytestmark = pytest.mark.usefixtures("compiler")

BRANCHES = 10
MODEL = """<ir_version: 10, opset_import: ["" : 22]>
m (float[n, 64] x) => (float[n, 32] y) {{
{branches}
    y = Sum({names})
}}"""
EMULATED = {"math": "bf16-emulated"}


def make_model(path, hurts=()):
    """A sum of products, of which those that hurt have factors 32 times as large, twice: sums of
    squares of errors are 1024 times as large."""
    lines = [f"    a{number} = MatMul(x, w{number})\n    b{number} = MatMul(a{number}, v{number})"
             for number in range(BRANCHES)]
    names = ", ".join(f"b{number}" for number in range(BRANCHES))
    model = onnx.parser.parse_model(MODEL.format(branches="\n".join(lines), names=names))
    numbers = np.random.default_rng(0)
    for number in range(BRANCHES):
        for name, shape in (("w", (64, 48)), ("v", (48, 32))):
            weight = numbers.normal(size=shape) / 8 * (32 if number in hurts else 1)
            model.graph.initializer.append(
                onnx.numpy_helper.from_array(weight.astype(np.float32), f"{name}{number}"))
    return save(model, path)


def samples(count=20, seed=1):
    return np.random.default_rng(seed).normal(size=(count, 64)).astype(np.float32)


def precisions(plan):
    return {group["name"]: group.get("precision", "f32") for group in plan["groups"]
            if group["ops"] != ["y"]}


def error_of(model, plan, x):
    exact = package.compile(model)(x)[0]
    found = package.compile(model, plan=plan, **EMULATED)(x)[0]
    return np.abs(found - exact).max() / np.abs(exact).max()


def choose(model, tolerance, feeds=None, **options):
    reports = []
    plan = package.choose_precision(model, {"x": samples()} if feeds is None else feeds,
                                    tolerance=tolerance, report=reports.append,
                                    **{**EMULATED, **options})
    return plan, reports[0].facts


def test_all_fit_in_a_large_budget(tmp_path):
    model = make_model(tmp_path / "m.onnx")
    plan, facts = choose(model, 0.03)
    assert len(facts["groups"]) == 2 * BRANCHES
    assert set(precisions(plan).values()) == {"bf16"}
    assert 0 < facts["error"] <= 0.03 and facts["compiled"] < 6
    assert error_of(model, plan, samples(64, seed=2)) < 0.03


def test_groups_that_hurt_stay_in_f32(tmp_path):
    """One branch has all of the errors that count: an error of all beside it is a thousandth."""
    model = make_model(tmp_path / "m.onnx", hurts=[2])
    plan, facts = choose(model, 5e-5)
    chosen = precisions(plan)
    assert {name for name, precision in chosen.items() if precision == "f32"} == {
        "MatMul_a2", "MatMul_b2"}
    assert error_of(model, plan, samples(64, seed=2)) < 5e-5
    told = {group["name"]: group for group in facts["groups"]}
    assert told["MatMul_a2"]["error"] > 20 * told["MatMul_a4"]["error"] > 0
    # Halves are measured, not each group.
    assert facts["compiled"] < 2 * BRANCHES


def test_a_budget_without_room_leaves_all(tmp_path):
    model = make_model(tmp_path / "m.onnx")
    plan, facts = choose(model, 1e-7)
    assert set(precisions(plan).values()) == {"f32"}
    assert facts["error"] == 0 and facts["saved"] == 0
    assert error_of(model, plan, samples()) < 1e-7


def test_each_group_is_measured_where_that_is_asked_for(tmp_path):
    model = make_model(tmp_path / "m.onnx", hurts=[2])
    plan, facts = choose(model, 0.03, each=True)
    assert all(group["groups"] == 1 for group in facts["groups"])
    measured = {group["name"]: group["measured"] for group in plan["groups"]
                if "measured" in group}
    assert len(measured) == 2 * BRANCHES
    assert max(measured, key=lambda name: measured[name]["error"]) in ("MatMul_a2", "MatMul_b2")


def test_samples_that_were_not_searched_on_confirm_it(tmp_path):
    """Samples that are searched on have few bits, which rounding leaves; held-out ones all."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 22]>
        m (float[n, 64] x) => (float[n, 32] y) { y = MatMul(x, w) }""")
    weight = np.random.default_rng(0).integers(-8, 8, (64, 32)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    path = save(model, tmp_path / "m.onnx")
    x = samples(10)
    x[[each for each in range(10) if each % 5 != 4]] = 1.0
    plan, facts = choose(path, 1e-4, {"x": x})
    assert not any("precision" in group for group in plan["groups"])
    assert facts["data"] == {"random": False, "searched": 8, "held_out": 2}
    x[:] = 1.0
    plan, facts = choose(path, 1e-4, {"x": x})
    assert [group.get("precision") for group in plan["groups"]] == ["bf16"]


@pytest.mark.parametrize("f32, chosen, integers, tolerance, best", [
    (1.0, 2.0, 3.0, 0.1, "f32"), (3.0, 2.0, 1.0, 0.1, "int8"), (3.0, 2.0, 1.0, 1e-7, "f32"),
    (0.99, 1.0, 0.99, 1e-7, "f32")])
def test_whole_models_decide(tmp_path, monkeypatch, f32, chosen, integers, tolerance, best):
    """Sums of single gains are not the gain of a run."""
    monkeypatch.setattr(Search, "_time_runs", lambda *_: {"f32": f32, "chosen": chosen,
                                                          "int8": integers})
    model = make_model(tmp_path / "m.onnx")
    np.savez(tmp_path / "d.npz", x=samples(320))
    plan, facts = choose(model, tolerance, tmp_path / "d.npz", math="int8", batch=32)
    assert len(plan["integers"]) == (2 * BRANCHES if best == "int8" else 0)
    assert {group["precision"] for group in facts["groups"]} == {best}
    assert facts["error"] <= tolerance


@pytest.mark.parametrize("math", ["bf16-emulated", "int8"])
def test_nothing_is_timed_where_estimates_say_what_is_faster(tmp_path, monkeypatch, math):
    def refuse(*_):
        raise AssertionError("it is timed")

    for where in (Groups, Nodes):
        monkeypatch.setattr(where, "time", refuse)
    monkeypatch.setattr(Search, "_time_runs", refuse)
    model = make_model(tmp_path / "m.onnx", hurts=[2])
    np.savez(tmp_path / "d.npz", x=samples(320))
    reports = []
    plan = package.choose_precision(model, tmp_path / "d.npz", tolerance=0.1, math=math, batch=32,
                                    untimed=True, report=reports.append)
    facts = reports[0].facts
    assert facts["is_untimed"] and facts["run_seconds"] is None
    assert {group["precision"] for group in facts["groups"]} == {facts["kind"]}
    assert 0 < facts["saved"] < facts["seconds"]
    assert "of a run would be saved by an estimate" in str(reports[0])
    package.compile(model, plan=plan, math=math)


def test_estimates_leave_out_what_hurts(tmp_path):
    model = make_model(tmp_path / "m.onnx", hurts=[2])
    np.savez(tmp_path / "d.npz", x=samples())
    done = heddle("compile", model, "--tolerance", "5e-5", "--math", "bf16-emulated", "--untimed",
                  "--data", tmp_path / "d.npz", "-o", tmp_path / "m.so", "--json")
    assert done.status == OK, done.errors
    facts = done.json["precision"]
    assert {group["name"] for group in facts["groups"] if group["precision"] == "f32"} == {
        "MatMul_a2", "MatMul_b2"}


def test_what_is_tried_is_kept_nowhere(tmp_path):
    model = make_model(tmp_path / "m.onnx", hurts=[2])
    choose(model, 5e-5, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_a_model_that_is_larger_than_bytes_can_be_is_tried_from_its_file():
    class Large:
        def SerializeToString(self):
            raise EncodeError("Failed to serialize proto")

    assert tried("m.onnx", Large(), {"math": "bf16", "cache": "mine"}, "folder") == {
        "model": "m.onnx", "math": "bf16", "cache": False}


def test_the_command_compiles_what_was_chosen(tmp_path):
    model = make_model(tmp_path / "m.onnx", hurts=[2])
    np.savez(tmp_path / "d.npz", x=samples(), labels=np.arange(20))
    arguments = ["compile", model, "--tolerance", "5e-5", "--data", tmp_path / "d.npz", "--math",
                 "bf16-emulated", "-o", tmp_path / "m.so", "--plan-out", tmp_path / "m.plan"]
    done = heddle(*arguments, "--json")
    assert done.status == OK, done.errors
    facts = done.json["precision"]
    assert facts["data"] == {"random": False, "searched": 8, "held_out": 4}
    plan = json.loads((tmp_path / "m.plan").read_text())
    x = samples(64, seed=2)
    found = package.load(tmp_path / "m.so")(x)[0]
    np.testing.assert_array_equal(found, package.compile(model, plan=plan, **EMULATED)(x)[0])
    done = heddle("explain", model, "--math", "bf16-emulated", "--plan", tmp_path / "m.plan",
                  "--group", "MatMul_a2")
    assert "precision f32: bf16 would save " in done.output
    assert ", but move outputs by " in done.output
    done = heddle(*arguments)
    assert f"{2 * BRANCHES - 2} of {2 * BRANCHES} products in bf16" in done.output
    assert "allowed is 5e-05" in done.errors  # a line for each compilation


@pytest.mark.parametrize("sizes", [["--dim", "n=4"], ["--dim", "x.0=4"], ["--shape", "x=4x64"]])
@pytest.mark.parametrize("has_data", [True, False])
def test_samples_have_the_sizes_that_are_fixed(tmp_path, sizes, has_data):
    model = make_model(tmp_path / "m.onnx")
    np.savez(tmp_path / "d.npz", x=samples())
    data = ["--data", tmp_path / "d.npz"] if has_data else []
    done = heddle("compile", model, "--tolerance", "0.1", "--math", "int8", *sizes, *data, "-o",
                  tmp_path / "m.so")
    assert done.status == OK, done.errors
    assert package.load(tmp_path / "m.so")(samples(4)).shape == (4, 32)


def test_without_data_the_report_says_so(tmp_path):
    model = make_model(tmp_path / "m.onnx")
    done = heddle("compile", model, "--tolerance", "0.03", "--math", "bf16-emulated", "-o",
                  tmp_path / "m.o")
    assert done.status == OK, done.errors
    assert "random inputs, real ones have other errors" in done.output


@pytest.mark.parametrize("arguments, says", [
    (["--tolerance", "0"], "--tolerance 0: must be a number above 0"),
    (["--tolerance", "-1e-3"], "must be a number above 0"),
    (["--tolerance", "nan"], "--tolerance nan: must be a number above 0"),
    (["--tolerance", "inf"], "--tolerance inf: must be a number above 0"),
    (["--tolerance", "0.1", "--ragged", "n:m=lengths"], "--ragged excludes --tolerance"),
    (["--tolerance", "0.1", "--target", "c", "--math", "int8"],
     "--target c: choosing precisions runs the model"),
    (["--tolerance", "small"], "Could not convert: --tolerance = small"),
    (["--tolerance", "0.1", "--math", "strict"], "it must be bf16, bf16-emulated"),
    (["--tolerance", "0.1", "--plan", "x.plan"], "--plan excludes --tolerance"),
    (["--data", "d.npz"], "--data requires --tolerance"),
    (["--untimed"], "--untimed requires --tolerance"),
    (["--tolerance", "0.1", "--data", "nowhere.npz"], "'nowhere.npz': there is no such file"),
    (["--tolerance", "0.1", "--target", "x86-64-v3", "--math", "bf16"],
     "target 'x86-64-v3' has no products of bf16"),
])
def test_bad_arguments_are_refused(tmp_path, arguments, says):
    model = make_model(tmp_path / "m.onnx")
    math = [] if "--math" in arguments else ["--math", "bf16-emulated"]
    done = heddle("compile", model, *arguments, *math, "-o", tmp_path / "m.o")
    assert done.status == USAGE and says in done.errors
    assert not (tmp_path / "m.o").exists()


@pytest.mark.parametrize("x, says", [
    (np.zeros((4, 64), np.float32), "have no finite numbers but 0"),
    (np.full((4, 64), np.nan, np.float32), "is nan, but finite numbers are needed"),
    (np.ones((4, 63), np.float32), "but the model takes float32[n, 64]"),
    (np.ones((4, 64)), "but the model takes float32[n, 64]; .astype('float32') converts it"),
    (np.ones((0, 64), np.float32), "has no samples"),
])
def test_samples_that_say_nothing_are_refused(tmp_path, x, says):
    model = make_model(tmp_path / "m.onnx")
    with pytest.raises(package.UsageError) as caught:
        choose(model, 0.1, {"x": x})
    assert says in str(caught.value)


@pytest.mark.parametrize("math", ["bf16-emulated", "int8"])
def test_a_model_without_products_is_as_it_was(tmp_path, math):
    model = save(onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 22]>
        m (float[n, 64] x) => (float[n, 64] y) { y = Exp(x) }"""), tmp_path / "m.onnx")
    done = heddle("compile", model, "--tolerance", "0.1", "--math", math, "-o", tmp_path / "m.so")
    assert done.status == OK, done.errors
    assert "no product of the model can be in" in done.output
    np.testing.assert_allclose(package.load(tmp_path / "m.so")(samples()), np.exp(samples()), 1e-6)


def test_options_that_cannot_be_are_refused(tmp_path):
    model = make_model(tmp_path / "m.onnx")
    with pytest.raises(package.UsageError, match="`plan` is no option of choosing precisions"):
        choose(model, 0.1, plan={})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_search(tmp_path, number):
    """The command and the Python that it runs, which are one group as a terminal has it."""
    model = make_model(tmp_path / "m.onnx", hurts=[2])
    command = [find_heddle(), "compile", str(model), "--tolerance", "5e-5", "--math",
               "bf16-emulated", "--each", "-o", str(tmp_path / "m.so")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               env={**os.environ, "HEDDLE_PYTHON": sys.executable})
    first = process.stderr.readline()
    os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=60)  # also when the last process of it has ended
    assert "products in bf16: error" in first and process.returncode
    assert "Traceback" not in errors and not (tmp_path / "m.so").exists()


def test_other_inputs_may_be_further_off():
    error = OutputError("y")
    for off in (1.0, 2.0, 3.0):
        error.add(np.full(4, 10.0), np.full(4, 10.0 + off))
    assert error.relative == 0.3
    assert error.expected == pytest.approx((2 + 3 * np.std([1, 2, 3])) / 10)
    error.add(np.full(4, 5.0), np.full(4, 7.0))  # its largest number is less than that of others
    assert error.expected == pytest.approx((2 + 3 * np.std([1, 2, 3, 2])) / 8.75)
    error.add(np.full(4, 10.0), np.full(4, np.inf))
    assert error.expected == np.inf
