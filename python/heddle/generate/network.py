"""network: the ONNX graph of a decoder, as onnxruntime-genai's builder writes it.

Inputs are input_ids [batch, sequence], attention_mask [batch, total] (and position_ids, where
positions are learned), past_key_values.N.key/value and, beyond that builder, logits_at: the places
whose logits are wanted, mostly the last one. Outputs are logits and present.N.key/value.
Weights go to one file beside the graph, one by one: none of them is in memory twice.
SPDX-License-Identifier: Apache-2.0
"""

import os

import numpy as np

from .. import onnx_graph
from ..library import RefusedError
from . import rope

OPSET, INLINE, ALIGNED = 21, 1024, 64  # bytes
INT32 = 6  # of onnx.TensorProto
ROUNDED = 4  # accuracy_level: activations have 8 bits where weights have 4 or 8
INPUTS, MASK, POSITIONS, LOGITS = "input_ids", "attention_mask", "position_ids", "logits"
LAST = "logits_at"  # places of a run's tokens whose logits are wanted, [last]
BATCH, SEQUENCE, TOTAL, PAST = ("batch_size", "sequence_length", "total_sequence_length",
                                "past_sequence_length")
MICROSOFT = "com.microsoft"
NOTHING = -1e30  # added to scores of keys that are no part of a text


class Network(onnx_graph.Graph):
    """A graph whose large constants are in a file."""

    def __init__(self, file):
        super().__init__()
        self._file = file
        self._name = os.path.basename(file.name)
        self._made = {}  # name -> TensorProto

    def constant(self, value, name=None):
        name = name or f"constant_{len(self._made)}"
        if name in self._made:
            return name
        value = np.ascontiguousarray(value)
        if value.nbytes <= INLINE:
            self._made[name] = self.onnx.numpy_helper.from_array(value, name)
            return name
        self._file.write(bytes(-self._file.tell() % ALIGNED))
        tensor = self.onnx.TensorProto(
            name=name, dims=value.shape, data_location=self.onnx.TensorProto.EXTERNAL,
            data_type=self.onnx.helper.np_dtype_to_tensor_dtype(value.dtype))
        for key, what in (("location", self._name), ("offset", self._file.tell()),
                          ("length", value.nbytes)):
            tensor.external_data.add(key=key, value=str(what))
        self._file.write(value.data)
        self._made[name] = tensor
        return name

    def finish(self):
        """The ModelProto."""
        self._file.flush()
        return onnx_graph.make_model(self.nodes, self.inputs, self.outputs,
                                     list(self._made.values()), OPSET, {MICROSOFT: 1})


class Writer:
    """Adds the nodes of one decoder to a network."""

    def __init__(self, made, weights, network, context):
        self.made, self.weights, self.net, self.context = made, weights, network, context

    def linear(self, x, source, name, columns=None, bias=None, turned=True):
        """x times a matrix of the weights, [out, in] where it is `turned`; and its bias."""
        matrix = f"{source}.weight"
        codes = self.weights.quantised(matrix)
        if codes is not None:
            y = self.product(x, codes, matrix, name)
        else:
            array = self.weights.read(matrix)
            array = array.T if turned else array
            if array.ndim != 2 or (columns and array.shape[1] != columns):
                raise RefusedError(f"{self.weights.where}: '{matrix}' is {list(array.shape[::-1])}"
                                   f", but config.json wants {columns} rows")
            y = self.net.op("MatMul", x, self.net.constant(array, matrix), name=name)
        bias = bias or f"{source}.bias"
        if bias not in self.weights:
            return y
        return self.net.op("Add", y, self.net.constant(self.weights.read(bias), bias),
                           name=f"{name}/bias")

    def product(self, x, codes, matrix, name):
        """x times the rows of a matrix of Codes."""
        net = self.net
        rows, columns = codes.codes.shape
        zeros = ([] if codes.zeros is None
                 else [net.constant(codes.zeros.reshape(-1), f"{matrix}.zeros")])
        return net.op("MatMulNBits", x, net.constant(codes.packed(), f"{matrix}.packed"),
                      net.constant(codes.scales.reshape(-1), f"{matrix}.scales"), *zeros, name=name,
                      domain=MICROSOFT, N=rows, K=columns, bits=codes.bits, block_size=codes.part,
                      accuracy_level=ROUNDED)

    def embedded(self, words, codes):
        """Rows of the words' table, of Codes if there are some."""
        net = self.net
        if codes is None:
            return net.op("Gather", net.constant(self.table(words, self.made.words), words), INPUTS,
                          name="embed", axis=0)
        if codes.codes.shape != (self.made.words, self.made.width):
            raise RefusedError(f"{self.weights.where}: '{words}' is {list(codes.codes.shape)}, but "
                               f"its sizes say {[self.made.words, self.made.width]}")

        def rows(values, part):
            return net.op("Gather", net.constant(values, f"{words}.{part}"), INPUTS,
                          name=f"embed/{part}", axis=0)

        last = net.constant(np.int64([-1]), "last_axis")
        numbers = net.op("Cast", rows(codes.parts(), "codes"), name="embed/numbers",
                         to=onnx_graph.FLOAT)
        zeros = (net.constant(np.float32(codes.middle), "embed/middle") if codes.zeros is None
                 else net.op("Unsqueeze", rows(codes.zeros, "zeros"), last, name="embed/zero"))
        scales = net.op("Unsqueeze", rows(codes.scales, "table_scales"), last, name="embed/scale")
        scaled = net.op("Mul", net.op("Sub", numbers, zeros, name="embed/centred"), scales,
                        name="embed/scaled_codes")
        return net.op("Reshape", scaled, net.constant(np.int64([0, 0, -1]), "embed/shape"),
                      name="embed")

    def table(self, name, rows, columns=None):
        """A tensor of so many rows, as wide as the model unless `columns` says more."""
        table, wanted = self.weights.read(name), (rows, columns or self.made.width)
        if table.shape != wanted:
            raise RefusedError(f"{self.weights.where}: '{name}' is {list(table.shape)}, but "
                               f"config.json says {list(wanted)}")
        return table

    def norm(self, x, source, name):
        made = self.made
        weight = self.weights.read(f"{source}.weight")
        weight = self.net.constant(weight + np.float32(made.family.plus_one and not getattr(
            self.weights, "has_plus_one", False)), f"{source}.weight")
        if made.family.gpt2:
            bias = self.net.constant(self.weights.read(f"{source}.bias"), f"{source}.bias")
            return self.net.op("LayerNormalization", x, weight, bias, name=name, axis=-1,
                               epsilon=made.epsilon)
        return self.net.op("SimplifiedLayerNormalization", x, weight, name=name, axis=-1,
                           epsilon=made.epsilon, stash_type=1)

    def head_norm(self, x, source, heads, name):
        """The norm of each head of x, if the weights have one."""
        if f"{source}.weight" not in self.weights:
            return x
        size = self.made.head_size
        split = self.net.constant(np.int64([0, 0, heads, size]), f"split_{heads}")
        whole = self.net.constant(np.int64([0, 0, heads * size]), f"whole_{heads}")
        y = self.norm(self.net.op("Reshape", x, split, name=f"{name}/split"), source, name)
        return self.net.op("Reshape", y, whole, name=f"{name}/whole")

    def active(self, x, name):
        kind = self.made.activation
        if kind == "silu":
            return self.net.op("Mul", x, self.net.op("Sigmoid", x, name=f"{name}/sigmoid"),
                               name=name)
        if kind == "relu":
            return self.net.op("Relu", x, name=name)
        return self.net.op("Gelu", x, name=name,
                           approximate="tanh" if kind == "tanh" else "none")

    def split(self, x, name):
        """Heads [batch, heads, tokens, size] of x."""
        made, net = self.made, self.net
        sizes = net.constant(np.int64([0, 0, made.heads, made.head_size]), "split_heads")
        return net.op("Transpose", net.op("Reshape", x, sizes, name=f"{name}/split"),
                      name=f"{name}/heads", perm=[0, 2, 1, 3])

    def attend(self, query, key, value, bias, name):
        """Attention of heads to all keys, [batch, tokens, heads * size]."""
        made, net = self.made, self.net
        if made.scale != 1:
            query = net.op("Mul", query, net.constant(np.float32(made.scale), "scale"))
        scores = net.op("MatMul", query, net.op("Transpose", key, perm=[0, 1, 3, 2]))
        if bias is not None:
            scores = net.op("Add", scores, bias)
        y = net.op("MatMul", net.op("Softmax", scores, axis=-1), value, name=f"{name}/heads")
        whole = net.constant(np.int64([0, 0, made.heads * made.head_size]), "whole_heads")
        return net.op("Reshape", net.op("Transpose", y, perm=[0, 2, 1, 3]), whole, name=name)

    def attention(self, i, query, key, value, name, bias=""):
        """Attention that extends the past of layer i; a bias is added to its scores."""
        made = self.made
        pasts = [self.net.input(f"past_key_values.{i}.{each}",
                                [BATCH, made.kv_heads, PAST, made.head_size])
                 for each in ("key", "value")]
        presents = [self.net.output(f"present.{i}.{each}",
                                    [BATCH, made.kv_heads, TOTAL, made.head_size])
                    for each in ("key", "value")]
        turn, more = made.ropes[i], {}
        tables = []
        if turn is not None:
            # Layers with the same rotation share its tables.
            which = f"rope_{made.ropes.index(turn)}"
            tables = [f"{which}.cos", f"{which}.sin"]
            if which not in self.done:
                self.done.add(which)
                for each, array in zip(tables, rope.tables(turn, self.context,
                                                           self.weights.where)):
                    self.net.constant(array, each)
            more = {"do_rotary": 1, "rotary_interleaved": int(turn.interleaved)}
        if made.windows[i] is not None:
            more["local_window_size"] = made.windows[i]
        if made.attention_cap:
            more["softcap"] = made.attention_cap
        node = onnx_graph.make_node(
            "GroupQueryAttention",
            [query, key, value, *pasts, "seqlens_k", "total_length",
             *(["", "", "", bias] if bias else tables)],
            [name, *presents], name, domain=MICROSOFT, num_heads=made.heads,
            kv_num_heads=made.kv_heads, scale=made.scale, **more)
        self.net.nodes.append(node)
        return name

    def lengths(self):
        """Lengths of the keys less 1, by batch, and that of the longest, from the mask."""
        net = self.net
        net.input(MASK, [BATCH, TOTAL], onnx_graph.INT64)
        one, axis = net.constant(np.int64([1]), "one"), net.constant(np.int64(1), "axis")
        count = net.op("ReduceSum", MASK, one, name="mask/count", keepdims=0)
        net.op("Cast", net.op("Sub", count, one, name="mask/last"), name="seqlens_k", to=INT32)
        total = net.op("Gather", net.op("Shape", MASK, name="mask/shape"), axis, name="mask/total")
        net.op("Cast", total, name="total_length", to=INT32)

    def write(self):
        """The whole network, as a ModelProto."""
        made, net = self.made, self.net
        self.done = set()
        net.input(INPUTS, [BATCH, SEQUENCE], onnx_graph.INT64)
        self.lengths()
        top, words = (("transformer", "transformer.wte.weight") if made.family.gpt2
                      else ("model", "model.embed_tokens.weight"))
        codes = self.weights.quantised(words)
        x = self.embedded(words, codes)
        if made.family.scaled_words:
            x = net.op("Mul", x, net.constant(np.float32(made.width**0.5), "width_root"),
                       name="embed/scaled")
        layer = self.layer
        if made.family.gpt2:
            net.input(POSITIONS, [BATCH, SEQUENCE], onnx_graph.INT64)
            places = net.constant(self.weights.read("transformer.wpe.weight"), "wpe")
            x = net.op("Add", x, net.op("Gather", places, POSITIONS, name="places"), name="placed")
            layer = self.gpt2_layer
        for i in range(made.layers):
            x = layer(i, x)
        x = self.last(x)
        x = self.norm(x, f"{top}.{'ln_f' if made.family.gpt2 else 'norm'}", "norm")
        is_tied = made.tied or "lm_head.weight" not in self.weights
        if is_tied and codes is not None:
            x = self.product(x, codes, words, "head")
        elif is_tied:
            x = net.op("MatMul", x, net.op("Transpose", words, name="head/words", perm=[1, 0]),
                       name="head")
        else:
            x = self.linear(x, "lm_head", "head", made.words)
        if made.logit_cap:
            cap = net.constant(np.float32(made.logit_cap), "logit_cap")
            x = net.op("Mul", net.op("Tanh", net.op("Div", x, cap)), cap)
        return self.finish(x)

    def last(self, x):
        """Rows of x at the places whose logits are wanted."""
        self.net.input(LAST, ["last"], onnx_graph.INT64)
        return self.net.op("Gather", x, LAST, name="last", axis=1)

    def finish(self, x):
        """The ModelProto, whose logits are x."""
        net = self.net
        net.nodes.append(onnx_graph.make_node("Identity", [x], [LOGITS], LOGITS))
        net.outputs.insert(0, onnx_graph.make_value(LOGITS, [BATCH, "last", self.made.words]))
        return net.finish()

    def layer(self, i, x):
        made, net = self.made, self.net
        source, name = f"model.layers.{i}", f"layer.{i}"
        attention = f"{source}.self_attn"
        h = self.norm(x, f"{source}.input_layernorm", f"{name}/norm")
        queries, keys = made.heads * made.head_size, made.kv_heads * made.head_size
        if made.family.packed:
            query, key, value = self.linear(h, f"{attention}.qkv_proj", f"{name}/qkv",
                                            queries + 2 * keys), "", ""
        else:
            query, key, value = (
                self.linear(h, f"{attention}.{which}_proj", f"{name}/{which}", size)
                for which, size in (("q", queries), ("k", keys), ("v", keys)))
            query = self.head_norm(query, f"{attention}.q_norm", made.heads, f"{name}/q_norm")
            key = self.head_norm(key, f"{attention}.k_norm", made.kv_heads, f"{name}/k_norm")
        y = self.attention(i, query, key, value, f"{name}/attention")
        y = self.linear(y, f"{attention}.o_proj", f"{name}/o", made.width)
        after = f"{source}.post_attention_layernorm"
        if made.family.sandwich:
            y = self.norm(y, after, f"{name}/attention_norm")
        x = net.op("Add", x, y, name=f"{name}/attended")
        before = f"{source}.pre_feedforward_layernorm" if made.family.sandwich else after
        h = self.norm(x, before, f"{name}/mlp_norm")
        if made.family.packed:
            both = self.linear(h, f"{source}.mlp.gate_up_proj", f"{name}/gate_up",
                               2 * made.hidden)
            gate, up = net.op("Split", both, name=f"{name}/split", outputs=2, axis=-1,
                              num_outputs=2)
        else:
            gate = self.linear(h, f"{source}.mlp.gate_proj", f"{name}/gate", made.hidden)
            up = self.linear(h, f"{source}.mlp.up_proj", f"{name}/up", made.hidden)
        y = net.op("Mul", self.active(gate, f"{name}/active"), up, name=f"{name}/gated")
        y = self.linear(y, f"{source}.mlp.down_proj", f"{name}/down", made.width)
        if made.family.sandwich:
            y = self.norm(y, f"{source}.post_feedforward_layernorm", f"{name}/mlp_after")
        return net.op("Add", x, y, name=f"{name}/out")

    def gpt2_layer(self, i, x):
        made, net = self.made, self.net
        source, name = f"transformer.h.{i}", f"layer.{i}"
        h = self.norm(x, f"{source}.ln_1", f"{name}/norm")
        qkv = self.linear(h, f"{source}.attn.c_attn", f"{name}/qkv", 3 * made.width, turned=False)
        y = self.attention(i, qkv, "", "", f"{name}/attention")
        y = self.linear(y, f"{source}.attn.c_proj", f"{name}/o", made.width, turned=False)
        x = net.op("Add", x, y, name=f"{name}/attended")
        h = self.norm(x, f"{source}.ln_2", f"{name}/mlp_norm")
        h = self.linear(h, f"{source}.mlp.c_fc", f"{name}/up", made.hidden, turned=False)
        y = self.linear(self.active(h, f"{name}/active"), f"{source}.mlp.c_proj", f"{name}/down",
                        made.width, turned=False)
        return net.op("Add", x, y, name=f"{name}/out")


def write(made, weights, path, context, writer=Writer, part="write"):
    """Writes the network that a method of the writer makes to `path`, and its weights beside it."""
    with open(f"{os.fspath(path)}.data", "wb") as file:
        model = getattr(writer(made, weights, Network(file), context), part)()
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
