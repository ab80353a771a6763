"""Products of floats with constant weights as those of 8-bit integers: `--math int8`."""

import json

import heddle as package
import numpy as np
import onnx
import onnx.parser
import pytest
from command import DIFFERS, OK, USAGE, heddle, save
from heddle.onnx_graph import Graph
from products import NAMES, plan_of, save_two, weights_of_two, worst

pytestmark = pytest.mark.usefixtures("compiler")


def integers_of(x, weight):
    """The product as it is computed, in f64 where floats are."""
    rows = np.abs(x).max(-1, keepdims=True).astype(np.float32)
    rows = np.where(rows == 0, np.float32(1), rows)
    columns = (np.abs(weight).max(0) / 127).astype(np.float32)
    codes = np.rint(weight / np.where(columns == 0, 1, columns)).astype(np.int64)
    with np.errstate(invalid="ignore"):
        places = np.nan_to_num(np.rint(x / rows * np.float32(127)))
        places = np.clip(places, -128, 127).astype(np.int64)
        return (places @ codes) * (rows.astype(np.float64) / 127) * columns


@pytest.fixture(name="weights")
def make_weights():
    return weights_of_two()


@pytest.fixture(name="model")
def make_model(tmp_path):
    return save_two(tmp_path / "m.onnx")


def expected(x, weights, are_integers=(True, True)):
    for number, (weight, is_integer) in enumerate(zip(weights, are_integers)):
        x = integers_of(x, weight) if is_integer else x.astype(np.float64) @ weight
        x = np.maximum(x, 0).astype(np.float32) if number == 0 else x
    return x


def draw(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("count", [0, 1, 2, 37])
def test_rows_and_columns_are_scaled(model, weights, count):
    x = draw(count, 96)
    module = package.compile(model, math="int8")
    found, exponentials = module(x)
    assert found.shape == (count, 80)
    np.testing.assert_allclose(exponentials, np.exp(x), 1e-6)
    if count:
        # A value between two integers may become either, of the second product.
        assert worst(found, expected(x, weights)) < 3e-3
        assert 1e-3 < worst(found, expected(x, weights, (False, False))) < 5e-2
    again = module(np.ascontiguousarray(x[::-1]))[0]  # a row is the same beside other rows
    np.testing.assert_array_equal(again[::-1], found)


def test_rows_of_other_numbers(tmp_path):
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 22]>
        m (float[n, 64] x) => (float[n, 32] y) { y = MatMul(x, w) }""")
    weight = draw(64, 32, seed=2)
    weight[:, 5] = 0
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    x = draw(7, 64)
    x[1], x[2, 3], x[3, 0], x[4] = 0, np.nan, -np.inf, 1e-41
    x[5] *= np.float32(1e36)
    found = package.compile(save(model, tmp_path / "m.onnx"), math="int8")(x)
    assert np.isnan(found[2]).all() and np.isnan(found[3]).all()
    assert not found[1].any() and not found[:2, 5].any()
    for row in (0, 5, 6):
        assert worst(found[row].astype(np.float64), integers_of(x[row:row + 1], weight)[0]) < 1e-5
    assert np.abs(found[4]).max() < 1e-39


@pytest.mark.parametrize("of_x, of_weights", [(1e-3, 1e36), (1e-37, 1e30), (1e30, 1e-37)])
def test_numbers_of_any_size(tmp_path, of_x, of_weights):
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 22]>
        m (float[n, 64] x) => (float[n, 32] y) { y = MatMul(x, w) }""")
    weight, x = draw(64, 32, seed=2) * np.float32(of_weights), draw(5, 64) * np.float32(of_x)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    found = package.compile(save(model, tmp_path / "m.onnx"), math="int8")(x)
    assert worst(found.astype(np.float64), x.astype(np.float64) @ weight) < 2e-2


def test_weights_that_are_computed_are_so_once(tmp_path):
    """Each sum is twice in the next one: 2^40 of them, were each computed for each reader."""
    graph = Graph()
    graph.input("x", ["n", 64])
    weight = graph.constant(draw(64, 32, seed=2), "w")
    for step in range(40):
        weight = graph.op("Add", weight, graph.op("Sin", weight), name=f"a{step}")
    graph.output(graph.op("MatMul", "x", weight, name="product"), ["n", 32])
    assert plan_of(save(graph.model(21), tmp_path / "m.onnx"), "--math", "int8")["integers"] == [
        "product"]


@pytest.mark.parametrize("lowest", [-127, -128])
def test_weights_of_integers_keep_them(tmp_path, lowest):
    numbers = np.random.default_rng(3)
    codes = numbers.integers(-100, 101, (64, 32)).astype(np.int8)
    codes[0, ::2], scales = lowest, numbers.uniform(0.01, 0.1, 32).astype(np.float32)
    graph = Graph()
    graph.input("x", ["n", 64])
    weight = graph.op("DequantizeLinear", graph.constant(codes, "w"), graph.constant(scales, "s"),
                      name="d", axis=1)
    graph.output(graph.op("MatMul", "x", weight, name="product"), ["n", 32])
    path = save(graph.model(21), tmp_path / "m.onnx")
    x = numbers.integers(-127, 128, (9, 64)).astype(np.float32)
    x[:, 7] = 127  # so that rows are integers, too
    found = package.compile(path, math="int8")(x)
    np.testing.assert_allclose(found, x.astype(np.float64) @ codes * scales, 1e-5, 1e-3)


def test_a_plan_says_which(tmp_path, model, weights):
    x = draw(11, 96)
    plan = plan_of(model, "--math", "int8")
    assert plan["integers"] == NAMES and "integers" not in plan_of(model)
    for which in ((True, False), (False, True), (False, False)):
        names = [name for name, chosen in zip(NAMES, which) if chosen]
        path = tmp_path / "m.plan"
        path.write_text(json.dumps({"plan": 1, "integers": names, "groups": []}))
        for math in ("fast", "int8"):
            found = package.compile(model, plan=path, math=math)(x)[0]
            assert worst(found, expected(x, weights, which)) < 3e-3
        assert plan_of(model, "--plan", path)["integers"] == names
    path.write_text(json.dumps(plan))
    assert worst(package.compile(model, plan=path)(x)[0], expected(x, weights)) < 3e-3


@pytest.mark.parametrize("integers, says", [
    (["MatMul_z"], "the model has no product of float32 with constant weights"),
    (["MatMul_hiden"], "did you mean 'MatMul_hidden'?"),
    (["Exp_z"], "no product of float32 with constant weights"),
    ("MatMul_y", "but must be a list of names")])
def test_other_nodes_are_refused(tmp_path, model, integers, says):
    path = tmp_path / "m.plan"
    path.write_text(json.dumps({"plan": 1, "integers": integers, "groups": []}))
    done = heddle("compile", model, "--plan", path, "-o", tmp_path / "m.o")
    assert done.status == USAGE and says in done.errors
    assert not (tmp_path / "m.o").exists()


def test_small_products_stay_as_they_are(tmp_path):
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 22]>
        m (float[n, 31] x, float[40, 40] v) => (float[n, 40] y, float[n, 40] z) {
            y = MatMul(x, w)
            z = MatMul(y, v)
        }""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(draw(31, 40), "w"))
    assert "integers" not in plan_of(save(model, tmp_path / "m.onnx"), "--math", "int8")


@pytest.mark.parametrize("target, instruction", [("x86-64-vnni", "vpdpbusd"),
                                                 ("x86-64-v3", "vpmaddwd"),
                                                 ("aarch64-dotprod", "sdot")])
def test_the_instructions_of_a_target_are_used(tmp_path, model, target, instruction):
    done = heddle("compile", model, "--target", target, "--math", "int8", "-o", tmp_path / "m.s")
    assert done.status == OK, done.errors
    assert instruction in (tmp_path / "m.s").read_text().split()


def test_weights_take_a_quarter_of_the_memory(model):
    sizes = [heddle("explain", model, "--json", "--target", "x86-64-vnni", "--math", math)
             .json["weights_bytes"] for math in ("fast", "int8")]
    assert sizes[1] / sizes[0] < 0.35


def test_explain_says_which(model):
    told = heddle("explain", model, "--json", "--math", "int8").json
    assert told["integers"] == NAMES and told["math"] == "int8"
    assert "2 nodes have products of f32" in heddle("explain", model, "--math", "int8").output


def test_compare_knows_that_they_are_smaller(model):
    def compare(*options):
        return heddle("compare", model, "--against", "reference", "--dim", "x.0=9", *options).status
    assert compare() == compare("--math", "int8") == OK
    assert compare("--math", "int8", "--tolerance", "1e-4") == DIFFERS
    assert compare("--math", "int8", "--tolerance", "0") == DIFFERS


def test_a_budget_chooses_among_them(tmp_path, model, weights):
    """Products of integers save time here or not: either way, the bound holds."""
    x = draw(64, 96, seed=4)
    reports = []
    for tolerance in (1e-4, 1e-1):
        plan = package.choose_precision(model, {"x": x}, tolerance=tolerance, math="int8", batch=8,
                                        report=reports.append)
        assert plan["integers"] == [] or tolerance == 1e-1
        unseen = draw(32, 96, seed=5)
        found = package.compile(model, plan=plan)(unseen)[0]
        assert worst(found, expected(unseen, weights, (False, False))) < tolerance
    assert {group["name"] for group in reports[-1].facts["groups"]} == set(NAMES)
