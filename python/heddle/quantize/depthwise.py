"""depthwise: what a depthwise convolution reads gets channels of one range.

  conv(x, w) = conv(x / s, w s), with s the greatest |x| of a channel beside that of all. Each
  channel of w has a scale of its own, so nothing is lost; 1 / s is a product before the layer.
SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from . import observe
from .graph import attribute

LEAST = 1e-4  # of a factor


def _readers(network, layers):
    """{tensor: the depthwise convolutions that read it}"""
    found = {}
    for layer in layers.values():
        group = attribute(network.producer[layer.key], "group", 1)
        if layer.kind == "Conv" and group > 1 and network.array(layer.weight).shape[1] == 1:
            found.setdefault(layer.x, []).append(layer)
    return found


def even(network, layers, samples, settings):
    """Evens out the channels of what depthwise convolutions read; how many tensors there are."""
    readers = _readers(network, layers)
    if not readers:
        return 0
    greatest = observe.greatest(network, list(readers), samples, settings.threads, axis=1)
    for name, group in readers.items():
        share = np.maximum(greatest[name] / max(greatest[name].max(), observe.TINY), LEAST)
        scale = np.where(greatest[name] > 0, share, 1).astype(np.float32)
        for layer in group:
            weight = network.array(layer.weight)
            factor = np.repeat(scale, len(weight) // len(scale))
            network.replace(network.producer[layer.key], 1,
                            weight * factor.reshape(-1, *[1] * (weight.ndim - 1)))
        made = network.scale(name, (1 / scale).reshape(-1, *[1] * (weight.ndim - 2)),
                             f"{name}/even")
        for layer in group:
            network.producer[layer.key].input[0] = made
        network.index()
    network.settle()
    return len(readers)
