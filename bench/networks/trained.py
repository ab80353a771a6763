"""trained: what `./dev bench training` trains, as PyTorch modules, each with a batch and a loss.

Nothing is drawn at random in a step (no dropout), so that all engines have to agree on losses.
"""

import math
from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn
from torch.nn import functional

from bench.networks.vision import conv, mobilenet_v2, resnet50


@dataclass(frozen=True)
class Network:
    name: str
    make: Callable  # the module
    batch: Callable  # its inputs by name, and "labels"; of the size that is asked for
    loss: str  # as recipes of training have it
    optimizer: str = "adam"
    class_axis: int = -1


class Attention(nn.Module):
    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, memory=None):
        memory = x if memory is None else memory

        def split(y):
            return y.view(y.shape[0], y.shape[1], self.heads, -1).transpose(1, 2)

        q, k, v = split(self.query(x)), split(self.key(memory)), split(self.value(memory))
        if torch.onnx.is_in_onnx_export():
            scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]))
            if self.causal:
                mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
                scores = scores.masked_fill(mask, float("-inf"))
            mixed = scores.softmax(-1) @ v
        else:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    """Pre-norm; with `crosses` also attention to another sequence."""

    def __init__(self, width, heads, causal=False, crosses=False):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if crosses else 2))
        self.own = Attention(width, heads, causal)
        self.cross = Attention(width, heads) if crosses else None
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, memory=None):
        x = x + self.own(self.norms[0](x))
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), memory)
        return x + self.narrow(functional.gelu(self.wide(self.norms[-1](x))))


class Embedded(nn.Module):
    def __init__(self, words, length, width):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)

    def forward(self, ids):
        return self.words(ids) + self.places.weight[:ids.shape[1]]


class Gpt(nn.Module):
    def __init__(self, words=8000, length=128, width=384, heads=6, layers=6):
        super().__init__()
        self.embedded = Embedded(words, length, width)
        self.blocks = nn.ModuleList(Block(width, heads, causal=True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, ids):
        x = self.embedded(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Bert(nn.Module):
    """BERT's sizes: post-norm is what differs from a block above; a pooled classifier."""

    def __init__(self, words=30522, length=128, width=768, heads=12, layers=12, classes=2):
        super().__init__()
        self.embedded, self.norm = Embedded(words, length, width), nn.LayerNorm(width)
        self.attentions = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.wides = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(layers))
        self.narrows = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.pool, self.classes = nn.Linear(width, width), nn.Linear(width, classes)

    def forward(self, ids):
        x = self.norm(self.embedded(ids))
        for i, (attention, wide, narrow) in enumerate(
                zip(self.attentions, self.wides, self.narrows)):
            x = self.norms[2 * i](x + attention(x))
            x = self.norms[2 * i + 1](x + narrow(functional.gelu(wide(x))))
        return self.classes(torch.tanh(self.pool(x[:, 0])))


class Translator(nn.Module):
    """Encoder and decoder (Vaswani et al., 2017), base sizes with three layers each."""

    def __init__(self, words=8000, length=64, width=512, heads=8, layers=3):
        super().__init__()
        self.source, self.target = Embedded(words, length, width), Embedded(words, length, width)
        self.encoder = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.decoder = nn.ModuleList(Block(width, heads, True, True) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.head = nn.Linear(width, words)

    def forward(self, source, target):
        memory, x = self.source(source), self.target(target)
        for block in self.encoder:
            memory = block(memory)
        memory = self.norms[0](memory)
        for block in self.decoder:
            x = block(x, memory)
        return self.head(self.norms[1](x))


class Yolo(nn.Module):
    """A backbone, a merged finer scale, a head of boxes: a small detector's shape."""

    def __init__(self, outputs=85):
        super().__init__()

        def layer(inputs, outputs, size, stride=1):
            return conv(inputs, outputs, size, stride, act=nn.SiLU)

        self.stem = nn.Sequential(layer(3, 16, 3, 2), layer(16, 32, 3, 2), layer(32, 32, 1),
                                  layer(32, 64, 3, 2), layer(64, 64, 3))
        self.deep = nn.Sequential(layer(64, 128, 3, 2), layer(128, 128, 3), layer(128, 64, 1))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.head = nn.Sequential(layer(128, 64, 3), nn.Conv2d(64, outputs, 1))

    def forward(self, x):
        fine = self.stem(x)
        return self.head(torch.cat([fine, self.up(self.deep(fine))], 1))


class DeepFm(nn.Module):
    """Guo et al., 2017; `wide` instead of the pairs of the factorisation machine: Wide & Deep."""

    def __init__(self, wide, fields=26, rows=20000, size=16, dense=13):
        super().__init__()
        self.wide, self.fields = wide, fields
        self.embedded, self.linear = nn.Embedding(rows, size), nn.Embedding(rows, 1)
        self.deep = nn.Sequential(nn.Linear(fields * size + dense, 400), nn.ReLU(),
                                  nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 1))
        self.numbers = nn.Linear(dense, 1)

    def forward(self, dense, sparse):
        each = self.embedded(sparse)
        score = self.linear(sparse).sum(1) + self.numbers(dense)
        if not self.wide:
            total = each.sum(1)
            score = score + 0.5 * (total * total - (each * each).sum(1)).sum(1, keepdim=True)
        return score + self.deep(torch.cat([each.flatten(1), dense], 1))


class Lstm(nn.Module):
    def __init__(self, words=8000, width=400, layers=2):
        super().__init__()
        self.embedded = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, layers)
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        return self.head(self.lstm(self.embedded(ids))[0])


class Quadratic(nn.Module):
    """QuadraLib's layer: BN(W_a x) BN(W_b x) + BN(W_c x), near its linear part at first, since
    products of size 1 in each layer make losses chaotic, in f64 as in f32."""

    def __init__(self, inputs, outputs, size=3, stride=1, groups=1, act=nn.ReLU):
        super().__init__()
        self.parts = nn.ModuleList(conv(inputs, outputs, size, stride, groups, act=None)
                                   for _ in range(3))
        for part in self.parts[:2]:
            nn.init.constant_(part[1].weight, 0.1)
        self.act = act() if act else nn.Identity()

    def forward(self, x):
        a, b, c = (part(x) for part in self.parts)
        return self.act(a * b + c)


def vgg(layer, classes=10):
    """VGG-16 of images of 32 x 32, of half the width; `layer` is `conv` or `Quadratic`."""
    layers, channels = [], 3
    for width, count in ((32, 2), (64, 2), (128, 3), (256, 3), (256, 3)):
        for _ in range(count):
            layers.append(layer(channels, width, 3))
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, classes))


def words(most, *shape):
    return torch.randint(0, most, shape)


def images(count, size):
    return {"x": torch.randn(count, 3, size, size), "labels": words(1000, count)}


def small_images(count=16):
    return {"x": torch.randn(count, 3, 32, 32), "labels": words(10, count)}


def clicks(count=1024):
    return {"dense": torch.rand(count, 13), "sparse": words(20000, count, 26),
            "labels": torch.randint(0, 2, (count, 1)).float()}


NETWORKS = [
    Network("bert_base", Bert, lambda n=8: {"ids": words(30522, n, 128), "labels": words(2, n)},
            "cross_entropy"),
    Network("gpt", Gpt, lambda n=8: {"ids": words(8000, n, 128), "labels": words(8000, n, 128)},
            "cross_entropy"),
    Network("transformer", Translator,
            lambda n=8: {"source": words(8000, n, 64), "target": words(8000, n, 64),
                         "labels": words(8000, n, 64)}, "cross_entropy"),
    Network("resnet50", resnet50, lambda n=8: images(n, 224), "cross_entropy", "momentum"),
    Network("mobilenet_v2", mobilenet_v2, lambda n=8: images(n, 224), "cross_entropy", "momentum"),
    Network("yolo", Yolo, lambda n=4: {"x": torch.randn(n, 3, 320, 320),
                                      "labels": torch.rand(n, 85, 40, 40)}, "mse"),
    Network("wide_deep", lambda: DeepFm(True), clicks, "bce_with_logits", "adagrad"),
    Network("deepfm", lambda: DeepFm(False), clicks, "bce_with_logits"),
    Network("lstm", Lstm, lambda n=20: {"ids": words(8000, 35, n), "labels": words(8000, 35, n)},
            "cross_entropy", "sgd"),
    Network("quadratic_vgg", lambda: vgg(Quadratic), small_images, "cross_entropy", "momentum"),
]


def find(name):
    from bench.networks import quadralib

    return next(network for network in (*NETWORKS, *quadralib.NETWORKS) if network.name == name)


def seeded(network, *count):
    """The module in training, and its batch: the same in every process."""
    torch.manual_seed(0)
    module = network.make()
    return module.train(), network.batch(*count)
