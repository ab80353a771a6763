"""A small text encoder as an ONNX model, so that the example needs no file from anywhere.

It has the layers and sizes of MiniLM-L6 (6 layers, 384 wide, 12 heads, 1536 between) and nothing
that was trained: a word's vector is random, and as long as the word is rare. The layers add little
to it, so the mean over a text is a weighted bag of its words, with which one can already search.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

LONGEST = 512


class Encoder:
    """The network, node by node: `rarity` has the weight of each word of the vocabulary."""

    def __init__(self, rarity, wide=384, layers=6, heads=12):
        self.random = np.random.default_rng(1)
        self.rarity, self.wide, self.layers, self.heads = rarity, wide, layers, heads
        self.nodes, self.constants = [], []

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape, scale=1.0):
        found = self.random.standard_normal(shape) * scale / np.sqrt(shape[0])
        return self.constant(found.astype(np.float32))

    def node(self, op, *inputs, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name, **attributes))
        return name

    def linear(self, x, rows, columns, scale=1.0):
        return self.node("Add", self.node("MatMul", x, self.weight(rows, columns, scale=scale)),
                         self.constant(np.zeros(columns, np.float32)))

    def normalised(self, x):
        one, zero = np.ones(self.wide, np.float32), np.zeros(self.wide, np.float32)
        return self.node("LayerNormalization", x, self.constant(one), self.constant(zero), axis=-1)

    def attention(self, x, bias):
        parts = self.constant(np.int64([0, 0, self.heads, self.wide // self.heads]))
        q, k, v = (self.node("Transpose", self.node("Reshape", self.linear(
            x, self.wide, self.wide), parts), perm=order)
                   for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scale = self.constant(np.float32((self.wide / self.heads) ** -0.5))
        scores = self.node("Add", self.node("Mul", self.node("MatMul", q, k), scale), bias)
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        joined = self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]),
                           self.constant(np.int64([0, 0, self.wide])))
        return self.linear(joined, self.wide, self.wide, scale=0.1)

    def model(self):
        """input_ids and attention_mask [batch, sequence] -> embedding [batch, wide]."""
        words = self.weight(len(self.rarity), self.wide, scale=np.sqrt(len(self.rarity)))
        table = self.node("Mul", words, self.constant(np.float32(self.rarity)[:, None]))
        mask = self.node("Unsqueeze", self.node("Cast", "attention_mask", to=TensorProto.FLOAT),
                         self.constant(np.int64([1, 2])))
        bias = self.node("Mul", self.node("Sub", self.constant(np.float32(1)), mask),
                         self.constant(np.float32(-1e4)))
        length = self.node("Shape", "input_ids", start=1, end=2)
        places = self.node("Slice", self.weight(LONGEST, self.wide), self.constant(np.int64([0])),
                           length, self.constant(np.int64([0])))
        x = self.node("Add", self.node("Gather", table, "input_ids"), places)
        for _ in range(self.layers):
            x = self.node("Add", x, self.attention(self.normalised(x), bias))
            inner = self.node("Gelu", self.linear(self.normalised(x), self.wide, 4 * self.wide))
            x = self.node("Add", x, self.linear(inner, 4 * self.wide, self.wide, scale=0.1))
        kept = self.node("Squeeze", mask, self.constant(np.int64([1])))
        kept = self.node("Transpose", kept, perm=[0, 2, 1])
        axis = self.constant(np.int64([1]))
        self.nodes.append(helper.make_node(
            "Div", [self.node("ReduceSum", self.node("Mul", x, kept), axis, keepdims=0),
                    self.node("ReduceSum", kept, axis, keepdims=0)], ["embedding"], "embedding"))
        rows = ["batch", "sequence"]
        graph = helper.make_graph(
            self.nodes, "encoder",
            [helper.make_tensor_value_info(name, TensorProto.INT64, rows)
             for name in ("input_ids", "attention_mask")],
            [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", self.wide])],
            self.constants)
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 20)])
