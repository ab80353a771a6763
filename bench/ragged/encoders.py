"""The encoders of `./dev bench ragged`: CoRa's layer, made here, and BERT-base of the catalogue."""

from dataclasses import dataclass
from typing import Callable

import numpy as np
import onnx
from heddle.onnx_graph import FLOAT, INT64, Graph
from onnx import numpy_helper

from bench.models import catalogue

WIDE, HEADS, INNER = 512, 8, 2048


class Layer(Graph):
    """CoRa's layer, node by node."""

    def __init__(self):
        super().__init__(seed=7)

    def weight(self, *shape):
        return super().weight(*shape, scale=1 / 20)

    def linear(self, x, rows, columns):
        product = self.op("MatMul", x, self.weight(rows, columns))
        return self.op("Add", product, self.weight(columns))

    def normalized(self, x):
        return self.op("LayerNormalization", x, self.weight(WIDE), self.weight(WIDE), axis=-1)

    def attention(self, x, bias):
        split = self.constant(np.int64([0, 0, HEADS, WIDE // HEADS]))
        q, k, v = (self.op("Transpose", self.op("Reshape", self.linear(x, WIDE, WIDE), split),
                           perm=perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scale = self.constant(np.float32((WIDE / HEADS) ** -0.5))
        scores = self.op("Add", self.op("Mul", self.op("MatMul", q, k), scale), bias)
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        joined = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]),
                         self.constant(np.int64([0, 0, WIDE])))
        return self.linear(joined, WIDE, WIDE)

    def whole(self):
        """x [batch, seq, 512] and its mask [batch, seq] -> y."""
        kept = self.op("Unsqueeze", self.op("Cast", "mask", to=FLOAT),
                       self.constant(np.int64([1, 2])))
        bias = self.op("Mul", self.op("Sub", self.constant(np.float32(1)), kept),
                       self.constant(np.float32(-1e4)))
        x = self.normalized(self.op("Add", self.attention("x", bias), "x"))
        inner = self.linear(self.op("Relu", self.linear(x, WIDE, INNER)), INNER, WIDE)
        y = self.normalized(self.op("Add", inner, x))
        place = ["batch", "seq", WIDE]
        self.input("x", place)
        self.input("mask", place[:2], INT64)
        self.output(self.op("Identity", y, name="y"), place)
        return self.model()


@dataclass(frozen=True)
class Encoder:
    """A network of encoder layers; its second input is a mask, whose sizes are named."""

    model: onnx.ModelProto
    wide: int
    heads: int
    inner: int
    layers: int
    epsilon: float  # of its norms
    activation: str
    ragged: str
    values: Callable  # makes the first input of a shape [batch, longest]

    def inputs(self, lengths):
        """A padded batch and its mask."""
        shape = (len(lengths), max(lengths))
        mask = (np.arange(shape[1]) < np.array(lengths)[:, None]).astype(np.int64)
        first, second = (place.name for place in self.model.graph.input)
        return {first: self.values(shape), second: mask}

    def flops(self, lengths):
        """Multiplications and additions: products of tokens, and attention."""
        tokens, squares = sum(lengths), sum(length * length for length in lengths)
        products = 2 * (4 * self.wide * self.wide + 2 * self.wide * self.inner)
        return self.layers * (products * tokens + 4 * self.wide * squares)


def layer():
    """One layer of the sizes that CoRa's paper measures."""
    def values(shape):
        return np.random.default_rng(5).standard_normal((*shape, WIDE)).astype(np.float32)
    return Encoder(Layer().whole(), WIDE, HEADS, INNER, 1, 1e-5, "relu", "batch:seq=mask", values)


def bert_base():
    """All of BERT-base, of the catalogue; raises Missing where that cannot be had."""
    def values(shape):
        return np.random.default_rng(5).integers(0, 30000, shape)
    return Encoder(onnx.load(catalogue.find("bert_base").path()), 768, 12, 3072, 12, 1e-12, "gelu",
                   "batch:sequence=attention_mask", values)


NETWORKS = {"layer": layer, "bert_base": bert_base}


class Weights:
    """Constants of the products and norms of a network, in the order of its nodes."""

    def __init__(self, model):
        self.known = {value.name: value for value in model.graph.initializer}
        nodes = model.graph.node
        for node in nodes:
            if node.op_type == "Identity" and node.input[0] in self.known:
                self.known[node.output[0]] = self.known[node.input[0]]
        biases = {given: other for node in nodes if node.op_type == "Add"
                  for given, other in (node.input, reversed(node.input)) if other in self.known}
        self.linears = [(self.array(node.input[1]), self.array(biases[node.output[0]]))
                        for node in nodes
                        if node.op_type == "MatMul" and node.input[1] in self.known]
        self.norms = [tuple(map(self.array, node.input[1:])) for node in nodes
                      if node.op_type == "LayerNormalization"]

    def array(self, name):
        return numpy_helper.to_array(self.known[name])

    def table(self, ending):
        """The one constant whose name ends so, or None."""
        return next((self.array(name) for name in self.known if name.endswith(ending)), None)
