"""modules: small modules for the tests of heddle.torch, and what they take, by the batch."""

import importlib.util

import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)

    def forward(self, x):
        return F.silu(x + self.second(F.gelu(self.norm(self.first(x)))))


class Decoder(nn.Module):
    """A picture from numbers."""

    def __init__(self):
        super().__init__()
        self.seed, self.up = nn.Linear(6, 8 * 9), nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1)
        self.out = nn.Conv2d(4, 3, 3)

    def forward(self, x):
        x = self.up(torch.tanh(self.seed(x)).view(-1, 8, 3, 3))
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return torch.sigmoid(self.out(F.interpolate(x, scale_factor=2, mode="nearest")))


class Language(nn.Module):
    """Causal attention with fewer key heads, rotated by positions, over tokens."""

    def __init__(self, words=19, size=16, heads=4, shared=2):
        super().__init__()
        self.words, self.heads, self.shared = nn.Embedding(words, size), heads, shared
        self.norm, self.head = nn.RMSNorm(size), nn.Linear(size, words, bias=False)
        self.query, self.out = nn.Linear(size, size), nn.Linear(size, size)
        self.pairs = nn.Linear(size, 2 * shared * size // heads)
        self.register_buffer("rates", 0.1 ** (torch.arange(size // heads // 2) / 2))

    def turned(self, x):
        angle = torch.arange(x.shape[2])[:, None] * self.rates
        angle = torch.cat([angle, angle], -1)
        low, high = x.chunk(2, -1)
        return x * angle.cos() + torch.cat([-high, low], -1) * angle.sin()

    def forward(self, tokens):
        x = self.words(tokens)
        batch, length, size = x.shape
        normal = self.norm(x)
        query = self.query(normal).view(batch, length, self.heads, -1).transpose(1, 2)
        key, value = self.pairs(normal).view(batch, length, 2 * self.shared, -1).transpose(
            1, 2).chunk(2, 1)
        seen = F.scaled_dot_product_attention(self.turned(query), self.turned(key), value,
                                              is_causal=True, enable_gqa=True)
        return self.head(x + self.out(seen.transpose(1, 2).reshape(batch, length, size)))


class Cells(nn.Module):
    """A recurrence that Dynamo unrolls, read in the middle of each sequence."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(5, 7), nn.Linear(7, 2)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 7)
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        return self.out(state).log_softmax(-1)


def convolutional():
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), Residual(8),
                         nn.MaxPool2d(3, 2, padding=1), nn.Conv2d(8, 12, 3), nn.AvgPool2d(2),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(48, 5))


def encoder():
    return nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, activation="gelu", batch_first=True)


def numbers(*shape):
    return lambda batch: torch.randn(batch, *shape)


def tokens(batch):
    return torch.randint(0, 19, (batch, 9))


NETWORKS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3)),
            numbers(6)),
    "convolutional": (convolutional, numbers(3, 25, 25)),
    "groups": (lambda: nn.Sequential(nn.Conv2d(4, 8, 3, groups=2), nn.GroupNorm(2, 8), nn.SiLU(),
                                     nn.Conv2d(8, 8, 3, dilation=2, stride=2), nn.Flatten(1)),
               numbers(4, 12, 12)),
    "signal": (lambda: nn.Sequential(nn.Conv1d(2, 6, 5, stride=2), nn.BatchNorm1d(6), nn.ELU(),
                                     nn.ConvTranspose1d(6, 3, 4, stride=2), nn.Softplus()),
               numbers(2, 21)),
    "decoder": (Decoder, numbers(6)),
    "language": (Language, tokens),
    "encoder": (encoder, numbers(5, 16)),
    "cells": (Cells, numbers(4, 5)),
}

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "vocab_size": 19}
TRANSFORMERS = {
    "BertModel": ("BertConfig", SMALL),
    "LlamaForCausalLM": ("LlamaConfig", {**SMALL, "num_key_value_heads": 2}),
    "GPT2LMHeadModel": ("GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 19}),
}


def has_transformers():
    return importlib.util.find_spec("transformers") is not None
