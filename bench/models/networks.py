"""The convolution and vision networks of the benchmark, as compact definitions in torch.

They have the layers and sizes of the published networks (ResNet-50 v1.5, MobileNetV2, ViT-B/16), so
their cost is that of the real ones; the weights are random, and batch statistics are measured on a
random batch, so that activations stay in the range that a trained network has.
"""

import torch
from torch import nn


def _conv(inputs, outputs, size, stride=1, groups=1, activation=nn.ReLU):
    """Convolution, batch norm and, unless None, an activation."""
    layers = [nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([activation(inplace=True)] if activation else []))


class Bottleneck(nn.Module):
    """1x1, 3x3 with the stride, 1x1, added to the input or its projection."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(_conv(inputs, width, 1), _conv(width, width, 3, stride),
                                  _conv(width, outputs, 1, activation=None))
        same = stride == 1 and inputs == outputs
        self.skip = nn.Identity() if same else _conv(inputs, outputs, 1, stride, activation=None)

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def resnet50():
    """ResNet-50 v1.5 (the stride is in the 3x3 convolution)."""
    layers, inputs = [_conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class InvertedResidual(nn.Module):
    """1x1 up, depthwise 3x3, 1x1 down; added to the input where the shapes agree."""

    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        width = inputs * expand
        up = [] if expand == 1 else [_conv(inputs, width, 1, activation=nn.ReLU6)]
        self.body = nn.Sequential(*up, _conv(width, width, 3, stride, width, nn.ReLU6),
                                  _conv(width, outputs, 1, activation=None))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


def mobilenet_v2():
    """MobileNetV2 of width 1.0."""
    layers, inputs = [_conv(3, 32, 3, 2, activation=nn.ReLU6)], 32
    table = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
             (6, 160, 3, 2), (6, 320, 1, 1))
    for expand, outputs, blocks, stride in table:
        for block in range(blocks):
            layers.append(InvertedResidual(inputs, outputs, stride if block == 0 else 1, expand))
            inputs = outputs
    return nn.Sequential(*layers, _conv(inputs, 1280, 1, activation=nn.ReLU6),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


class Block(nn.Module):
    """A transformer block with the norms first."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=1e-6) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def attention(self, x):
        batch, tokens, width = x.shape
        parts = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5, -1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """ViT-B/16 for 224x224 pictures: 196 patches and a class token."""

    def __init__(self, width=768, depth=12, heads=12):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(0.02 * torch.randn(1, 197, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])


def measure_statistics(network):
    """Sets each batch norm's mean and variance to those of a random batch, then freezes them."""
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
        nn.init.uniform_(norm.weight, 0.6, 1.0)
        nn.init.normal_(norm.bias, std=0.1)
    for block in network.modules():
        if isinstance(block, Bottleneck):  # sums over skips would grow; training keeps them small
            nn.init.constant_(block.body[-1][1].weight, 0.2)
    if norms:
        network.train()
        with torch.no_grad():
            network(torch.randn(4, 3, 224, 224))
    return network.eval()
