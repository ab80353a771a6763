"""transformers: BERT, ALBERT, GPT-2, T5's encoder and ViT, and ResNet-50, of the published sizes or
of others, as graphs whose weights are seeded. Names of weights are those of torch's modules in
transformers and torchvision."""

from dataclasses import dataclass, replace

import numpy as np

from bench.networks.seeded import HIDDEN, Network


@dataclass(frozen=True)
class Sizes:
    layers: int
    width: int
    heads: int
    inner: int
    words: int  # classes of pictures
    places: int = 512  # pixels of a side
    narrow: int = 128  # of ALBERT's embeddings


def _after(net, x, bias, sizes, names, gelu, epsilon=1e-12):
    """A layer with its norms last."""
    query, key, value, out, norm, up, down, last = names
    wide = sizes.width
    q, k, v = (net.linear(x, name, wide, wide) for name in (query, key, value))
    mixed = net.attend(q, k, v, sizes.heads, bias, (wide / sizes.heads) ** -0.5)
    x = net.norm(net.op("Add", net.linear(mixed, out, wide, wide), x), norm, wide, epsilon)
    inner = gelu(net.linear(x, up, wide, sizes.inner))
    y = net.op("Add", net.linear(inner, down, sizes.inner, wide), x)
    return net.norm(y, last, wide, epsilon)


def _embedded(net, ids, sizes, wide):
    """Words, their places and the type 0, normalised."""
    x = net.gather("embeddings.word_embeddings.weight", (sizes.words, wide), ids)
    kind = net.gather("embeddings.token_type_embeddings.weight", (2, wide), net.ints(0))
    place = net.gather("embeddings.position_embeddings.weight", (sizes.places, wide),
                       net.places(ids))
    return net.norm(net.op("Add", net.op("Add", x, kind), place), "embeddings.LayerNorm", wide,
                    1e-12)


def bert(sizes):
    net = Network()
    ids, bias = net.tokens()
    x = _embedded(net, ids, sizes, sizes.width)
    for i in range(sizes.layers):
        x = _after(net, x, bias, sizes, [f"encoder.layer.{i}.{name}" for name in (
            *(f"attention.self.{part}" for part in ("query", "key", "value")),
            "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense",
            "output.dense", "output.LayerNorm")], net.gelu)
    pooled = net.linear(net.pick(x, 0), "pooler.dense", sizes.width, sizes.width)
    return net.whole(net.op("Tanh", pooled), ["batch", sizes.width])


def albert(sizes):
    net = Network()
    ids, bias = net.tokens()
    x = net.linear(_embedded(net, ids, sizes, sizes.narrow), "encoder.embedding_hidden_mapping_in",
                   sizes.narrow, sizes.width)
    for _ in range(sizes.layers):  # which share their weights
        x = _after(net, x, bias, sizes, [f"encoder.albert_layer_groups.0.albert_layers.0.{name}"
                                         for name in (
            *(f"attention.{part}" for part in ("query", "key", "value", "dense", "LayerNorm")),
            "ffn", "ffn_output", "full_layer_layer_norm")], net.gelu_new)
    pooled = net.linear(net.pick(x, 0), "pooler", sizes.width, sizes.width)
    return net.whole(net.op("Tanh", pooled), ["batch", sizes.width])


def _before(net, x, bias, sizes, names, joined, gelu, epsilon):
    """A layer with its norms first; `joined` makes queries, keys and values of a product."""
    norm, out, second, up, down, is_turned = names
    wide = sizes.width
    q, k, v = net.op("Split", joined(net.norm(x, norm, wide, epsilon)), axis=2, outputs=3)
    mixed = net.attend(q, k, v, sizes.heads, bias, (wide / sizes.heads) ** -0.5)
    x = net.op("Add", net.linear(mixed, out, wide, wide, is_turned=is_turned), x)
    y = gelu(net.linear(net.norm(x, second, wide, epsilon), up, wide, sizes.inner,
                        is_turned=is_turned))
    return net.op("Add", net.linear(y, down, sizes.inner, wide, is_turned=is_turned), x)


def gpt2(sizes):
    """With the logits of the last token, as generation has them."""
    net, wide = Network(), sizes.width
    ids, bias = net.tokens()
    places = net.places(ids)
    later = net.op("Greater", places, net.op("Unsqueeze", places, net.ints(1)))
    bias = net.op("Where", later, net.number(HIDDEN), bias)
    x = net.op("Add", net.gather("transformer.wte.weight", (sizes.words, wide), ids),
               net.gather("transformer.wpe.weight", (sizes.places, wide), places))
    for i in range(sizes.layers):
        at = f"transformer.h.{i}."
        x = _before(net, x, bias, sizes,
                    [at + "ln_1", at + "attn.c_proj", at + "ln_2", at + "mlp.c_fc",
                     at + "mlp.c_proj", False],
                    lambda y, at=at: net.linear(y, at + "attn.c_attn", wide, 3 * wide,
                                                is_turned=False), net.gelu_new, 1e-5)
    last = net.op("Gather", net.norm(x, "transformer.ln_f", wide, 1e-5), net.ints(-1), axis=1)
    words = net.weight("transformer.wte.weight", sizes.words, wide, is_turned=True)
    return net.whole(net.op("MatMul", last, words), ["batch", 1, sizes.words])


def vit(sizes):
    net, wide = Network(), sizes.width
    picture = net.input("input", ["batch", 3, sizes.places, sizes.places])
    x = net.op("Conv", picture, net.weight("conv_proj.weight", wide, 3, 16, 16, scale=1 / 28),
               net.weight("conv_proj.bias", wide), kernel_shape=[16, 16], strides=[16, 16])
    x = net.op("Transpose", net.op("Reshape", x, net.ints(0, 0, -1)), perm=(0, 2, 1))
    batch = net.op("Shape", picture, start=0, end=1)
    token = net.op("Expand", net.weight("class_token", 1, 1, wide),
                   net.op("Concat", batch, net.ints(1, 1), axis=0))
    x = net.op("Add", net.op("Concat", token, x, axis=1),
               net.weight("encoder.pos_embedding", 1, (sizes.places // 16) ** 2 + 1, wide))
    for i in range(sizes.layers):
        at = f"encoder.layers.encoder_layer_{i}."
        x = _before(net, x, None, sizes,
                    [at + "ln_1", at + "self_attention.out_proj", at + "ln_2", at + "mlp.0",
                     at + "mlp.3", True],
                    lambda y, at=at: net.linear(y, at + "self_attention.in_proj", wide, 3 * wide,
                                                dot="_"), net.gelu, 1e-6)
    y = net.linear(net.pick(net.norm(x, "encoder.ln", wide, 1e-6), 0), "heads.head", wide,
                   sizes.words)
    return net.whole(y, ["batch", sizes.words])


def buckets(length, count=32, far=128):
    """T5's bucket of each distance, from -length + 1 on."""
    distance = np.arange(1 - length, length)
    half, ahead = count // 2, (distance > 0) * (count // 2)
    distance, exact = abs(distance), half // 2
    large = exact + (np.log(np.maximum(distance, 1) / exact) / np.log(far / exact)
                     * (half - exact)).astype(np.int64)
    return np.int64(ahead + np.where(distance < exact, distance, np.minimum(large, half - 1)))


def t5_encoder(sizes):
    net, wide = Network(), sizes.width
    ids, bias = net.tokens()
    places = net.places(ids)
    ahead = net.op("Sub", places, net.op("Unsqueeze", places, net.ints(1)))
    bucket = net.op("Gather", net.constant(buckets(sizes.places)),
                    net.op("Add", ahead, net.ints(sizes.places - 1)))
    first = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    near = net.op("Transpose", net.gather(first, (32, sizes.heads), bucket), perm=(2, 0, 1))
    bias = net.op("Add", near, bias)
    x = net.gather("shared.weight", (sizes.words, wide), ids)
    for i in range(sizes.layers):
        at, then = f"encoder.block.{i}.layer.0.", f"encoder.block.{i}.layer.1."
        y = net.rms(x, at + "layer_norm", wide)
        q, k, v = (net.linear(y, f"{at}SelfAttention.{part}", wide, wide, False, scale)
                   for part, scale in (("q", (sizes.heads / wide) ** 0.5), ("k", 1), ("v", 1)))
        mixed = net.attend(q, k, v, sizes.heads, bias)
        x = net.op("Add", x, net.linear(mixed, at + "SelfAttention.o", wide, wide, False))
        y = net.linear(net.rms(x, then + "layer_norm", wide), then + "DenseReluDense.wi", wide,
                       sizes.inner, False)
        x = net.op("Add", x, net.linear(net.op("Relu", y), then + "DenseReluDense.wo", sizes.inner,
                                        wide, False))
    return net.whole(net.rms(x, "encoder.final_layer_norm", wide), ["batch", "seq", wide])


def _normalised(net, x, conv, norm, shape, stride=1, mean=1.0):
    """A convolution [columns, rows, size, size] and its batch norm."""
    columns, rows, size = shape
    filters = net.weight(f"{conv}.weight", columns, rows, size, size,
                         scale=(2 / (rows * size * size)) ** 0.5)
    y = net.op("Conv", x, filters, kernel_shape=[size] * 2, strides=[stride] * 2,
               pads=[size // 2] * 4)
    return net.op("BatchNormalization", y, *(
        net.weight(f"{norm}.{part}", columns, mean=middle) for part, middle in (
            ("weight", mean), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0))))


def resnet(sizes):
    """Bottlenecks with the stride in the 3x3 convolution; of ResNet-50 if `width` is 64."""
    net, wide = Network(), sizes.width
    picture = net.input("input", ["batch", 3, sizes.places, sizes.places])
    x = net.op("Relu", _normalised(net, picture, "conv1", "bn1", (wide, 3, 7), 2))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    rows = wide
    for stage, blocks in enumerate((3, 4, 6, 3)[:sizes.layers]):
        inner = wide << stage
        for block in range(blocks):
            at = f"layer{stage + 1}.{block}."
            stride = 2 if stage and not block else 1
            y = net.op("Relu", _normalised(net, x, at + "conv1", at + "bn1", (inner, rows, 1)))
            y = net.op("Relu", _normalised(net, y, at + "conv2", at + "bn2", (inner, inner, 3),
                                           stride))
            y = _normalised(net, y, at + "conv3", at + "bn3", (4 * inner, inner, 1), mean=0.2)
            if not block:
                x = _normalised(net, x, at + "downsample.0", at + "downsample.1",
                                (4 * inner, rows, 1), stride)
            x, rows = net.op("Relu", net.op("Add", y, x)), 4 * inner
    flat = net.op("Flatten", net.op("GlobalAveragePool", x))
    return net.whole(net.linear(flat, "fc", rows, sizes.words), ["batch", sizes.words])


BASE = {"layers": 12, "width": 768, "heads": 12, "inner": 3072}
NETWORKS = {"bert_base": (bert, Sizes(words=30522, **BASE)),
            "gpt2": (gpt2, Sizes(words=50257, places=1024, **BASE)),
            "vit_b_16": (vit, Sizes(words=1000, places=224, **BASE)),
            "t5_small_encoder": (t5_encoder, Sizes(6, 512, 8, 2048, 32128)),
            "albert_base": (albert, Sizes(words=30000, **BASE)),
            "resnet50": (resnet, Sizes(4, 64, 0, 0, words=1000, places=224))}


def sizes_of(name, **changed):
    """Those of the network, some of which are changed."""
    return replace(NETWORKS[name][1], **changed)


def make(name, **changed):
    return NETWORKS[name][0](sizes_of(name, **changed))


def feeds(name, sizes, batch, length, seed=7):
    """Pictures, or texts whose lengths differ, the first of which fills its row."""
    random = np.random.default_rng(seed)
    if name in ("vit_b_16", "resnet50"):
        shape = batch, 3, sizes.places, sizes.places
        return {"input": random.standard_normal(shape, np.float32)}
    lengths = np.maximum(1, length - 5 * np.arange(batch))
    return {"input_ids": random.integers(0, sizes.words, (batch, length)),
            "attention_mask": np.int64(np.arange(length) < lengths[:, None])}
