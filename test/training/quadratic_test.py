"""Quadratic layers hold the formulas that they are named by, learn, and can be taken away."""

import sys
from pathlib import Path

import heddle
import numpy as np
import pytest
from heddle import quadratic
from heddle.training import Trainer
from onnx import numpy_helper

sys.path.insert(0, str(Path(__file__).parent))

from networks import batch, convolutional, mlp  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler")

OPTIONS = {"cache": False, "threads": 1}


def normed(x, mean=0.0, variance=1.0):
    return (x - mean) / np.sqrt(variance + quadratic.EPSILON)


FORMULAS = {
    "bilinear": lambda x, w, b, get: np.einsum(
        "ni,ioj,nj->no", x, get("first.a.weight").reshape(6, 5, 6), x),
    "squared_input": lambda x, w, b, get: (x * x) @ w + b,
    "square": lambda x, w, b, get: (x @ w + b) ** 2,
    "product": lambda x, w, b, get: (x @ get("first.a.weight")) * (x @ w + b),
    "sum": lambda x, w, b, get: normed(x @ get("first.a.weight"))
    * normed(x @ get("first.b.weight")) + normed(x @ w + b),
}


@pytest.mark.parametrize("kind", quadratic.KINDS)
def test_a_layer_is_its_formula(kind):
    made = quadratic.convert(mlp(), kind, ["first"])
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    x = batch(1, (7, 6))["x"]
    hidden = FORMULAS[kind](x, values["first.weight"], values["first.bias"], values.__getitem__)
    expected = np.tanh(hidden) @ values["second.weight"] + values["second.bias"]
    result, = heddle.compile(made, **OPTIONS).run(None, {"x": x})
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", quadratic.KINDS)
def test_quadratic_layers_learn(kind):
    trainer = Trainer(quadratic.convert(mlp(), kind), learning_rate=0.02, **OPTIONS)
    x = batch(2, (64, 6))["x"]
    feeds = {"x": x, "labels": (x[:, 0] * x[:, 1] > 0).astype(np.int64)}  # which no line parts
    losses = [trainer.step(feeds) for _ in range(150)]
    assert losses[-1] < 0.5 * losses[0]


def test_a_convolution_keeps_its_normalisation_in_the_linear_part():
    made = quadratic.convert(convolutional(), "sum", ["conv"])
    ops = [node.op_type for node in made.graph.node]
    assert ops[:8] == ["Conv", "BatchNormalization"] * 3 + ["Mul", "Add"] and ops[8] == "Relu"
    assert sum("norm.scale" in node.input for node in made.graph.node) == 1
    trainer = Trainer(made, learning_rate=0.01, **OPTIONS)
    feeds = batch(3, (8, 2, 6, 6), 3)
    losses = [trainer.step(feeds) for _ in range(40)]
    assert losses[-1] < losses[0]


def test_layers_are_ranked_by_what_they_cost_and_bring():
    network = mlp()
    brings = {"first": 0.3, "second": 0.01}
    found = quadratic.indicators(
        network, ["first", "second"], lambda names: 0.5 + sum(brings[name] for name in names),
        {"x": (1, 6)})
    assert [each.layer for each in found] == ["second", "first"]
    assert found[1].loss == pytest.approx(0.3)
    assert sum(each.parameters for each in found) == pytest.approx(1)


def test_what_cannot_be_converted():
    with pytest.raises(heddle.UsageError, match="no kind of quadratic layer 'cubic'"):
        quadratic.convert(mlp(), "cubic")
    with pytest.raises(heddle.UsageError, match="no layer 'third' .* it has: first, second"):
        quadratic.convert(mlp(), layers=["third"])
    with pytest.raises(heddle.UsageError, match="'conv' is a convolution"):
        quadratic.convert(convolutional(), "bilinear", ["conv"])
