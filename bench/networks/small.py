"""small: networks for `./dev bench training-losses`, small enough for PyTorch in f64.

Each call of `batch` draws another one, of a task that can be learned: classes of images are
patterns under noise, words follow a fixed permutation now and then broken, and clicks are those of
a linear function.
"""

import torch
from torch import nn
from torch.nn import functional

from bench.networks.trained import Bert, DeepFm, Gpt, Lstm, Network, words
from bench.networks.vision import conv

WORDS, CLASSES = 200, 10


def fixed(*shape):
    """Normal numbers that are the same in each call."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(7))


class Basic(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(conv(inputs, outputs, 3, stride), conv(outputs, outputs, 3,
                                                                         act=None))
        same = stride == 1 and inputs == outputs
        self.short = nn.Identity() if same else conv(inputs, outputs, 1, stride, act=None)
        nn.init.zeros_(self.body[-1][-1].weight)  # as Bottleneck, and for the same reason

    def forward(self, x):
        return functional.relu(self.body(x) + self.short(x))


def resnet18():
    """For small images: a first convolution of 3 x 3, and no pool after it."""
    layers, channels = [conv(3, 64, 3)], 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Basic(channels, width, stride), Basic(width, width, 1)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, CLASSES))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(),
                         nn.Linear(84, CLASSES))


def mlp():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(),
                         nn.Linear(128, CLASSES))


def patterns(count, *shape):
    labels = words(CLASSES, count)
    return {"x": 0.5 * fixed(CLASSES, *shape)[labels] + torch.randn(count, *shape),
            "labels": labels}


def sentences(count, length):
    """Words [count, length + 1], each of which mostly decides the next one."""
    follow = fixed(WORDS).argsort()
    drawn = [words(WORDS, count)]
    for _ in range(length):
        other = words(WORDS, count)
        drawn.append(torch.where(torch.rand(count) < 0.9, follow[drawn[-1]], other))
    return torch.stack(drawn, 1)


def next_words(count, length):
    ids = sentences(count, length)
    return {"ids": ids[:, :-1].contiguous(), "labels": ids[:, 1:].contiguous()}


def opinions(count, length):
    ids = sentences(count, length - 1)
    return {"ids": ids, "labels": (fixed(WORDS)[ids].sum(1) > 0).long()}


def clicks(count):
    dense, sparse = torch.rand(count, 13), words(500, count, 26)
    score = dense @ fixed(13) + fixed(500)[sparse].sum(1) / 5
    return {"dense": dense, "sparse": sparse, "labels": (score > 0).float()[:, None]}


NETWORKS = [
    Network("mlp", mlp, lambda: patterns(32, 64), "cross_entropy"),
    Network("lenet", lenet, lambda: patterns(32, 1, 28, 28), "cross_entropy"),
    Network("resnet18", resnet18, lambda: patterns(32, 3, 16, 16), "cross_entropy"),
    Network("small_gpt", lambda: Gpt(WORDS, 32, 64, 4, 2), lambda: next_words(8, 32),
            "cross_entropy"),
    Network("small_bert", lambda: Bert(WORDS, 32, 64, 4, 2), lambda: opinions(16, 32),
            "cross_entropy"),
    Network("small_lstm", lambda: Lstm(WORDS, 64, 2), lambda: next_words(16, 8), "cross_entropy"),
    Network("small_deepfm", lambda: DeepFm(False, rows=500, size=8), lambda: clicks(128),
            "bce_with_logits"),
]
