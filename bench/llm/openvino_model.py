"""Decoders as OpenVINO's own exporter makes them, of its opset: keys and values are variables, and
attention, rotations and norms have the forms that its CPU plug-in knows.

Weights of 4 bits have a scale for each block of 32, those of 8 bits one for each row, as NNCF
writes them: these weights have the same for all blocks of a row.
"""

import numpy as np
import openvino
from openvino import opset13 as ops
from openvino.op import Constant

from bench.llm.network import BLOCK


def number(value, kind=np.int64):
    return ops.constant(np.asarray(value, kind))


class Writer:
    """Makes one decoder of `made` sizes."""

    def __init__(self, made, weights):
        self.made, self.weights = made, weights
        self.parameters, self.sinks = [], []
        self.kept = []  # arrays whose memory constants share

    def parameter(self, name, kind, rank):
        node = ops.parameter(openvino.PartialShape([-1] * rank), kind, name=name)
        node.output(0).set_names({name})
        self.parameters.append(node)
        return node

    def typed(self, array, shape, kind):
        """A constant of a type that NumPy lacks, from its bytes."""
        self.kept.append(np.ascontiguousarray(array))
        return Constant(openvino.Tensor(self.kept[-1], openvino.Shape(shape), kind))

    def matrix(self, name):
        """A matrix of floats [out, in], from what it is stored as."""
        kept = self.weights.quantised(name)
        if kept is None:
            array = self.weights.read(name)
            if self.weights.kind != "bf16":
                return ops.constant(array)
            bits = (array.view(np.uint32) >> 16).astype(np.uint16)
            return ops.convert(self.typed(bits, array.shape, openvino.Type.bf16), "f32")
        bits, codes, scales = kept.bits, kept.packed(), kept.scales
        rows, blocks, _ = codes.shape
        if bits == 8:
            whole = self.typed((codes ^ 0x80).reshape(rows, -1), [rows, blocks * BLOCK],
                          openvino.Type.i8)
            scaled = ops.multiply(ops.convert(whole, "f16"), number(scales[:, :1], np.float16))
            return ops.convert(scaled, "f32")
        whole = self.typed(codes ^ 0x88, [rows, blocks, BLOCK], openvino.Type.i4)
        scaled = ops.multiply(ops.convert(whole, "f16"), number(scales[:, :, None], np.float16))
        return ops.convert(ops.reshape(scaled, number([rows, blocks * BLOCK]), False), "f32")

    def linear(self, x, name):
        return ops.matmul(x, self.matrix(f"{name}.weight"), False, True)

    def norm(self, x, name):
        squares = ops.reduce_mean(ops.power(x, number(2, np.float32)), number([-1]), True)
        root = ops.sqrt(ops.add(squares, number(self.made.epsilon, np.float32)))
        scaled = ops.multiply(x, ops.divide(number(1, np.float32), root))
        return ops.multiply(number(self.weights.read(f"{name}.weight"), np.float32), scaled)

    def heads(self, x, count):
        shape = number([0, 0, count, self.made.head_size])
        return ops.transpose(ops.reshape(x, shape, True), number([0, 2, 1, 3]))

    def rotated(self, x):
        half, most = self.made.head_size // 2, np.iinfo(np.int32).max
        first, second = (ops.slice(x, number([begin]), number([end]), number([1]), number([3]))
                         for begin, end in ((0, half), (half, most)))
        turned = ops.concat([ops.multiply(second, number(-1, np.float32)), first], -1)
        return ops.add(ops.multiply(x, self.cos), ops.multiply(turned, self.sin))

    def rotations(self, positions):
        """cos and sin [batch, 1, tokens, head size] of the positions."""
        half = self.made.head_size // 2
        rates = self.made.ropes[0].theta ** (-np.arange(half) / half)
        angles = ops.multiply(ops.convert(ops.unsqueeze(positions, number(-1)), "f32"),
                              number(rates[None, None], np.float32))
        both = ops.unsqueeze(ops.concat([angles, angles], -1), number(1))
        self.cos, self.sin = ops.cos(both), ops.sin(both)

    def extended(self, more, name):
        """Keys or values of all tokens: those of a variable, and more; for each head of queries."""
        made = self.made
        empty = ops.broadcast(number(0, np.float32),
                              ops.concat([self.batch, number([made.kv_heads, 0, made.head_size])],
                                         0))
        past = ops.read_value(empty, name, openvino.Type.f32, openvino.PartialShape(
            [-1, made.kv_heads, -1, made.head_size]))
        whole = ops.concat([ops.gather(past, self.order, number(0)), more], 2)
        self.sinks.append(ops.assign(whole, name))
        times = made.heads // made.kv_heads
        if times == 1:
            return whole
        wide = ops.multiply(ops.unsqueeze(whole, number(2)),
                            number(np.ones((1, 1, times, 1, 1)), np.float32))
        return ops.reshape(wide, number([0, made.heads, -1, made.head_size]), True)

    def masked(self, tokens, mask):
        """[batch, 1, tokens, all]: the least float where a token must not look."""
        every = ops.gather(ops.shape_of(mask), number(1), number(0))
        count = ops.gather(ops.shape_of(tokens), number(1), number(0))
        keys = ops.range(number(0), every, number(1), "i64")
        queries = ops.range(ops.subtract(every, count), every, number(1), "i64")
        seen = ops.logical_and(
            ops.less_equal(ops.unsqueeze(keys, number([0, 1, 2])),
                           ops.unsqueeze(queries, number([0, 1, 3]))),
            ops.convert(ops.unsqueeze(mask, number([1, 2])), "boolean"))
        return ops.select(seen, number(0, np.float32), number(np.finfo(np.float32).min,
                                                              np.float32))

    def layer(self, i, x):
        made, source = self.made, f"model.layers.{i}"
        h = self.norm(x, f"{source}.input_layernorm")
        query, key, value = (self.heads(self.linear(h, f"{source}.self_attn.{name}_proj"), count)
                             for name, count in (("q", made.heads), ("k", made.kv_heads),
                                                 ("v", made.kv_heads)))
        key = self.extended(self.rotated(key), f"past_key_values.{i}.keypresent.{i}.key")
        value = self.extended(value, f"past_key_values.{i}.valuepresent.{i}.value")
        y = ops.scaled_dot_product_attention(self.rotated(query), key, value, self.mask)
        y = ops.reshape(ops.transpose(y, number([0, 2, 1, 3])), number([0, 0, -1]), True)
        x = ops.add(x, self.linear(y, f"{source}.self_attn.o_proj"))
        h = self.norm(x, f"{source}.post_attention_layernorm")
        gate = ops.swish(self.linear(h, f"{source}.mlp.gate_proj"))
        y = ops.multiply(gate, self.linear(h, f"{source}.mlp.up_proj"))
        return ops.add(x, self.linear(y, f"{source}.mlp.down_proj"))

    def write(self, path):
        """Writes the model as XML with its weights beside it; logits are of the last token."""
        tokens = self.parameter("input_ids", np.int64, 2)
        mask = self.parameter("attention_mask", np.int64, 2)
        positions = self.parameter("position_ids", np.int64, 2)
        self.order = self.parameter("beam_idx", np.int32, 1)
        self.batch = ops.gather(ops.shape_of(tokens), number([0]), number(0))
        self.mask = self.masked(tokens, mask)
        self.rotations(positions)
        table = ops.constant(self.weights.read("model.embed_tokens.weight"))
        x = ops.gather(table, tokens, number(0))
        for i in range(self.made.layers):
            x = self.layer(i, x)
        x = self.norm(ops.gather(x, number([-1]), number(1)), "model.norm")
        logits = self.linear(x, "lm_head")
        logits.output(0).set_names({"logits"})
        model = openvino.Model([ops.result(logits)], self.sinks, self.parameters, "decoder")
        openvino.save_model(model, path, compress_to_fp16=False)
