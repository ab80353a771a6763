"""Attention in a step: one kernel forward and one for its gradient; neither stores scores."""

import json

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import Graph

from command import needs_heddle, ok
from networks import initializers

pytestmark = needs_heddle

WIDTH, HEADS, LAYERS = 32, 4, 2
RECIPE = {"loss": "mse", "optimizer": "adam"}


class Encoder(Graph):
    """[2, length, 32] -> the same: attention and perceptrons with dropout and normalised sums."""

    def __init__(self, length, is_causal):
        super().__init__()
        self.length, self.is_causal = length, is_causal
        for name, value in (
                ("ratio", np.float32(0.1)), ("scale", np.float32((WIDTH // HEADS)**-0.5)),
                ("hidden", np.float32(-np.inf)), ("rows", np.array([2, length, WIDTH])),
                ("heads", np.array([2, length, HEADS, WIDTH // HEADS])),
                ("seen", np.tri(length).astype(bool))):
            self.constant(value, name)

    def weight(self, name, *shape):
        return self.constant(initializers(len(self.arrays), **{name: shape})[name], name)

    def dense(self, x, name, inputs, outputs):
        x = self.op("MatMul", x, self.weight(f"{name}_weight", inputs, outputs), name=f"{name}_mul")
        return self.op("Add", x, self.weight(f"{name}_bias", outputs), name=name)

    def dropout(self, x, name):
        return self.op("Dropout", x, "ratio", name=f"{name}_dropout")

    def heads(self, x, name, order):
        x = self.op("Reshape", self.dense(x, name, WIDTH, WIDTH), "heads", name=f"{name}_heads")
        return self.op("Transpose", x, name=f"{name}_turned", perm=order)

    def attention(self, x, name):
        q, k, v = (self.heads(x, f"{name}_{part}", order) for part, order in
                   (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3))))
        s = self.op("MatMul", q, k, name=f"{name}_scores")
        s = self.op("Mul", s, "scale", name=f"{name}_scaled")
        if self.is_causal:
            s = self.op("Where", "seen", s, "hidden", name=f"{name}_masked")
        p = self.dropout(self.op("Softmax", s, name=f"{name}_softmax", axis=-1), name)
        y = self.op("Transpose", self.op("MatMul", p, v, name=f"{name}_values"),
                    name=f"{name}_back", perm=(0, 2, 1, 3))
        return self.dense(self.op("Reshape", y, "rows", name=f"{name}_rows"), f"{name}_out", WIDTH,
                          WIDTH)

    def added(self, x, y, name):
        x = self.op("Add", x, self.dropout(y, name), name=f"{name}_sum")
        return self.op("LayerNormalization", x, self.weight(f"{name}_scale", WIDTH),
                       self.weight(f"{name}_shift", WIDTH), name=f"{name}_norm")

    def whole(self):
        x = self.dropout(self.op("Add", "x", self.weight("places", self.length, WIDTH),
                                 name="placed"), "placed")
        for layer in range(LAYERS):
            x = self.added(x, self.attention(x, f"a{layer}"), f"a{layer}_end")
            y = self.op("Relu", self.dense(x, f"wide{layer}", WIDTH, 2 * WIDTH), name=f"r{layer}")
            x = self.added(x, self.dense(y, f"narrow{layer}", 2 * WIDTH, WIDTH), f"m{layer}_end")
        shape = [2, self.length, WIDTH]
        self.input("x", shape)
        self.output(x, shape)
        return self.model()


@pytest.mark.parametrize("is_causal", [False, True])
def test_each_attention_and_each_gradient_is_one_kernel(is_causal):
    made = heddle.compile(Encoder(24, is_causal).whole(), threads=1, cache=False, load=False,
                          training=RECIPE)
    cards = [group["card"] for group in made.plan["groups"]]
    assert cards.count("attention") == cards.count("attention_gradient") == LAYERS


def test_no_scores_lie_between_kernels():
    length = 256
    made = heddle.compile(Encoder(length, False).whole(), threads=1, cache=False, load=False,
                          without="recomputation", training={**RECIPE, "dropout": False})
    assert made.report["memory"]["between_kernels"] < 2 * HEADS * length**2 * 4


@pytest.fixture(params=[False, True], ids=["all", "causal"])
def files(request, tmp_path):
    (tmp_path / "encoder.onnx").write_bytes(Encoder(19, request.param).whole().SerializeToString())
    (tmp_path / "recipe.json").write_text(json.dumps(RECIPE))
    return tmp_path


def test_the_step_is_what_the_interpreter_computes(files):
    ok("compare", files / "encoder.onnx", "--training", files / "recipe.json")


def test_its_plan_is_carried_out(files):
    for name, options in (("first", []), ("second", ["--plan", files / "first.json"])):
        ok("plan", files / "encoder.onnx", "--training", files / "recipe.json", "--threads", 1,
           *options, "-o", files / f"{name}.json")
    assert (files / "first.json").read_bytes() == (files / "second.json").read_bytes()
