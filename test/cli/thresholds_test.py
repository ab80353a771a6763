"""Thresholds: numbers of a plan that decide how work is laid out, and never what is computed."""

import json
import random
import re
from pathlib import Path

import heddle as package
import numpy as np
import onnx.parser
import pytest
from command import OK, heddle, ok, save

pytestmark = pytest.mark.usefixtures("compiler")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "spec" / "plan.md"

# Subjects of thresholds: constant and given filters, products, rows and columns, extremes.
MODEL = """m (float[2, 8, 20, 20] x, float[16, 8, 3, 3] given, float[n, 70] rows,
    float[1, 9000] long) => (float[2, 16, 20, 20] a, float[2, 16, 20, 20] b, float[n, 40] c,
        float[40] d, float[1, 9000] e, int64[n] f, float[n, 10] g) {
    filters = ConstantOfShape <value = float[1] {0.25}> (shape)
    a = Conv <pads = [1, 1, 1, 1]> (x, filters)
    b = Conv <pads = [1, 1, 1, 1]> (x, given)
    weights = ConstantOfShape <value = float[1] {0.5}> (matrix)
    c = MatMul(rows, weights)
    d = ReduceSum <keepdims = 0> (c, first)
    e = Softmax <axis = 1> (long)
    f = ArgMax <axis = 1, keepdims = 0> (rows)
    narrow = Slice(rows, first, ten, one)
    g = Softmax <axis = 1> (narrow)
}"""
CONSTANTS = {"shape": [16, 8, 3, 3], "matrix": [70, 40], "first": [0], "ten": [10], "one": [1]}


def documented():
    """{name: default} of the page."""
    return {name: int(value)
            for name, value in re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE.read_text(), re.M)}


@pytest.fixture(name="model")
def make_model(tmp_path):
    lines = "\n".join(f"    {name} = Constant <value_ints = {values}> ()"
                      for name, values in CONSTANTS.items())
    text = MODEL.replace(") {\n", ") {\n" + lines + "\n", 1)
    return save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]>\n{text}'),
                tmp_path / "m.onnx")


def problem_of(path, thresholds):
    plan = path.with_suffix(".json")
    plan.write_text(json.dumps({"plan": 1, "thresholds": thresholds, "groups": []}))
    done = heddle("compile", path, "-o", path.with_suffix(".o"), "--no-cache", "--plan", plan)
    return "" if done.status == OK else done.errors


def range_of(path, name):
    """The least and the most, as the message says them."""
    told = problem_of(path, {name: -1})
    return tuple(map(int, re.search(r"must be from (\d+) to (\d+)", told).groups()))


def test_the_page_has_them_all(model):
    told = problem_of(model, {"no such thing": 1})
    assert told.split("there are: ")[1].strip().split(", ") == list(documented())
    assert "did you mean 'parallel_work'?" in problem_of(model, {"paralel_work": 1})
    assert "an object of integers" in problem_of(model, {"parallel_work": "many"})


def test_they_are_kept_in_the_plan_and_change_the_code(model, tmp_path):
    defaults, other = documented(), tmp_path / "other.o"
    made = {}
    for name, thresholds in (("default", {}), ("the same", defaults),
                             ("other", {"product_tasks": 1, "product_tiles": 64})):
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"plan": 1, "thresholds": thresholds, "groups": []}))
        ok("compile", model, "-o", other, "--no-cache", "--threads", "4", "--plan", plan,
           "--plan-out", tmp_path / "out.json")
        assert json.loads((tmp_path / "out.json").read_text()).get("thresholds", {}) == thresholds
        made[name] = other.read_bytes()
    assert made["default"] == made["the same"] != made["other"]


@pytest.mark.parametrize("seed", range(6))
def test_no_value_changes_what_is_computed(model, seed):
    numbers, draw = np.random.default_rng(seed), random.Random(seed)
    ends = {name: range_of(model, name) for name in documented()}
    pick = {0: lambda low, high: low, 1: lambda low, high: high}.get(
        seed, lambda low, high: draw.choice([low, low + 1, draw.randint(low, min(high, low + 99)),
                                             high]))
    feeds = {"x": numbers.standard_normal((2, 8, 20, 20), np.float32),
             "given": numbers.standard_normal((16, 8, 3, 3), np.float32),
             "rows": numbers.standard_normal((13, 70), np.float32),
             "long": numbers.standard_normal((1, 9000), np.float32)}
    expected = package.compile(str(model), cache=False, threads=3).run(None, feeds)
    thresholds = {name: pick(*both) for name, both in ends.items()}
    plan = {"plan": 1, "thresholds": thresholds, "groups": []}
    found = package.compile(str(model), cache=False, threads=3, plan=plan).run(None, feeds)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=str(thresholds))
