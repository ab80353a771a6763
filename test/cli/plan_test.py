"""Plans that say more than a default: joins, copies, order, layouts and device."""

import json
from pathlib import Path

import heddle as package
import numpy as np
import onnx.parser
import pytest
from command import OK, heddle, ok, save

pytestmark = pytest.mark.usefixtures("compiler")


def model_of(text, folder):
    return save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]>\n{text}'),
                folder / "m.onnx")


def plan_of(path, *options):
    plan = path.with_suffix(".plan.json")
    ok("compile", path, "-o", plan, "--no-cache", *options)
    return json.loads(plan.read_text())


def compiled(path, plan, *options):
    """The plan that comes out with this one, or what is wrong."""
    (path.parent / "wanted.json").write_text(json.dumps(plan))
    made = path.parent / "made.json"
    done = heddle("compile", path, "-o", made, "--no-cache", "--plan", path.parent / "wanted.json",
                  *options)
    return json.loads(made.read_text()) if done.status == OK else done.errors


def ran(path, plan, feeds):
    module = package.compile(str(path), plan=plan, cache=False,
                             threads=1)
    return module.run(None, feeds)


def names(plan):
    return [group["name"] for group in plan["groups"]]


# Three products that do not read each other, and a sum of them.
BRANCHES = """m (float[4, 8] x, float[8, 8] v, float[8, 8] w) => (float[4, 8] y, float[4, 4] z) {
    [a] a = MatMul(x, v)
    [b] b = MatMul(x, w)
    [s] s = Softmax <axis = 1> (a)
    [y] y = MatMul(s, w)
    [t] t = Transpose <perm = [1, 0]> (b)
    [z] z = MatMul(b, t)
}"""


def test_groups_run_in_the_order_that_is_said(tmp_path):
    path = model_of(BRANCHES, tmp_path)
    plan = plan_of(path, "--without", "regions,stitch")
    assert names(plan)[0] in "ab"
    orders = {group["name"]: group["order"] for group in plan["groups"]}
    random = np.random.default_rng(1)
    feeds = {"x": random.random((4, 8), np.float32), "v": random.random((8, 8), np.float32),
             "w": random.random((8, 8), np.float32)}
    expected = ran(path, None, feeds)
    # The branch that comes first shall come last, whole.
    first = {"a", "s", "y"} if names(plan)[0] in "asy" else {"b", "t", "z"}
    late = {group["name"] for group in plan["groups"]} & first
    for group in plan["groups"]:
        group["order"] += 100 * (group["name"] in late)
    made = compiled(path, plan, "--without", "regions,stitch")
    wanted = sorted(orders, key=lambda name: (name in late, orders[name]))
    assert names(made) == wanted and names(made) != names(plan)
    for one, other in zip(expected, ran(path, plan, feeds)):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_an_order_against_what_is_read_is_refused(tmp_path):
    path = model_of(BRANCHES, tmp_path)
    plan = plan_of(path, "--without", "regions,stitch")
    for group in plan["groups"]:
        group["order"] = -group["order"]
    assert "it has to follow" in compiled(path, plan, "--without", "regions,stitch")


def test_a_device_is_the_one_that_there_is(tmp_path):
    path = model_of(BRANCHES, tmp_path)
    plan = plan_of(path)
    plan["groups"][0]["device"] = 0
    assert names(compiled(path, plan)) == names(plan)
    plan["groups"][0]["device"] = 1
    assert "its device is 1, but the target's one device is 0 ('cpu')" in compiled(path, plan)


def test_a_plan_joins_what_would_stay_apart(tmp_path):
    # The costly function is read by a broadcast, where it is computed again and again.
    path = model_of("""m (float[64, 1] x, float[64, 64] v) => (float[64, 64] y) {
        [e] e = Erf(x)
        [y] y = Add(e, v)
    }""", tmp_path)
    plan = plan_of(path)
    assert names(plan) == ["e", "y"]
    plan["groups"] = [plan["groups"][1]]
    plan["groups"][0].update(ops=["e", "y"], card="", card_hash="", knobs={})
    made = compiled(path, plan)
    assert names(made) == ["y"] and set(made["groups"][0]["ops"]) == {"e", "y"}
    random = np.random.default_rng(2)
    feeds = {"x": random.random((64, 1), np.float32), "v": random.random((64, 64), np.float32)}
    np.testing.assert_allclose(*ran(path, plan, feeds), *ran(path, None, feeds), rtol=1e-5)


def test_a_plan_has_readers_compute_again(tmp_path):
    # Two operands have its size, which a copy in each reader would read twice.
    path = model_of("""m (float[n, 64] x, float[n, 64] v) => (float[n] y, float[n] z) {
        [a] a = Mul(x, v)
        axes = Constant <value_ints = [1]> ()
        [y] y = ReduceSum <keepdims = 0> (a, axes)
        [z] z = ReduceMax <keepdims = 0> (a, axes)
    }""", tmp_path)
    plan = plan_of(path)
    (both,) = plan["groups"]
    assert both["name"] == "z" and set(both["ops"]) == {"a", "y", "z"}
    plan["groups"] = [both | {"name": name, "ops": ["a", name], "order": order}
                      for order, name in enumerate(("y", "z"))]
    made = compiled(path, plan)
    assert set(names(made)) == {"y", "z"}
    assert all("a" in group["ops"] for group in made["groups"])
    random = np.random.default_rng(3)
    feeds = {name: random.random((5, 64), np.float32) for name in "xv"}
    for one, other in zip(ran(path, plan, feeds), ran(path, None, feeds)):
        np.testing.assert_allclose(one, other, rtol=1e-5)


CONVOLUTION = """m (float[1, 8, 9, 9] x, float[8] s) => (float[1, 8, 9, 9] y) {
    [w] w = ConstantOfShape <value = float[1] {0.25}> (shape)
    [c] c = Conv <pads = [1, 1, 1, 1]> (x, w)
    [y] y = Relu(c)
}"""


def test_layouts_are_in_the_plan_and_carried_out(tmp_path):
    path = model_of(CONVOLUTION.replace(
        "[w]", "shape = Constant <value_ints = [8, 8, 3, 3]> ()\n    [w]"), tmp_path)
    plan = plan_of(path)
    assert plan["layouts"] == {"c": "last"}
    feeds = {"x": np.random.default_rng(4).random((1, 8, 9, 9), np.float32),
             "s": np.zeros(8, np.float32)}
    expected = ran(path, None, feeds)
    first = {key: plan[key] for key in ("plan", "model", "target")}
    first.update(layouts={"c": "first"}, groups=[])
    made = compiled(path, first)
    assert made["layouts"] == {"c": "first"} and len(made["groups"]) < len(plan["groups"])
    np.testing.assert_allclose(*ran(path, first, feeds), *expected, rtol=1e-5)
    assert "did you mean 'c'?" in compiled(path, first | {"layouts": {"cc": "last"}})
    assert "must be 'first' or 'last'" in compiled(path, first | {"layouts": {"c": "middle"}})


# A result that two others read.
FUSED = """m (float[32, 16] x, float[16, 24] w, float[32, 24] u, float[32, 24] v)
    => (float[32, 24] y, float[32, 1] z) {
    [a] a = MatMul(x, w)
    [b] b = Sigmoid(a)
    [c] c = Add(u, v)
    [d] d = Exp(c)
    [y] y = Mul(b, d)
    one = Constant <value_ints = [1]> ()
    [z] z = ReduceMax(d, one)
}"""


def test_fusion_says_what_is_stored_and_what_is_computed_by_its_readers(tmp_path):
    path = model_of(FUSED, tmp_path)
    rng = np.random.default_rng(5)
    feeds = {name: rng.standard_normal(shape, np.float32) for name, shape in
             (("x", (32, 16)), ("w", (16, 24)), ("u", (32, 24)), ("v", (32, 24)))}
    expected = ran(path, None, feeds)

    def ops(plan):
        return {group["name"]: set(group["ops"]) for group in plan["groups"]}

    alone = "--without", "siblings,regions"
    plan = plan_of(path, *alone)
    assert "a" not in ops(plan) and ops(plan)["d"] == {"c", "d"}
    decided = {"plan": 1, "fusion": {"a": "apart", "d": "joined"}, "groups": []}
    made = compiled(path, decided, *alone)
    assert made["fusion"] == decided["fusion"]
    assert ops(made)["a"] == {"a"} and "d" not in ops(made)
    assert all("d" in ops(made)[name] for name in ("y", "z"))
    assert compiled(path, made, *alone) == made  # a plan that came out is carried out as it is
    for one, other in zip(ran(path, made, feeds), expected):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert "did you mean" in compiled(path, decided | {"fusion": {"aa": "apart"}})
    assert "must be 'apart' or 'joined'" in compiled(path, decided | {"fusion": {"a": "x"}})


def test_the_fingerprint_is_of_the_model_alone(tmp_path):
    path = model_of(BRANCHES, tmp_path)
    found = {plan_of(path, *options)["model"]
             for options in ((), ("--target", "x86-64-v3"), ("--target", "c"), ("-O", "1"))}
    assert len(found) == 1


OPEN = """m (float[2, s, 8] a, float[2, 8, s] b, float[s, 8] c)
    => (float[2, s, s] y, float[s, 40] z) {
    [y] y = MatMul(a, b)
    [z] z = MatMul(c, w)
}"""


@pytest.fixture
def versioned(tmp_path):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]>\n{OPEN}')
    weight = np.random.default_rng(0).standard_normal((8, 40)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    path = save(model, tmp_path / "m.onnx")
    plan = plan_of(path, "--target", "x86-64-v3")
    product = next(group for group in plan["groups"] if group["name"] == "y")
    product["knobs"].update(m=6, n=16)
    product["versions"] = [{"when": {"s": 4}, "knobs": {"m": 4, "n": 8}},
                           {"when": {"2*s": 24}, "knobs": {"m": 2}}]
    return path, plan


def test_a_run_takes_the_first_version_for_its_sizes(versioned):
    path, plan = versioned
    made = compiled(path, plan, "--target", "x86-64-v3")
    found = next(group for group in made["groups"] if group["name"] == "y")
    assert [version["knobs"]["n"] for version in found["versions"]] == [8, 16]
    assert compiled(path, made, "--target", "x86-64-v3") == made
    random = np.random.default_rng(0)
    module = package.compile(str(path), plan=made, cache=False, threads=1)
    for size in (0, 1, 4, 5, 12, 13, 40):
        a, b = (random.standard_normal((2, size, 8)).astype(np.float32) for _ in "ab")
        feeds = {"a": a, "b": b.transpose(0, 2, 1).copy(), "c": a[0].copy()}
        np.testing.assert_allclose(module.run(["y"], feeds)[0], a @ feeds["b"], rtol=1e-5,
                                   atol=1e-5)


def test_explain_prints_the_decision(versioned):
    path, plan = versioned
    (path.parent / "p.json").write_text(json.dumps(plan))
    done = ok("explain", path, "--plan", path.parent / "p.json", "--group", "y", "--target",
              "x86-64-v3")
    assert """versions
  if s <= 4: m=4 n=8 panels=0 tiles=0
  else if 2*s <= 24: m=2 n=16 panels=0 tiles=0
  else: m=6 n=16 panels=0 tiles=0
""" in done.output


def test_weights_are_packed_once_for_all_versions(versioned):
    path, plan = versioned
    product = next(group for group in plan["groups"] if group["name"] == "z")
    product["versions"] = [{"when": {"s": 4}, "knobs": {"m": 4, "n": 8}}]
    assert "group 'z': error: its versions pack its weights in several ways" in compiled(
        path, plan, "--target", "x86-64-v3")
    product["versions"] = [{"when": {"s": 4}, "knobs": {"m": 2}}]
    assert isinstance(compiled(path, plan, "--target", "x86-64-v3"), dict)


# Nodes of one name, a node that becomes several ops, what several groups compute, a claim of a
# card, rows with several results and gates.
REPEATED = """m (float[2, 8, 16] x, float[16, 32] w, float[16] lw)
    => (float[2, 8, 16] y, float[2, 8, 16] z, float[2, 8, 16] g) {
    [n] scale = Constant <value = float[1] {0.25}> ()
    [n] q = Mul(x, scale)
    [n] h = HardSwish(q)
    [n] t = Transpose <perm = [0, 2, 1]> (h)
    [n] s = MatMul(h, t)
    [n] p = Softmax(s)
    [n] a = MatMul(p, h)
    [m] b = LayerNormalization <axis = 2> (a, lw)
    [m] y = Gelu(b)
    [m] z = Relu(b)
    [o] u = MatMul(y, w)
    [o] l, r = Split <axis = 2, num_outputs = 2> (u)
    [o] k = Sigmoid(l)
    [o] g = Mul(k, r)
}"""

MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"
NOTHING = ("--without", "cards,fusion,stitch,siblings")


def replayed(path, tmp_path, *options):
    """The exact plan of a model, and what becomes of it where nothing is fused."""
    plans = [tmp_path / "exact.json", tmp_path / "replayed.json"]
    ok("plan", path, "-o", plans[0], "--no-cache", "--exact-plan", *options)
    ok("plan", path, "-o", plans[1], "--no-cache", "--exact-plan", "--plan", plans[0], *NOTHING,
       *options)
    return [json.loads(plan.read_text()) for plan in plans]


def test_an_exact_plan_gives_its_groups_to_a_compiler_that_fuses_nothing(tmp_path):
    path = model_of(REPEATED, tmp_path)
    exact, again = replayed(path, tmp_path)
    apart = plan_of(path, *NOTHING)
    assert again["groups"] == exact["groups"]
    assert len(names(apart)) > len(names(exact))


@pytest.mark.parametrize("path", sorted(MODELS.rglob("*.onnx")) or [None], ids=str)
def test_exact_plans_of_models(path, tmp_path):
    if path is None:
        pytest.skip("there are no models beside the checkout")
    exact, again = replayed(path, tmp_path, "--target", "x86-64-v3", "--threads", "4")
    assert again["groups"] == exact["groups"]


def test_parts_that_cannot_be_followed_are_refused(tmp_path):
    path = model_of(REPEATED, tmp_path)
    exact, _ = replayed(path, tmp_path)
    line = exact["groups"][0]

    def said(**changes):
        groups = [{**line, **changes}, *exact["groups"][1:]]
        return compiled(path, {**exact, "groups": groups})

    node = line["ops"][0]
    assert "its 'parts' cannot be a group of mechanism" in said(
        parts={**line["parts"], node: [77]})
    assert "its 'ops' are not the nodes of its 'parts'" in said(ops=["other"])
    assert "there is no mechanism 'row'; did you mean 'rows'?" in said(mechanism="row")
    assert "'parts' and 'mechanism' are given together" in said(parts={})
