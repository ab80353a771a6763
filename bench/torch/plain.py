"""Plain definitions of networks that timm has, and of some of torchvision in small sizes."""

import torch
from torch import nn
from torch.nn import functional as F


def patches(size, width):
    """Pictures as rows of patches."""
    return nn.Sequential(nn.Conv2d(3, width, size, size), nn.Flatten(2))


class Mlp(nn.Sequential):
    def __init__(self, width, hidden):
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class MixerBlock(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.places, self.channels = Mlp(count, 2 * count), Mlp(width, 4 * width)

    def forward(self, x):
        x = x + self.places(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.second(x))


class Mixer(nn.Module):
    """MLP-Mixer (Tolstikhin et al. 2021)."""

    def __init__(self, count=36, width=192, depth=4):
        super().__init__()
        self.patches = patches(16, width)
        self.blocks = nn.Sequential(*(self.block(count, width) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 100)

    def block(self, count, width):
        return MixerBlock(count, width)

    def forward(self, x):
        x = self.blocks(self.patches(x).transpose(1, 2))
        return self.head(self.norm(x).mean(1))


class GatedBlock(nn.Module):
    """A gate from a product along the places (gMLP, Liu et al. 2021)."""

    def __init__(self, count, width):
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(width), nn.LayerNorm(2 * width)
        self.enter, self.leave = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)
        self.places = nn.Conv1d(count, count, 1)

    def forward(self, x):
        first, second = F.gelu(self.enter(self.norm(x))).chunk(2, -1)
        return x + self.leave(first * self.places(self.inner(second)))


class GatedMixer(Mixer):
    def block(self, count, width):
        return GatedBlock(count, width)


class Residual(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return x + self.body(x)


def convmixer(width=128, depth=4):
    """Patches are all you need? (Trockman and Kolter 2022)."""
    def blocks():
        for _ in range(depth):
            yield Residual(nn.Sequential(
                nn.Conv2d(width, width, 5, padding="same", groups=width), nn.GELU(),
                nn.BatchNorm2d(width)))
            yield nn.Sequential(nn.Conv2d(width, width, 1), nn.GELU(), nn.BatchNorm2d(width))

    return nn.Sequential(nn.Conv2d(3, width, 8, 8), nn.GELU(), nn.BatchNorm2d(width), *blocks(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100))


class StandardConv(nn.Conv2d):
    """A convolution whose filters are normalised in each call."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.gain = nn.Parameter(torch.ones(self.out_channels, 1, 1, 1))

    def forward(self, x):
        count = self.weight[0].numel()
        spread, mean = torch.var_mean(self.weight, (1, 2, 3), keepdim=True)
        weight = (self.weight - mean) * torch.rsqrt((spread * count).clamp(min=1e-4)) * self.gain
        return F.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class SqueezeExcite(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, width // 4, 1),
                                  nn.SiLU(), nn.Conv2d(width // 4, width, 1))

    def forward(self, x):
        return x * self.gate(x).sigmoid()


class FreeBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(StandardConv(width, width // 2, 1), nn.SiLU(),
                                  StandardConv(width // 2, width // 2, 3, padding=1, groups=4),
                                  nn.SiLU(), StandardConv(width // 2, width, 1),
                                  SqueezeExcite(width))
        self.gain = nn.Parameter(torch.tensor(0.2))

    def forward(self, x):
        return x + 2 * self.gain * self.body(F.silu(x))


class NormalizerFree(nn.Sequential):
    """NFNet's blocks (Brock et al. 2021)."""

    def __init__(self, width=64):
        super().__init__(StandardConv(3, width, 3, stride=4, padding=1), FreeBlock(width),
                         FreeBlock(width), nn.AvgPool2d(2), FreeBlock(width), nn.Flatten(2),
                         nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, 100))


class Ghost(nn.Module):
    """Half of the channels are made of the others by a convolution of each (Han et al. 2020)."""

    def __init__(self, inner, outer, stride=1):
        super().__init__()
        half = (outer + 1) // 2
        self.outer = outer
        self.first = nn.Sequential(nn.Conv2d(inner, half, 1, stride, bias=False),
                                   nn.BatchNorm2d(half), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(half, half, 3, padding=1, groups=half, bias=False),
                                    nn.BatchNorm2d(half), nn.ReLU())

    def forward(self, x):
        x = self.first(x)
        return torch.cat([x, self.second(x)], 1)[:, :self.outer]


def ghostnet():
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), Ghost(16, 24), SqueezeExcite(24),
                         Ghost(24, 41, 2), nn.Hardswish(), Ghost(41, 80, 2),
                         nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(80, 100))


class CovarianceBlock(nn.Module):
    """Attention of channels to channels (XCiT, El-Nouby et al. 2021)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.rate = heads, nn.Parameter(torch.ones(heads, 1, 1))
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.enter, self.leave = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = Mlp(width, 4 * width)

    def forward(self, x):
        batch, count, width = x.shape
        parts = self.enter(self.first(x)).view(batch, count, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 4, 1).unbind()
        scores = F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).transpose(-2, -1)
        found = (scores * self.rate).softmax(-1) @ value
        x = x + self.leave(found.permute(0, 3, 1, 2).reshape(batch, count, width))
        return x + self.mlp(self.second(x))


class Covariances(Mixer):
    def block(self, count, width):
        return CovarianceBlock(width, 4)


def double(inner, outer):
    return nn.Sequential(nn.Conv2d(inner, outer, 3, padding=1), nn.GroupNorm(4, outer),
                         nn.LeakyReLU(0.1), nn.Conv2d(outer, outer, 3, padding=1),
                         nn.InstanceNorm2d(outer, affine=True), nn.PReLU())


class UNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.down = nn.ModuleList([double(3, width), double(width, 2 * width)])
        self.middle = double(2 * width, 4 * width)
        self.raise_ = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
                                     nn.ConvTranspose2d(2 * width, width, 2, 2)])
        self.up = nn.ModuleList([double(4 * width, 2 * width), double(2 * width, width)])
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for part in self.down:
            x = part(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, part in zip(self.raise_, self.up):
            x = part(torch.cat([kept.pop(), up(x)], 1))
        return self.out(x)


class SplitBlock(nn.Module):
    """Branches that are weighed by a softmax over them (ResNeSt, Zhang et al. 2020)."""

    def __init__(self, width, count=2):
        super().__init__()
        self.count = count
        self.conv = nn.Conv2d(width, count * width, 3, padding=1, groups=2 * count, bias=False)
        self.norm = nn.BatchNorm2d(count * width)
        self.first, self.second = nn.Conv2d(width, 32, 1), nn.Conv2d(32, count * width, 1)

    def forward(self, x):
        parts = F.relu(self.norm(self.conv(x))).unflatten(1, (self.count, -1))
        gate = self.second(F.relu(self.first(parts.sum(1).mean((2, 3), keepdim=True))))
        return x + (parts * gate.view(len(x), self.count, -1, 1, 1).softmax(1)).sum(1)


def split_attention(width=64):
    return nn.Sequential(nn.Conv2d(3, width, 7, 4, 3), nn.BatchNorm2d(width), nn.ReLU(),
                         SplitBlock(width), SplitBlock(width),
                         nn.AvgPool2d(3, 2, 1, ceil_mode=True), SplitBlock(width),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100))


class Branches(nn.Module):
    """Convolutions of 3, of 1 and of nothing, added (RepVGG, Ding et al. 2021)."""

    def __init__(self, inner, outer, stride=1):
        super().__init__()
        self.three = nn.Sequential(nn.Conv2d(inner, outer, 3, stride, 1, bias=False),
                                   nn.BatchNorm2d(outer))
        self.one = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False),
                                 nn.BatchNorm2d(outer))
        self.same = nn.BatchNorm2d(inner) if inner == outer and stride == 1 else None

    def forward(self, x):
        found = self.three(x) + self.one(x)
        return F.relu(found if self.same is None else found + self.same(x))


def repvgg():
    return nn.Sequential(Branches(3, 32, 2), Branches(32, 48, 2), Branches(48, 48),
                         Branches(48, 96, 2), Branches(96, 96), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(96, 100))


class Tagger(nn.Module):
    """Recurrent layers of both directions over words."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(99, 32)
        self.layers = nn.LSTM(32, 48, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(96, 9)

    def forward(self, words):
        return self.out(self.layers(self.words(words))[0]).log_softmax(-1)


def maxvit(side):
    """MaxViT (Tu et al. 2022) with fewer blocks than torchvision's smallest."""
    from torchvision.models.maxvit import MaxVit

    return MaxVit(input_size=(side, side), stem_channels=32, block_channels=[32, 64],
                  block_layers=[1, 1], head_dim=16, stochastic_depth_prob=0.0, partition_size=7)


def mvit(side, frames):
    """MViT version 2 (Li et al. 2021) with fewer blocks than torchvision's smallest."""
    from torchvision.models.video.mvit import MSBlockConfig, MViT

    blocks = [MSBlockConfig(num_heads=heads, input_channels=inner, output_channels=outer,
                            kernel_q=[3, 3, 3], kernel_kv=[3, 3, 3], stride_q=[1, step, step],
                            stride_kv=[1, shrink, shrink])
              for heads, inner, outer, step, shrink in
              ((1, 96, 96, 1, 4), (2, 96, 192, 2, 2), (2, 192, 192, 1, 2), (4, 192, 384, 2, 1))]
    return MViT(spatial_size=(side, side), temporal_size=frames, block_setting=blocks,
                residual_pool=True, residual_with_cls_embed=False, rel_pos_embed=True,
                proj_after_attn=True, num_classes=100)
