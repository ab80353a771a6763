"""quadralib: the networks of QuadraLib's table (Xu et al., MLSys 2022) for images of 32 x 32, with
first-order and with quadratic layers, for `./dev bench quadratic --networks`.
"""

from torch import nn
from torch.nn import functional

from bench.networks.trained import Network, Quadratic, small_images, vgg
from bench.networks.vision import conv


class Residual(nn.Module):
    def __init__(self, layer, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(layer(inputs, outputs, 3, stride),
                                  layer(outputs, outputs, 3, act=None))
        same = stride == 1 and inputs == outputs
        self.short = nn.Identity() if same else conv(inputs, outputs, 1, stride, act=None)

    def forward(self, x):
        return functional.relu(self.body(x) + self.short(x))


def resnet32(layer, classes=10):
    """He et al., 2016, section 4.2."""
    layers, channels = [layer(3, 16, 3)], 16
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        for i in range(5):
            layers.append(Residual(layer, channels, width, stride if i == 0 else 1))
            channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, classes))


def mobilenet(layer, classes=10):
    """MobileNet (Howard et al., 2017) of half the width, with a first stride of 1."""
    layers, channels = [layer(3, 16, 3)], 16
    for width, stride in ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2), *[(256, 1)] * 5,
                          (512, 2), (512, 1)):
        layers += [layer(channels, channels, 3, stride, channels), layer(channels, width, 1)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, classes))


MAKERS = {"vgg16": vgg, "resnet32": resnet32, "mobilenet": mobilenet}
LAYERS = {"first_order": conv, "quadratic": Quadratic}
NETWORKS = [Network(f"{name}_{order}", lambda make=make, layer=layer: make(layer), small_images,
                    "cross_entropy", "momentum")
            for name, make in MAKERS.items() for order, layer in LAYERS.items()]
