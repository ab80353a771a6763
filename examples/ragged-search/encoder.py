"""A small text encoder as an ONNX model, so that the example needs no file from anywhere.

It has the layers and sizes of MiniLM-L6 (6 layers, 384 wide, 12 heads, 1536 between) and nothing
that was trained: a word's vector is random, and as long as the word is rare. The layers add little
to it, so the mean over a text is a weighted bag of its words, with which one can already search.
"""

import numpy as np
from heddle.onnx_graph import FLOAT, INT64, Graph

LONGEST = 512


class Encoder(Graph):
    """The network, node by node: `rarity` has the weight of each word of the vocabulary."""

    def __init__(self, rarity, wide=384, layers=6, heads=12):
        super().__init__(seed=1)
        self.rarity, self.wide, self.layers, self.heads = rarity, wide, layers, heads

    def weight(self, *shape, scale=1.0):
        return super().weight(*shape, scale=scale / np.sqrt(shape[0]))

    def linear(self, x, rows, columns, scale=1.0):
        return self.op("Add", self.op("MatMul", x, self.weight(rows, columns, scale=scale)),
                       self.constant(np.zeros(columns, np.float32)))

    def normalised(self, x):
        one, zero = np.ones(self.wide, np.float32), np.zeros(self.wide, np.float32)
        return self.op("LayerNormalization", x, self.constant(one), self.constant(zero), axis=-1)

    def attention(self, x, bias):
        parts = self.constant(np.int64([0, 0, self.heads, self.wide // self.heads]))
        q, k, v = (self.op("Transpose", self.op("Reshape", self.linear(
            x, self.wide, self.wide), parts), perm=order)
                   for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scale = self.constant(np.float32((self.wide / self.heads) ** -0.5))
        scores = self.op("Add", self.op("Mul", self.op("MatMul", q, k), scale), bias)
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        joined = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]),
                         self.constant(np.int64([0, 0, self.wide])))
        return self.linear(joined, self.wide, self.wide, scale=0.1)

    def whole(self):
        """input_ids and attention_mask [batch, sequence] -> embedding [batch, wide]."""
        words = self.weight(len(self.rarity), self.wide, scale=np.sqrt(len(self.rarity)))
        table = self.op("Mul", words, self.constant(np.float32(self.rarity)[:, None]))
        mask = self.op("Unsqueeze", self.op("Cast", "attention_mask", to=FLOAT),
                       self.constant(np.int64([1, 2])))
        bias = self.op("Mul", self.op("Sub", self.constant(np.float32(1)), mask),
                       self.constant(np.float32(-1e4)))
        length = self.op("Shape", "input_ids", start=1, end=2)
        places = self.op("Slice", self.weight(LONGEST, self.wide), self.constant(np.int64([0])),
                         length, self.constant(np.int64([0])))
        x = self.op("Add", self.op("Gather", table, "input_ids"), places)
        for _ in range(self.layers):
            x = self.op("Add", x, self.attention(self.normalised(x), bias))
            inner = self.op("Gelu", self.linear(self.normalised(x), self.wide, 4 * self.wide))
            x = self.op("Add", x, self.linear(inner, 4 * self.wide, self.wide, scale=0.1))
        kept = self.op("Squeeze", mask, self.constant(np.int64([1])))
        kept = self.op("Transpose", kept, perm=[0, 2, 1])
        axis = self.constant(np.int64([1]))
        y = self.op("Div", self.op("ReduceSum", self.op("Mul", x, kept), axis, keepdims=0),
                    self.op("ReduceSum", kept, axis, keepdims=0), name="embedding")
        for name in ("input_ids", "attention_mask"):
            self.input(name, ["batch", "sequence"], INT64)
        self.output(y, ["batch", self.wide])
        return self.model(20, 9)
