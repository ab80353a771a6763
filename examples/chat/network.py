"""network: GPT-2 of a small size for training, as ONNX.

Its weights have the names that transformers gives them, so that heddle.generate reads them beside
a config.json. SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
from heddle.onnx_graph import INT64, Graph

LAYERS, WIDTH, HEADS = 2, 64, 4


class Gpt2(Graph):
    """Tokens [batch, length] -> logits [batch * length, words]."""

    def __init__(self, words, length):
        super().__init__(seed=0)
        self.words, self.length = words, length

    def drawn(self, name, *shape):
        return self.weight(*shape, name=f"transformer.{name}", scale=0.08)

    def filled(self, name, size, value):
        return self.constant(np.full(size, value, np.float32), f"transformer.{name}")

    def norm(self, x, name):
        return self.op("LayerNormalization", x, self.filled(f"{name}.weight", WIDTH, 1),
                       self.filled(f"{name}.bias", WIDTH, 0), axis=-1, epsilon=1e-5)

    def dense(self, x, name, rows, columns):
        x = self.op("MatMul", x, self.drawn(f"{name}.weight", rows, columns))
        return self.op("Add", x, self.filled(f"{name}.bias", columns, 0))

    def shaped(self, x, *sizes):
        return self.op("Reshape", x, self.constant(np.int64(sizes)))

    def attention(self, x, name):
        heads = self.shaped(self.dense(x, f"{name}.c_attn", WIDTH, 3 * WIDTH),
                            0, 0, 3, HEADS, WIDTH // HEADS)
        heads = self.op("Transpose", heads, perm=[2, 0, 3, 1, 4])
        query, key, value = (self.op("Gather", heads, self.constant(np.int64(i)), axis=0)
                             for i in range(3))
        scores = self.op("MatMul", query, self.op("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.constant(np.float32((WIDTH // HEADS)**-0.5)))
        seen = self.constant(np.tri(self.length, dtype=bool))
        scores = self.op("Where", seen, scores, self.constant(np.float32(-1e9)))
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), value)
        y = self.shaped(self.op("Transpose", y, perm=[0, 2, 1, 3]), 0, 0, WIDTH)
        return self.dense(y, f"{name}.c_proj", WIDTH, WIDTH)

    def build(self):
        tokens = self.input("tokens", ["batch", self.length], INT64)
        words = self.drawn("wte.weight", self.words, WIDTH)
        x = self.op("Add", self.op("Gather", words, tokens),
                    self.drawn("wpe.weight", self.length, WIDTH))
        for i in range(LAYERS):
            x = self.op("Add", x, self.attention(self.norm(x, f"h.{i}.ln_1"), f"h.{i}.attn"))
            h = self.dense(self.norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc", WIDTH, 4 * WIDTH)
            h = self.op("Gelu", h, approximate="tanh")
            x = self.op("Add", x, self.dense(h, f"h.{i}.mlp.c_proj", 4 * WIDTH, WIDTH))
        x = self.shaped(self.norm(x, "ln_f"), -1, WIDTH)
        logits = self.op("MatMul", x, self.op("Transpose", words, perm=[1, 0]), name="logits")
        self.output(logits, ["rows", self.words])
        return self.model(opset=20, ir_version=10)


def config(words, length, end):
    """The config.json."""
    return {"model_type": "gpt2", "vocab_size": words, "n_positions": length, "n_embd": WIDTH,
            "n_layer": LAYERS, "n_head": HEADS, "activation_function": "gelu_new",
            "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True, "eos_token_id": end}
