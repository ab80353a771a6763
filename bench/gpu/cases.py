"""Cases of `./dev bench gpu`: graphs without weights, which `--prepare` writes, and their inputs.

Making a graph needs `onnx`; feeding one NumPy alone.

Two chains of a kernel, FEW and MANY steps long, tell what it takes: both copy the same from and to
the host. Their first operand is made on the device, of two vectors.
"""

from dataclasses import dataclass
from functools import partial
from typing import Callable

import numpy as np

from bench.networks import transformers
from bench.networks.seeded import Network

TINY = {"layers": 1, "width": 32, "heads": 2, "inner": 64, "words": 60}
TINY_OF = {"vit_b_16": {"places": 32}, "resnet50": {"width": 4, "places": 32}}
FEW, MANY = 2, 18


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable  # its Network
    runs: tuple  # of functions that give feeds
    sizes: tuple = ()  # of a step of a chain
    work: float = 0.0  # its operations, or bytes

    def feeds(self):
        return [run() for run in self.runs]

    @property
    def folder(self):
        return self.name.replace(" ", "-").replace(",", "")


def normal(**shapes):
    random = np.random.default_rng(5)
    return {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def tiny(name, is_tiny):
    """Sizes in which a tiny form of a network differs from the published one."""
    return TINY | TINY_OF.get(name, {}) if is_tiny else {}


def network(name, is_tiny):
    changed = tiny(name, is_tiny)
    sizes, runs = transformers.sizes_of(name, **changed), ((1, 9), (2, 5)) if is_tiny else (
        (1, 128), (3, 37))
    return Case(name, partial(transformers.make, name, **changed),
                tuple(partial(transformers.feeds, name, sizes, *run) for run in runs))


def networks(is_tiny):
    return [network(name, is_tiny) for name in names(is_tiny)]


def names(is_tiny):
    """Networks; of the tiny ones the first, which is enough for a test of the benchmark itself."""
    return tuple(transformers.NETWORKS)[:1 if is_tiny else None]


def product(rows, depth, columns):
    def make():
        net = Network()
        y = net.linear(net.input("x", ["n", depth]), "w", depth, columns)
        return net.whole(net.op("Relu", y), ["n", columns])
    return Case(f"product {rows}x{depth}x{columns}", make, (partial(normal, x=(rows, depth)),))


def convolution(rows, columns, size, picture, **attributes):
    def make():
        net = Network()
        groups = attributes.get("group", 1)
        w = net.weight("w", columns, rows // groups, size, size,
                       scale=(groups / (rows * size * size)) ** 0.5)
        y = net.op("Conv", net.input("x", ["n", rows, *picture]), w, net.weight("b", columns),
                   kernel_shape=[size, size], pads=[size // 2] * 4, **attributes)
        return net.whole(net.op("Relu", y), ["n", columns, None, None])
    told = "".join(f", {name} {np.ravel(value)[0]}" for name, value in attributes.items())
    return Case(f"convolution {rows}-{columns} {size}x{size} of {picture[0]}x{picture[1]}{told}",
                make, (partial(normal, x=(2, rows, *picture)),))


def attention(heads, queries, keys, depth, kind=""):
    """A case of 2 rows; `kind` is "mask", "causal", or "GQA", with a head of keys for each two."""
    def make():
        net = Network()
        q, k, v = (net.input(name, ["n", heads // (2 if name != "q" and kind == "GQA" else 1),
                                    length, depth])
                   for name, length in (("q", queries), ("k", keys), ("v", keys)))
        if kind == "GQA":
            k, v = (net.op("Reshape", net.op("Expand", net.op("Unsqueeze", x, net.ints(2)),
                                             net.ints(1, 1, 2, 1, 1)),
                           net.ints(0, heads, keys, depth)) for x in (k, v))
        bias = None
        if kind == "mask":
            bias = net.input("mask", ["n", 1, 1, keys])
        elif kind == "causal":
            bias = net.constant(np.triu(np.full((queries, keys), -1e9, np.float32), 1))
        return net.whole(net.mixture(q, net.op("Transpose", k, perm=(0, 1, 3, 2)), v, bias,
                                     depth**-0.5), ["n", heads, queries, depth])

    def feeds():
        own = heads // (2 if kind == "GQA" else 1)
        found = normal(q=(2, heads, queries, depth), k=(2, own, keys, depth),
                       v=(2, own, keys, depth))
        hidden = np.float32(-1e9) * (np.arange(keys) % 3 == 2)
        return found | ({"mask": np.tile(hidden, (2, 1, 1, 1))} if kind == "mask" else {})
    return Case(f"attention {heads} x {queries}x{keys}x{depth} {kind}".strip(), make, (feeds,))


def small(is_tiny):
    """Products, convolutions and attention, most of sizes that no tile divides."""
    if is_tiny:
        return [product(17, 33, 70), convolution(8, 12, 3, (9, 7)),
                attention(2, 20, 33, 16, "mask"), attention(2, 20, 33, 16, "GQA")]
    return [product(1, 768, 3072), product(37, 100, 77), product(129, 1000, 1001),
            product(513, 769, 2049), product(2048, 1024, 1024),
            *(attention(12, *sizes, kind) for kind in ("", "mask", "causal", "GQA")
              for sizes in ((128, 128, 64), (200, 333, 64), (65, 65, 96))),
            attention(4, 257, 1025, 128, "mask"), attention(8, 1, 777, 64, "mask"),
            convolution(64, 64, 3, (56, 56)), convolution(3, 64, 7, (224, 224), strides=[2, 2]),
            convolution(24, 40, 3, (33, 30), strides=[2, 2]),
            convolution(96, 96, 3, (28, 28), group=96), convolution(32, 48, 5, (31, 17), group=4),
            convolution(64, 32, 3, (40, 40), dilations=[2, 2]), convolution(256, 64, 1, (56, 56))]


def outer(net, *sizes):
    """A tensor that the device makes: columns of an input, times those of another one."""
    number = len(net.inputs)
    tall = net.input(f"tall{number}", [*sizes[:-1], 1])
    return net.op("Mul", tall, net.input(f"wide{number}", [1] * (len(sizes) - 1) + [sizes[-1]]))


def outer_feeds(count, *sizes):
    shapes = {}
    for number in range(0, 2 * count, 2):
        shapes |= {f"tall{number}": (*sizes[:-1], 1),
                   f"wide{number}": (*[1] * (len(sizes) - 1), sizes[-1])}
    return normal(**shapes)


def products(rows, depth, columns, steps):
    """A step is a product up, and one down."""
    def make():
        net = Network()
        x = outer(net, rows, depth)
        for _ in range(steps):
            up = net.linear(x, "up", depth, columns, bias=False)
            x = net.linear(up, "down", columns, depth, bias=False)
        return net.whole(net.op("ReduceMax", x, axes=[-1], keepdims=0), None)
    return Case(f"products {rows}x{depth}x{columns} {steps}", make,
                (partial(outer_feeds, 1, rows, depth),), (rows, depth, columns),
                4.0 * rows * depth * columns)


def attentions(batch, heads, length, depth, is_causal, steps):
    """A step has the result of the one before as its queries."""
    sizes = batch, heads, length, depth

    def make():
        net = Network()
        q, k, v = (net.norm(outer(net, *sizes), name, depth, 1e-5) for name in "qkv")
        k = net.op("Transpose", k, perm=(0, 1, 3, 2))
        bias = net.constant(np.triu(np.full((length, length), -1e9, np.float32), 1)) if (
            is_causal) else None
        for _ in range(steps):
            q = net.mixture(q, k, v, bias, depth**-0.5)
        return net.whole(net.op("ReduceMax", q, axes=[-1], keepdims=0), None)
    return Case(f"attentions {batch}x{heads}x{length}x{depth}{' causal' * is_causal} {steps}", make,
                (partial(outer_feeds, 3, *sizes),), (*sizes, is_causal),
                4.0 * batch * heads * length * length * depth / (1 + is_causal))


def copies(rows, columns, steps):
    """A step reads a matrix and writes one, if nothing is fused."""
    def make():
        net = Network()
        x, factor = outer(net, rows, columns), net.input("factor", [columns])
        for number in range(steps):
            x = net.op("Mul" if number % 2 else "Add", x, factor)
        return net.whole(net.op("ReduceMax", x, axes=[-1], keepdims=0), None)

    def feeds():
        return outer_feeds(1, rows, columns) | {"factor": np.full(columns, 0.5, np.float32)}
    return Case(f"copies {rows}x{columns} {steps}", make, (feeds,), (rows, columns),
                8.0 * rows * columns)


def chains(is_tiny):
    """Pairs of FEW and MANY steps."""
    if is_tiny:
        made = [(products, (20, 32, 48)), (attentions, (1, 2, 17, 16, False)), (copies, (64, 128))]
    else:
        made = [*((products, sizes) for sizes in (
            (4096, 4096, 4096), (2048, 768, 3072), (128, 768, 3072), (1000, 1000, 1000),
            (16, 4096, 4096), (1, 4096, 4096))),
                *((attentions, sizes) for sizes in (
                    (16, 12, 512, 64, False), (16, 12, 512, 64, True), (16, 12, 128, 64, False),
                    (1, 12, 128, 64, False), (4, 16, 2048, 128, False))),
                (copies, (65536, 4096))]
    return [tuple(kind(*sizes, steps) for steps in (FEW, MANY)) for kind, sizes in made]


def all_cases(is_tiny):
    return [*small(is_tiny), *networks(is_tiny),
            *(case for pair in chains(is_tiny) for case in pair)]
