"""Products whose factors are rounded to bf16: `--math bf16`, and `precision` of a plan's groups."""

import json
import sqlite3

import heddle as package
import numpy as np
import onnx.parser
import pytest
from command import OK, USAGE, heddle, save
from products import plan_of, save_two, weights_of_two, worst

pytestmark = pytest.mark.usefixtures("compiler")


def rounded(x):
    """The numbers of bf16 that are next to these of f32, of two the even one."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    bits = bits + np.uint32(0x7fff) + (bits >> np.uint32(16) & np.uint32(1))
    return (bits & np.uint32(0xffff0000)).view(np.float32)


@pytest.fixture(name="weights")
def make_weights():
    return weights_of_two()


@pytest.fixture(name="model")
def make_model(tmp_path):
    return save_two(tmp_path / "m.onnx")


@pytest.fixture(name="x")
def make_x():
    return np.random.default_rng(1).normal(size=(37, 96)).astype(np.float32)


def expected(x, weights, isShort=(True, True)):
    for weight, short in zip(weights, isShort):
        factors = [rounded(each) if short else each for each in (x, weight)]
        x = np.matmul(*[each.astype(np.float64) for each in factors]).astype(np.float32)
        if weight is weights[0]:
            x = np.maximum(x, 0)
    return x


def test_factors_are_rounded_and_sums_are_not(model, weights, x):
    wanted = expected(x, weights)
    found, exponentials = package.compile(model, math="bf16-emulated")(x)
    exact = expected(x, weights, (False, False))
    # A sum that rounds to the other neighbour moves a factor of the second product.
    assert worst(found, wanted) < 1e-4 < worst(exact, wanted) < 2e-2
    np.testing.assert_allclose(exponentials, np.exp(x), 1e-6)


def test_a_plan_says_which(tmp_path, model, weights, x):
    plan = plan_of(model, "--math", "bf16-emulated")
    products = [each for each in plan["groups"] if each.get("precision") == "bf16"]
    assert len(products) == 2 and len(plan["groups"]) == 3
    assert not any("precision" in each for each in plan_of(model)["groups"])
    for which in ((True, False), (False, True)):
        for product, isShort in zip(products, which):
            product["precision"] = "bf16" if isShort else "f32"
        path = tmp_path / "m.plan"
        path.write_text(json.dumps(plan))
        found = package.compile(model, plan=path, math="bf16-emulated")(x)[0]
        assert worst(found, expected(x, weights, which)) < 1e-4
        done = heddle("plan", model, "--check", path, "--math", "bf16-emulated")
        assert done.status == OK, done.errors


@pytest.mark.parametrize("group, precision, says", [
    (0, "f16", "its precision is 'f16', but must be 'f32' or 'bf16'"),
    (2, "bf16", "its precision is bf16, but the mechanism 'pointwise' has no such products"),
])
def test_a_plan_that_cannot_be_is_refused(tmp_path, model, group, precision, says):
    plan = plan_of(model, "--math", "bf16-emulated")
    plan["groups"].sort(key=lambda each: each.get("precision", ""), reverse=True)
    plan["groups"][group]["precision"] = precision
    path = tmp_path / "m.plan"
    path.write_text(json.dumps(plan))
    done = heddle("compile", model, "--plan", path, "--math", "bf16-emulated", "-o",
                  tmp_path / "m.o")
    assert done.status == USAGE and says in done.errors
    assert not (tmp_path / "m.o").exists()


def test_a_target_without_such_products_is_refused(tmp_path, model):
    done = heddle("compile", model, "--target", "x86-64-v3", "--math", "bf16", "-o",
                  tmp_path / "m.o")
    assert done.status == USAGE
    assert "--math bf16: target 'x86-64-v3' has no products of bf16" in done.errors
    assert "bf16-emulated" in done.errors and not (tmp_path / "m.o").exists()


@pytest.mark.parametrize("target, instruction", [("x86-64-bf16", "vdpbf16ps"),
                                                 ("x86-64-amx", "tdpbf16ps"),
                                                 ("aarch64-bf16", "bfdot"),
                                                 ("x86-64-v3", "vfmadd231ps")])
def test_the_instructions_of_a_target_are_used(tmp_path, model, target, instruction):
    math = "bf16-emulated" if target == "x86-64-v3" else "bf16"
    done = heddle("compile", model, "--target", target, "--math", math, "-o", tmp_path / "m.s")
    assert done.status == OK, done.errors
    assert instruction in (tmp_path / "m.s").read_text().split()


def test_weights_take_half_of_the_memory(model):
    sizes = [heddle("explain", model, "--json", "--target", "x86-64-bf16", "--math", math)
             .json["weights_bytes"] for math in ("fast", "bf16")]
    assert 0.4 < sizes[1] / sizes[0] < 0.6


def test_a_group_keeps_f32_where_bf16_saves_no_time(tmp_path):
    """An element of a wide factor is rounded for four products: longer than that saves."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 22]>
        m (float[64, 4096] x, float[4096, 4] w, float[64, 512] a, float[512, 512] b)
            => (float[64, 4] y, float[64, 512] z) { y = MatMul(x, w) z = MatMul(a, b) }""")
    path = save(model, tmp_path / "m.onnx")
    groups = {}
    for options in (("--target", "x86-64-bf16", "--math", "bf16"),
                    ("--target", "aarch64-bf16", "--math", "bf16"),
                    ("--target", "x86-64-v3", "--math", "bf16-emulated")):
        told = heddle("explain", path, "--json", *options).json
        assert told["math"] == options[-1]
        groups = {each["outputs"][0]["type"]: each for each in told["groups"]}
        assert groups["64 x 4 x f32"]["precision"] is None
        assert groups["64 x 512 x f32"]["precision"] == "bf16"
        assert all("a roofline gives it" in each["why_precision"] for each in groups.values())
        name = groups["64 x 4 x f32"]["name"]
        details = heddle("explain", path, "--group", name, *options).output
        assert "\nfactors  f32: a roofline gives it" in details
    assert heddle("explain", path, "--json").json["groups"][0]["why_precision"] is None


def test_weights_of_bf16_are_half_of_the_bytes_that_are_read(model):
    """`explain` counts them so, and draws its bound from that."""
    told = [{each["name"]: each for each in
             heddle("explain", model, "--json", "--target", "x86-64-bf16", "--math",
                   math).json["groups"]} for math in ("fast", "bf16")]
    products = [name for name, group in told[1].items() if group["precision"] == "bf16"]
    assert len(products) == 2
    for name, group in told[0].items():
        share = 0.5 if name in products else 1
        # The 0 of Relu is a constant, too.
        assert abs(told[1][name]["weight_bytes"] - share * group["weight_bytes"]) <= 4


def test_emulated_products_are_not_tuned(tmp_path, model):
    done = heddle("tune", model, "--math", "bf16-emulated", "--records", tmp_path / "r.db")
    assert done.status == USAGE
    assert "that of emulated products says nothing" in done.errors and "--math bf16'" in done.errors


def test_records_decide_precision_under_math_bf16_alone(tmp_path, model):
    """Default choices of two products, as if bf16 had been tuned: one is faster, one is not."""
    records, options = tmp_path / "r.db", ("--threads", 1)
    done = heddle("tune", model, "--records", records, "--trials", 1, *options)
    assert done.status == OK, done.errors
    database = sqlite3.connect(records)
    database.row_factory = sqlite3.Row
    rows = [dict(row) for row in database.execute(
        "SELECT * FROM trial WHERE base LIKE card || '@' || card_hash || '%' AND knobs <> '{}'")]
    bases = {row["key"]: row for row in rows if row["card"] == "matmul" and row["base"].endswith(
        " ".join(f"{name}={value}" for name, value in json.loads(row["knobs"]).items()))}
    assert len(bases) == 2
    plans = [plan_of(model, *options, "--math", math)["groups"]
             for math in ("fast", "bf16-emulated")]
    rules = {json.dumps(one["knobs"]): json.dumps(other["knobs"]) for one, other in zip(*plans)}
    for row, speedup in zip(bases.values(), (2, 0.8)):
        knobs = rules[json.dumps(json.loads(row["knobs"]))]  # other tiles, where there are matrices
        row.update(id=None, precision="bf16", knobs=knobs, speedup=speedup, confirmed=1)
        database.execute(f"INSERT INTO trial VALUES ({', '.join('?' * len(row))})",
                         list(row.values()))
    database.commit()
    for math, count in (("fast", 0), ("bf16-emulated", 1)):
        plan = plan_of(model, *options, "--records", records, "--math", math)
        assert [each.get("precision") for each in plan["groups"]].count("bf16") == count
    told = heddle("explain", model, "--json", *options, "--records", records, "--math",
                  "bf16-emulated").json
    assert sum(each["why_precision"] == "both were measured" for each in told["groups"]) == 2


def test_weights_of_16_bits_stay_as_they_are(tmp_path, x):
    weight = rounded(np.random.default_rng(2).normal(size=(96, 80)))
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 22]>
        m (float[n, 96] x) => (float[n, 80] y) {
            wide = Cast <to = 1> (w)
            y = MatMul(x, wide)
        }""")
    bits = (weight.view(np.uint32) >> 16).astype(np.uint16)
    model.graph.initializer.append(onnx.helper.make_tensor(
        "w", onnx.TensorProto.BFLOAT16, weight.shape, bits.tobytes(), raw=True))
    found = package.compile(save(model, tmp_path / "m.onnx"), math="bf16-emulated")(x)
    assert worst(found, rounded(x).astype(np.float64) @ weight) < 1e-5


def test_an_unknown_way_is_refused(model):
    done = heddle("run", model, "--math", "bf8")
    assert done.status == USAGE
    assert "--math: bf8 not in {fast,strict,bf16,bf16-emulated,int8}" in done.errors


def test_attention_rounds_its_factors(tmp_path):
    model = onnx.parser.parse_model("""<ir_version: 11, opset_import: ["" : 23]>
        m (float[2, 3, n, 16] q, float[2, 3, k, 16] k, float[2, 3, k, 16] v)
            => (float[2, 3, n, 16] y) { y = Attention <is_causal = 1> (q, k, v) }""")
    path = save(model, tmp_path / "m.onnx")
    plan = tmp_path / "m.plan"  # rounds on any machine
    plan.write_text('{"plan": 1, "thresholds": {"bf16_saving": 0}, "groups": []}')
    table = heddle("explain", path, "--math", "bf16-emulated", "--plan", plan).output
    assert "attention, bf16" in table
    has_matrices = "m=32" in table  # then few queries read keys and values of f32 where they lie
    numbers = np.random.default_rng(3)
    for queries, keys in ((9, 9), (31, 33), (1, 5)):
        q, k, v = (numbers.normal(size=(2, 3, count, 16)).astype(np.float32)
                   for count in (queries, keys, keys))
        exact, short, factors = (
            package.compile(path, math=math, plan=plan)(*given) for math, given in (
                ("fast", (q, k, v)), ("bf16-emulated", (q, k, v)),
                ("fast", (rounded(q), rounded(k), rounded(v)))))
        if has_matrices and queries == 1:
            np.testing.assert_array_equal(short, exact)
            continue
        # Weights are rounded once more, to 8 bits.
        assert worst(short, factors) < 2**-8 and 1e-4 < worst(short, exact) < 2e-2


@pytest.mark.parametrize("math, bound", [("bf16-emulated", 2e-3), ("int8", 2e-2)])
def test_models_of_f16_have_smaller_products(tmp_path, math, bound):
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 22]>
        m (float16[n, 96] x) => (float16[n, 80] y) { y = MatMul(x, w) }""")
    numbers = np.random.default_rng(5)
    weight = numbers.normal(size=(96, 80)).astype(np.float16)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    path = save(model, tmp_path / "m.onnx")
    x = numbers.normal(size=(7, 96)).astype(np.float16)
    factors = [rounded(each) if math != "int8" else each for each in (x, weight)]
    wanted = np.matmul(*[each.astype(np.float64) for each in factors])
    assert worst(package.compile(path, math=math)(x), wanted) < bound
    plan = plan_of(path, "--math", math)
    assert plan.get("integers") or "bf16" in [each.get("precision") for each in plan["groups"]]
