"""equalise: channels between two convolutions are scaled to like ranges of both weights.

  conv(relu(conv(x, w1) + b1), w2) = conv(relu(conv(x, w1 / s) + b1 / s), w2 * s) for s > 0, with
  s = sqrt(r1 / r2) of the ranges of a channel in both (Nagel et al., ICCV 2019, 4.1), until nothing
  changes any more. Only a Relu or LeakyRelu, or nothing, may be between the two.
SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from .graph import attribute
from .weights import along

ROUNDS = 30
ENOUGH = 1e-3  # a change of scales that ends the rounds
BETWEEN = ("Relu", "LeakyRelu")


def _is_conv(network, node):
    return (node is not None and node.op_type == "Conv" and network.is_float(node.input[1])
            and node.input[1] in network.tensors
            and (len(node.input) < 3 or not node.input[2] or node.input[2] in network.tensors))


def pairs(network):
    """Convolutions that follow each other."""
    found = []
    for first in network.nodes:
        if not _is_conv(network, first):
            continue
        name = first.output[0]
        reader = network.only_consumer(name)
        if reader is not None and reader.op_type in BETWEEN:
            name = reader.output[0]
            reader = network.only_consumer(name)
        if _is_conv(network, reader) and reader.input[0] == name and name not in reader.input[1:]:
            found.append((first, reader))
    return found


def _by_channels(weight, group):
    """The second weight with an axis for the groups: [group, outputs, inputs, ...]."""
    return weight.reshape(group, weight.shape[0] // group, *weight.shape[1:])


def equalise(network):
    """Equalises all pairs; how many there are."""
    found = pairs(network)
    for _ in range(ROUNDS):
        changes = [_equalise(network, first, second) for first, second in found]
        if max(changes, default=0) < ENOUGH:
            break
    network.settle()
    return len(found)


def _equalise(network, first, second):
    """One pair; the greatest change of a scale."""
    one, two = network.array(first.input[1]), network.array(second.input[1])
    group = attribute(second, "group", 1)
    parts = _by_channels(two, group)
    range_one = np.abs(one).reshape(len(one), -1).max(axis=1)
    spatial = tuple(axis for axis in range(parts.ndim) if axis not in (0, 2))
    range_two = np.abs(parts).max(axis=spatial).reshape(-1)
    usable = (range_one > 0) & (range_two > 0)
    scale = np.ones_like(range_one)
    scale[usable] = np.sqrt(range_one[usable] / range_two[usable])
    network.replace(first, 1, one / along(scale, 0, one.ndim))
    if len(first.input) > 2 and first.input[2]:
        network.replace(first, 2, network.array(first.input[2]) / scale)
    steps = scale.reshape(group, 1, -1, *(1,) * (parts.ndim - 3))
    network.replace(second, 1, (parts * steps).reshape(two.shape))
    return float(np.abs(scale - 1).max())
