"""Ten ways in which exporters write attention: each is one kernel of the one attention card, and
equal to ONNX Runtime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import heddle
from heddle.onnx_graph import Graph

from bench.kernels.engines import runtime_session

pytestmark = pytest.mark.usefixtures("compiler")
B, H, S, D = 2, 4, 9, 16
FLOAT, BOOL = TensorProto.FLOAT, TensorProto.BOOL


class Writer(Graph):
    """Nodes and inputs of a model as they are added."""

    def __init__(self):
        super().__init__(seed=3)
        self.feeds = {}

    def fed(self, name, *shape):
        self.feeds[name] = self.random.standard_normal(shape).astype(np.float32)
        return self.input(name, shape)

    __call__ = Graph.op

    def heads(self, x, heads=H):
        """[B, S, heads * D] -> [B, heads, S, D]"""
        x = self("Reshape", x, self.constant(np.array([0, 0, heads, D])))
        return self("Transpose", x, perm=[0, 2, 1, 3])

    def merged(self, x):
        x = self("Transpose", x, perm=[0, 2, 1, 3])
        return self("Reshape", x, self.constant(np.array([0, 0, H * D])))

    def inputs_of_heads(self):
        return [self.heads(self.fed(name, B, S, H * D)) for name in "qkv"]

    def scores(self, q, k):
        return self("MatMul", q, self("Transpose", k, perm=[0, 1, 3, 2]))

    def scaled(self, x, power=-0.5):
        return self("Mul", x, self.constant(np.float32(D**power)))

    def rest(self, scores, v):
        return self.merged(self("MatMul", self("Softmax", scores, axis=-1), v))


def scale_after(w):
    q, k, v = w.inputs_of_heads()
    return w.rest(w.scaled(w.scores(q, k)), v)


def scale_before(w):
    """On both operands, as PyTorch's scaled_dot_product_attention is exported."""
    q, k, v = w.inputs_of_heads()
    return w.rest(w.scores(w.scaled(q, -0.25), w.scaled(k, -0.25)), v)


def additive_mask(w):
    q, k, v = w.inputs_of_heads()
    mask = w.fed("mask", B, 1, 1, S)
    scores = w("Div", w.scores(q, k), w.constant(np.float32(D**0.5)))
    return w.rest(w("Add", scores, mask), v)


def where_mask(w):
    q, k, v = w.inputs_of_heads()
    keep = w("Greater", w.fed("mask", B, 1, 1, S), w.constant(np.float32(-1)))
    return w.rest(w("Where", keep, w.scaled(w.scores(q, k)), w.constant(np.float32(-1e9))), v)


def causal_by_trilu(w):
    q, k, v = w.inputs_of_heads()
    ones = w("ConstantOfShape", w.constant(np.array([S, S])),
             value=numpy_helper.from_array(np.ones(1, np.float32)))
    keep = w("Cast", w("Trilu", ones, upper=0), to=BOOL)
    return w.rest(w("Where", keep, w.scaled(w.scores(q, k)), w.constant(np.float32(-np.inf))), v)


def causal_by_constant(w):
    q, k, v = w.inputs_of_heads()
    keep = w.constant(np.tril(np.ones((1, 1, S, S), bool)))
    return w.rest(w("Where", keep, w.scaled(w.scores(q, k)), w.constant(np.float32(-3e38))), v)


def fused_projection(w):
    """One tensor of queries, keys and values, split."""
    parts = w("Split", w.fed("qkv", B, S, 3 * H * D), axis=2, outputs=3,
              **({"num_outputs": 3}))
    q, k, v = (w.heads(part) for part in parts)
    return w.rest(w.scaled(w.scores(q, k)), v)


def grouped_by_expand(w):
    """Two heads of keys and values for four of queries, repeated by Expand."""
    q = w.heads(w.fed("q", B, S, H * D))
    k, v = (w.heads(w.fed(name, B, S, 2 * D), 2) for name in "kv")

    def repeated(x):
        x = w("Unsqueeze", x, w.constant(np.array([2])))
        x = w("Expand", x, w.constant(np.array([B, 2, 2, S, D])))
        return w("Reshape", x, w.constant(np.array([B, H, S, D])))

    return w.rest(w.scaled(w.scores(q, repeated(k))), repeated(v))


def transposed_once(w):
    """Keys go to their place in one transpose."""
    q, _, v = w.inputs_of_heads()
    k = w("Reshape", "k", w.constant(np.array([0, 0, H, D])))
    return w.rest(w.scaled(w("MatMul", q, w("Transpose", k, perm=[0, 2, 3, 1]))), v)


def cached_keys(w):
    q, k, v = w.inputs_of_heads()
    k = w("Concat", w.fed("past_k", B, H, 5, D), k, axis=2)
    v = w("Concat", w.fed("past_v", B, H, 5, D), v, axis=2)
    return w.rest(w.scaled(w.scores(q, k)), v)


def opset_23(w):
    q, k, v = w.inputs_of_heads()
    return w.merged(w("Attention", q, k, v))


WAYS = [scale_after, scale_before, additive_mask, where_mask, causal_by_trilu, causal_by_constant,
        fused_projection, grouped_by_expand, transposed_once, cached_keys, opset_23]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_is_one_kernel(way):
    writer = Writer()
    result = way(writer)
    opset = 23 if way is opset_23 else 18
    writer.output(result, [B, S, H * D])
    model = writer.model(opset, 10)
    onnx.checker.check_model(model)
    compiled = heddle.compile(model)
    cards = [group["card"] for group in compiled.compiled.plan["groups"]]
    assert cards.count("attention") == 1, cards
    assert len(cards) <= 2, cards  # a mask that does not depend on the heads may be apart
    found = compiled.run(None, writer.feeds)[0]
    peer = runtime_session(model)
    np.testing.assert_allclose(found, peer.run(None, writer.feeds)[0], rtol=2e-5, atol=2e-6)
