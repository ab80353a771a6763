"""The convolution and vision networks of inference and training, as compact definitions in torch.

They have the layers and sizes of the published networks (ResNet-50 v1.5, MobileNetV2, ViT-B/16), so
their cost is that of the real ones.
"""

import torch
from torch import nn


def conv(inputs, outputs, size, stride=1, groups=1, act=nn.ReLU):
    """Convolution, batch norm and, unless None, an activation."""
    layers = [nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Bottleneck(nn.Module):
    """1x1, 3x3 with the stride, 1x1, added to the input or its projection."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(conv(inputs, width, 1), conv(width, width, 3, stride),
                                  conv(width, 4 * width, 1, act=None))
        same = stride == 1 and inputs == 4 * width
        self.short = nn.Identity() if same else conv(inputs, 4 * width, 1, stride, act=None)
        # Blocks begin as their shortcut (Goyal et al., 2017, 5.1); else gradients of so deep a
        # network magnify the order of sums until no two engines agree.
        nn.init.zeros_(self.body[-1][-1].weight)

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


def resnet50(classes=1000):
    """ResNet-50 v1.5 (the stride is in the 3x3 convolution)."""
    layers, channels = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, classes))


class Inverted(nn.Module):
    """1x1 up, depthwise 3x3, 1x1 down; added to the input where the shapes agree."""

    def __init__(self, inputs, outputs, stride, times):
        super().__init__()
        width = inputs * times
        self.adds = stride == 1 and inputs == outputs
        up = [conv(inputs, width, 1, act=nn.ReLU6)] if times > 1 else []
        self.body = nn.Sequential(*up, conv(width, width, 3, stride, width, nn.ReLU6),
                                  conv(width, outputs, 1, act=None))

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


def mobilenet_v2(classes=1000):
    """MobileNetV2 of width 1.0."""
    layers, channels = [conv(3, 32, 3, 2, act=nn.ReLU6)], 32
    for times, outputs, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                                           (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                           (6, 320, 1, 1)):
        for block in range(blocks):
            layers.append(Inverted(channels, outputs, stride if block == 0 else 1, times))
            channels = outputs
    return nn.Sequential(*layers, conv(channels, 1280, 1, act=nn.ReLU6), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(1280, classes))


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
