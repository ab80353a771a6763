"""Changes by a user: a card in a folder of one's own, and a plan."""

import json
from pathlib import Path

import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node, make_value
from onnx import TensorProto

import heddle

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("compiler")
FLOAT = TensorProto.FLOAT
X = np.random.default_rng(1).standard_normal((3, 7, 64)).astype(np.float32)
W = np.random.default_rng(2).standard_normal((64, 48)).astype(np.float32)
SCALE = np.linspace(0.5, 1.5, 64, dtype=np.float32)


def model(nodes, constants):
    return make_model(nodes, {"x": ["batch", "length", 64]}, {"y": None}, constants)


def node(op, inputs, output, **attributes):
    return make_node(op, inputs, [output], name=output, **attributes)


def t5_layer_norm():
    return model(
        [node("Pow", ["x", "two"], "square"), node("ReduceMean", ["square"], "mean", axes=[-1]),
         node("Add", ["mean", "epsilon"], "shifted"), node("Sqrt", ["shifted"], "root"),
         node("Div", ["x", "root"], "normal"), node("Mul", ["normal", "scale"], "y")],
        {"two": np.float32(2), "epsilon": np.float32(1e-6), "scale": SCALE})


def dense():
    """Product, ReLU, then a softmax."""
    return model([node("MatMul", ["x", "w"], "product"), node("Relu", ["product"], "relu"),
                  node("Softmax", ["relu"], "y", axis=-1)], {"w": W})


def apart(**options):
    """Compiled as two groups."""
    return heddle.compile(dense(), without="stitch", **options)


def expected_dense():
    relu = np.maximum(X @ W, 0)
    powers = np.exp(relu - relu.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def cards_of(module):
    return {group["name"]: group["card"] for group in module.compiled.plan["groups"]}


def test_a_card_of_ones_own_is_one_short_file():
    folder = ROOT / "examples" / "cards"
    assert len((folder / "t5_layer_norm.mlir").read_text(encoding="utf-8").splitlines()) <= 60
    without = heddle.compile(t5_layer_norm())
    assert cards_of(without) == {"y": "reduce_rows"}
    module = heddle.compile(t5_layer_norm(), schedules=str(folder))
    assert cards_of(module) == {"y": "t5_layer_norm"}
    wanted = X / np.sqrt((X * X).mean(-1, keepdims=True) + 1e-6) * SCALE
    np.testing.assert_allclose(module.run(None, {"x": X})[0], wanted, rtol=1e-5, atol=1e-6)


def test_partition_asks_the_cards_what_a_group_may_be(tmp_path):
    """With a card of rows for longer ones alone, nothing but elementwise ops joins a reduction."""
    text = (ROOT / "schedules" / "cpu" / "reduce_rows.mlir").read_text(encoding="utf-8")
    key = 'key = "p* { s+(max|min|sum|prod) }"'
    assert key in text
    longer = 'key = "p* { n:s+(max|min|sum|prod) }", min = {n = 65}'
    (tmp_path / "reduce_rows.mlir").write_text(text.replace(key, longer), encoding="utf-8")
    source = model([node("Softmax", ["x"], "y", axis=-1)], {})
    assert list(cards_of(heddle.compile(source)).values()) == ["reduce_rows"]
    module = heddle.compile(source, schedules=str(tmp_path))
    found = cards_of(module)
    assert len(found) > 1 and "reduce_rows" not in found.values()
    powers = np.exp(X - X.max(-1, keepdims=True))
    wanted = powers / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(module.run(None, {"x": X})[0], wanted, rtol=1e-5, atol=1e-6)


def test_a_product_with_relu_needs_no_card_of_its_own():
    assert cards_of(apart()) == {"relu": "matmul", "y": "reduce_rows"}


def test_compiling_twice_gives_the_same(tmp_path):
    several = dense()
    for i in range(6):
        several.graph.node.append(node("LeakyRelu", ["x"], f"leaky{i}", alpha=0.1 * i))
        several.graph.output.append(make_value(f"leaky{i}", None))
    artefacts = set()
    for i in range(4):
        heddle.compile(several, output=str(tmp_path / "several.so"))
        artefacts.add((tmp_path / "several.so").read_bytes())
    assert len(artefacts) == 1
    for name in ("one", "two"):
        apart(output=str(tmp_path / f"{name}.so"))
        apart().compiled.write(tmp_path / f"{name}.plan")
    for kind in ("so", "plan"):
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()


def edited(change):
    plan = apart().compiled.plan
    change({group["name"]: group for group in plan["groups"]}, plan)
    return plan


def agrees(module):
    found = module.run(None, {"x": X})[0]
    np.testing.assert_allclose(found, expected_dense(), rtol=2e-5, atol=1e-6)


def test_a_group_is_split():
    def split(groups, plan):
        groups["relu"]["ops"] = ["relu"]
        groups["relu"].update(card="elementwise", knobs={})
        del groups["relu"]["card_hash"]
        plan["groups"].append({"name": "product", "ops": ["product"]})

    module = apart(plan=edited(split))
    assert set(cards_of(module)) == {"product", "relu", "y"}
    agrees(module)


def test_a_knob_and_a_card_are_changed():
    def change(groups, _):
        groups["relu"]["knobs"]["m"] = 4
        groups["y"].update(card="", knobs={}, card_hash="")

    module = apart(plan=edited(change))
    groups = {group["name"]: group for group in module.compiled.plan["groups"]}
    assert groups["relu"]["knobs"]["m"] == 4 and groups["y"]["card"] == ""
    agrees(module)


@pytest.mark.parametrize("change, message", [
    (lambda groups, _: groups["y"]["ops"].append("product"),
     r":4: group 'y': error: op 'product' cannot be in it"),
    (lambda groups, _: groups["y"].update(card="matmull"),
     r":4: group 'y': error: there is no card 'matmull'"),
    (lambda groups, _: groups["y"].update(card="matmul"),
     r":4: group 'y': error: card 'matmul' is not for it"),
    (lambda groups, _: groups["relu"]["knobs"].update(m=7),
     r":3: group 'relu': error: knob 'm' is 7, but card 'matmul' allows only \[1, 2, 3, 4, 5"),
    (lambda groups, _: groups["relu"].update(card_hash="0"),
     r":3: group 'relu': error: card 'matmul' has changed since the plan was made"),
    (lambda groups, _: [group.update(region=5) for group in groups.values()],
     r":4: group 'y': error: it cannot be launched at once with 'relu'"),
    (lambda _, plan: plan.update(model="sha256:0"),
     r"error: the plan was made for a model of fingerprint sha256:0"),
])
def test_an_impossible_plan_is_refused(change, message, tmp_path):
    plan = edited(change)
    path = tmp_path / "edited.plan"
    lines = ",\n".join(json.dumps(group) for group in plan.pop("groups"))
    path.write_text(json.dumps(plan)[:-1] + ',\n"groups": [\n' + lines + "]}", encoding="utf-8")
    with pytest.raises(heddle.UsageError, match=message):
        apart(plan=str(path))
