"""The encoders of `./dev bench ragged`: CoRa's layer, made here, and BERT-base of the catalogue."""

from dataclasses import dataclass
from typing import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bench.models import catalogue

WIDE, HEADS, INNER = 512, 8, 2048


class Layer:
    """CoRa's layer, node by node."""

    def __init__(self):
        self.random = np.random.default_rng(7)
        self.nodes, self.constants = [], []

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape):
        return self.constant((self.random.standard_normal(shape) / 20).astype(np.float32))

    def node(self, op, *inputs, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name, **attributes))
        return name

    def linear(self, x, rows, columns):
        product = self.node("MatMul", x, self.weight(rows, columns))
        return self.node("Add", product, self.weight(columns))

    def normalized(self, x):
        return self.node("LayerNormalization", x, self.weight(WIDE), self.weight(WIDE), axis=-1)

    def attention(self, x, bias):
        split = self.constant(np.int64([0, 0, HEADS, WIDE // HEADS]))
        q, k, v = (self.node("Transpose", self.node("Reshape", self.linear(x, WIDE, WIDE), split),
                             perm=perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scale = self.constant(np.float32((WIDE / HEADS) ** -0.5))
        scores = self.node("Add", self.node("Mul", self.node("MatMul", q, k), scale), bias)
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        joined = self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]),
                           self.constant(np.int64([0, 0, WIDE])))
        return self.linear(joined, WIDE, WIDE)

    def model(self):
        """x [batch, seq, 512] and its mask [batch, seq] -> y."""
        kept = self.node("Unsqueeze", self.node("Cast", "mask", to=TensorProto.FLOAT),
                         self.constant(np.int64([1, 2])))
        bias = self.node("Mul", self.node("Sub", self.constant(np.float32(1)), kept),
                         self.constant(np.float32(-1e4)))
        x = self.normalized(self.node("Add", self.attention("x", bias), "x"))
        inner = self.linear(self.node("Relu", self.linear(x, WIDE, INNER)), INNER, WIDE)
        y = self.normalized(self.node("Add", inner, x))
        self.nodes.append(helper.make_node("Identity", [y], ["y"]))
        place = ["batch", "seq", WIDE]
        graph = helper.make_graph(
            self.nodes, "encoder",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, place),
             helper.make_tensor_value_info("mask", TensorProto.INT64, place[:2])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, place)], self.constants)
        return helper.make_model(graph, ir_version=8,
                                 opset_imports=[helper.make_opsetid("", 17)])


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
    return Encoder(Layer().model(), WIDE, HEADS, INNER, 1, 1e-5, "relu", "batch:seq=mask", values)


def bert_base():
    """All of BERT-base, of the catalogue; raises Missing where that cannot be had."""
    def values(shape):
        return np.random.default_rng(5).integers(0, 30000, shape)
    return Encoder(onnx.load(catalogue.find("bert_base").path()), 768, 12, 3072, 12, 1e-12, "gelu",
                   "batch:sequence=attention_mask", values)


NETWORKS = {"layer": layer, "bert_base": bert_base}


class Weights:
    """What is constant in the products and norms of a network, in the order of its nodes."""

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
