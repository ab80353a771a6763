"""pairs: encoder-decoders, T5 and Whisper, as two ONNX graphs each.

The encoder's graph gives cross.N.key/value, keys and values that layer N of the decoder sees of the
source: they are computed once a source. The decoder's is that of network.py with these as inputs,
and source_mask [batch, source] where sources beside each other differ in length.
SPDX-License-Identifier: Apache-2.0
"""

import dataclasses
import math
import re

import numpy as np

from .. import onnx_graph
from . import families, network

SOURCE, SOURCE_MASK, FEATURES = "source_length", "source_mask", "input_features"
CROSS = re.compile(r"cross\.(\d+)\.(key|value)")
ONLY = {"scale_embedding": False, "use_weighted_layer_sum": False, "is_encoder_decoder": True}


@dataclasses.dataclass(frozen=True)
class Pair:
    """Sizes of an encoder-decoder; those that network.Writer reads have the names of
    families.Architecture."""

    name: str
    encoder_layers: int
    layers: int
    width: int
    heads: int
    head_size: int
    encoder_hidden: int
    hidden: int
    words: int
    epsilon: float
    activation: str
    scale: float  # of scores
    context: int | None  # tokens of the decoder
    gated: bool = False
    logit_scale: float = 1.0
    buckets: int = 0  # of distances
    distance: int = 0  # from which on all are alike
    mels: int = 0
    frames: int = 0
    attention_cap: float = 0.0

    @property
    def kv_heads(self):
        return self.heads

    @property
    def ropes(self):
        return (None,) * self.layers

    windows = ropes

    @property
    def hears(self):
        return self.mels > 0


def pair(values, where):
    """The Pair that a config.json, as a dictionary, tells."""
    config = families.Config(values, where)
    families.check_fields(config, ONLY)
    name, most = values["model_type"], families.MOST_WIDTH
    width = config.number("d_model", most=most)
    if name == "whisper":
        heads = config.number("decoder_attention_heads", most=most)
        if config.number("encoder_attention_heads", heads) != heads or width % heads:
            config.refuse("encoder_attention_heads", f"as 'decoder_attention_heads', {heads}, and "
                          f"divide 'd_model', {width}")
        return Pair(
            name, config.number("encoder_layers", most=1000),
            config.number("decoder_layers", most=1000), width, heads, width // heads,
            config.number("encoder_ffn_dim", most=1 << 20),
            config.number("decoder_ffn_dim", most=1 << 20), config.number("vocab_size"), 1e-5,
            families.ACTIVATIONS[config.text("hidden_act", families.ACTIVATIONS, "gelu")],
            (width // heads)**-0.5, config.number("max_target_positions", 448),
            mels=config.number("num_mel_bins", 80, most=1 << 12),
            frames=2 * config.number("max_source_positions", 1500, most=1 << 20))
    layers = config.number("num_layers", most=1000)
    hidden = config.number("d_ff", most=1 << 20)
    kinds = {f"{gate}{kind}": kind for gate in ("", "gated-") for kind in families.ACTIVATIONS}
    forward = config.text("feed_forward_proj", kinds, "relu")
    activation = "gelu_new" if forward == "gated-gelu" else kinds[forward]
    buckets = config.number("relative_attention_num_buckets", 32, 4, 1 << 12)
    distance = config.number("relative_attention_max_distance", 128, 2, 1 << 16)
    if buckets % 4 or distance <= buckets // 2:
        config.refuse("relative_attention_num_buckets", "a multiple of 4, and less than twice "
                      f"'relative_attention_max_distance', {distance}")
    # Configs of T5 1.1 say that words are not tied, which means this.
    is_scaled = name == "t5" and config.values.get(
        "scale_decoder_outputs", config.values.get("tie_word_embeddings")) is not False
    return Pair(
        name, layers, config.number("num_decoder_layers", layers, most=1000), width,
        config.number("num_heads", most=most), config.number("d_kv", 64, most=most), hidden, hidden,
        config.number("vocab_size"), config.number("rms_norm_eps", 1e-6, 0, 1, float),
        families.ACTIVATIONS[activation], 1.0, None, forward.startswith("gated-"),
        width**-0.5 if is_scaled else 1.0, buckets, distance)


def bucket(distance, buckets, most, both):
    """The buckets of distances, keys less queries: half of them for single ones, the rest in
    logarithms up to `most`; those to the right have a half of their own where `both` are seen.
    (Raffel et al., "Exploring the Limits of Transfer Learning", section 2.1; the arithmetic is
    that of f32, as rounding decides at a bucket's edge.)"""
    right = np.zeros_like(distance)
    if both:
        buckets //= 2
        right = (distance > 0) * buckets
        distance = np.abs(distance)
    else:
        distance = np.maximum(-distance, 0)
    exact = buckets // 2
    share = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(exact))
    share = share / np.float32(math.log(most / exact)) * np.float32(buckets - exact)
    far = np.minimum(exact + share.astype(np.int64), buckets - 1)
    return right + np.where(distance < exact, distance, far)


class Writer(network.Writer):
    """Adds the nodes of one half of a Pair to a network."""

    def __init__(self, made, weights, net, context):
        super().__init__(made, weights, net, context)
        self.done = set()
        whisper = made.name == "whisper"
        self.norms = "layer_norm" if whisper else "final_layer_norm"
        self.query, self.key, self.value, self.out = (
            ("q_proj", "k_proj", "v_proj", "out_proj") if whisper else "qkvo")

    def parts(self, half, i):
        """Names of a layer's tensors: (norm, attention) of self and of cross attention, norm and
        the prefix of the feed-forward part."""
        if self.made.name == "whisper":
            block = f"model.{half}.layers.{i}"
            return ((f"{block}.self_attn_layer_norm", f"{block}.self_attn"),
                    (f"{block}.encoder_attn_layer_norm", f"{block}.encoder_attn"),
                    (f"{block}.final_layer_norm", block))
        block, last = f"{half}.block.{i}.layer", 2 if half == "decoder" else 1
        return ((f"{block}.0.layer_norm", f"{block}.0.SelfAttention"),
                (f"{block}.1.layer_norm", f"{block}.1.EncDecAttention"),
                (f"{block}.{last}.layer_norm", f"{block}.{last}.DenseReluDense"))

    def norm(self, x, source, name):
        weight = self.net.constant(self.weights.read(f"{source}.weight"), f"{source}.weight")
        if self.made.name != "whisper":
            return self.net.op("SimplifiedLayerNormalization", x, weight, name=name, axis=-1,
                               epsilon=self.made.epsilon, stash_type=1)
        bias = self.net.constant(self.weights.read(f"{source}.bias"), f"{source}.bias")
        return self.net.op("LayerNormalization", x, weight, bias, name=name, axis=-1,
                           epsilon=self.made.epsilon)

    def feed_forward(self, x, source, hidden, name):
        made, net = self.made, self.net
        if made.name == "whisper":
            y = self.active(self.linear(x, f"{source}.fc1", f"{name}/up", hidden), f"{name}/active")
            return self.linear(y, f"{source}.fc2", f"{name}/down", made.width)
        y = self.active(self.linear(x, f"{source}.{'wi_0' if made.gated else 'wi'}", f"{name}/up",
                                    hidden), f"{name}/active")
        if made.gated:
            y = net.op("Mul", y, self.linear(x, f"{source}.wi_1", f"{name}/gate", hidden),
                       name=f"{name}/gated")
        return self.linear(y, f"{source}.wo", f"{name}/down", made.width)

    def projected(self, x, source, names, name):
        size = self.made.heads * self.made.head_size
        return [self.linear(x, f"{source}.{each}", f"{name}/{each}", size) for each in names]

    def distances(self, half, places, at, axes):
        """Biases of scores by distance, from the table of the first layer; `axes` brings its heads,
        the last axis, to the front."""
        made, net = self.made, self.net
        source = f"{half}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        table, most = self.table(source, made.buckets, made.heads), made.distance
        table = table[bucket(np.arange(-most, most + 1), made.buckets, most, half == "encoder")]
        distance = net.op("Clip", net.op("Sub", places, at), net.constant(np.int64(-most)),
                          net.constant(np.int64(most)))
        index = net.op("Add", distance, net.constant(np.int64(most)))
        bias = net.op("Gather", net.constant(table, source), index, axis=0)
        return net.op("Transpose", bias, name="distances", perm=axes)

    def range(self, size):
        net = self.net
        return net.op("Range", net.constant(np.int64(0), "zero"), size,
                      net.constant(np.int64(1), "axis"))

    def words(self):
        """The table of words."""
        name = "model.decoder.embed_tokens.weight" if self.made.hears else "shared.weight"
        return self.net.constant(self.table(name, self.made.words), name)

    def placed(self, x, half, places, count):
        """x and the learned positions."""
        name = f"model.{half}.embed_positions.weight"
        table = self.net.constant(self.table(name, count), name)
        if places is not None:
            table = self.net.op("Gather", table, places, axis=0)
        return self.net.op("Add", x, table, name="placed")

    def convolved(self):
        """Vectors [batch, places, width] of a spectrogram."""
        made, net = self.made, self.net
        x = net.input(FEATURES, [network.BATCH, made.mels, made.frames])
        for i, stride in ((1, 1), (2, 2)):
            source = f"model.encoder.conv{i}"
            weight, bias = (net.constant(self.weights.read(f"{source}.{each}"), f"{source}.{each}")
                            for each in ("weight", "bias"))
            x = net.op("Conv", x, weight, bias, name=f"conv{i}", kernel_shape=[3], pads=[1, 1],
                       strides=[stride])
            x = self.active(x, f"conv{i}/active")
        return self.placed(net.op("Transpose", x, perm=[0, 2, 1]), "encoder", None,
                           made.frames // 2)

    def encoder(self):
        """The encoder, and the keys and values that the decoder sees of it, as a ModelProto."""
        made, net, bias = self.made, self.net, None
        if made.hears:
            x = self.convolved()
        else:
            net.input(network.INPUTS, [network.BATCH, SOURCE], onnx_graph.INT64)
            x = net.op("Gather", self.words(), network.INPUTS, name="embed", axis=0)
            size = net.op("Gather", net.op("Shape", network.INPUTS),
                          net.constant(np.int64(1), "axis"))
            places = self.range(size)
            bias = self.distances("encoder", places, net.op(
                "Unsqueeze", places, net.constant(np.int64([1]))), [2, 0, 1])
        for i in range(made.encoder_layers):
            name = f"encoder.{i}"
            (norm, source), _, (forward_norm, forward) = self.parts("encoder", i)
            h = self.norm(x, norm, f"{name}/norm")
            heads = [self.split(each, f"{name}/{which}") for which, each in zip(
                "qkv", self.projected(h, source, (self.query, self.key, self.value), name))]
            y = self.attend(*heads, bias, f"{name}/attention")
            x = net.op("Add", x, self.linear(y, f"{source}.{self.out}", f"{name}/o", made.width))
            h = self.norm(x, forward_norm, f"{name}/mlp_norm")
            x = net.op("Add", x, self.feed_forward(h, forward, made.encoder_hidden, name),
                       name=f"{name}/out")
        top = "model.encoder" if made.hears else "encoder"
        x = self.norm(x, f"{top}.{self.norms}", "norm")
        for i in range(made.layers):
            _, (_, source), _ = self.parts("decoder", i)
            for each, y in zip(("key", "value"), self.projected(
                    x, source, (self.key, self.value), f"cross.{i}")):
                name = f"cross.{i}.{each}"
                net.nodes.append(onnx_graph.make_node(
                    "Identity", [self.split(y, f"{name}s")], [name], name))
                net.output(name, [network.BATCH, made.heads, SOURCE, made.head_size])
        return net.finish()

    def write(self):
        """The decoder, as a ModelProto."""
        made, net = self.made, self.net
        net.input(network.INPUTS, [network.BATCH, network.SEQUENCE], onnx_graph.INT64)
        net.input(network.POSITIONS, [network.BATCH, network.SEQUENCE], onnx_graph.INT64)
        self.lengths()
        words = self.words()
        x = net.op("Gather", words, network.INPUTS, name="embed", axis=0)
        bias, cross = "", None
        if made.hears:
            x = self.placed(x, "decoder", network.POSITIONS, made.context)
        else:
            total = net.op("Gather", "mask/shape", net.constant(np.int64(1), "axis"))
            at = net.op("Unsqueeze", network.POSITIONS, net.constant(np.int64([2])))
            bias = self.distances("decoder", self.range(total), at, [0, 3, 1, 2])
            net.input(SOURCE_MASK, [network.BATCH, SOURCE])
            lacks = net.op("Sub", net.constant(np.float32(1)), SOURCE_MASK)
            cross = net.op("Mul", net.op("Unsqueeze", lacks, net.constant(np.int64([1, 2]))),
                           net.constant(np.float32(network.NOTHING)))
        for i in range(made.layers):
            x = self.decoder_layer(i, x, bias, cross)
        x = self.last(x)
        top = "model.decoder" if made.hears else "decoder"
        x = self.norm(x, f"{top}.{self.norms}", "norm")
        if made.logit_scale != 1:
            x = net.op("Mul", x, net.constant(np.float32(made.logit_scale), "logit_scale"))
        if not made.hears and "lm_head.weight" in self.weights:
            x = self.linear(x, "lm_head", "head", made.words)
        else:
            x = net.op("MatMul", x, net.op("Transpose", words, perm=[1, 0]), name="head")
        return self.finish(x)

    def decoder_layer(self, i, x, bias, cross):
        made, net, name = self.made, self.net, f"decoder.{i}"
        (norm, source), (cross_norm, crossing), (forward_norm, forward) = self.parts("decoder", i)
        h = self.norm(x, norm, f"{name}/norm")
        y = self.attention(i, *self.projected(h, source, (self.query, self.key, self.value), name),
                           f"{name}/attention", bias)
        x = net.op("Add", x, self.linear(y, f"{source}.{self.out}", f"{name}/o", made.width))
        h = self.norm(x, cross_norm, f"{name}/cross_norm")
        query = self.split(*self.projected(h, crossing, [self.query], f"{name}/cross"),
                           f"{name}/cross")
        key, value = (net.input(f"cross.{i}.{each}", [network.BATCH, made.heads, SOURCE,
                                                      made.head_size])
                      for each in ("key", "value"))
        y = self.attend(query, key, value, cross, f"{name}/crossed")
        x = net.op("Add", x, self.linear(y, f"{crossing}.{self.out}", f"{name}/cross_o",
                                         made.width))
        h = self.norm(x, forward_norm, f"{name}/mlp_norm")
        return net.op("Add", x, self.feed_forward(h, forward, made.hidden, name),
                      name=f"{name}/out")
