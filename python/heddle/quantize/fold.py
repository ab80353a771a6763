"""fold: what scales and shifts the channels of a layer goes into its weight and bias.

  norm(conv(x, w) + b) = conv(x, w * s) + (b * s + t), with s and t of a BatchNormalization, or of a
  product or a sum with a constant for each channel.
SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from .graph import attribute
from .weights import along

FOLDED = ("BatchNormalization", "Add", "Mul")


def _vector(network, name, channels, rank, axis):
    """The constant as a vector along an axis of a tensor of this rank; None if it is none."""
    array = network.array(name) if network.is_float(name) else None
    if array is None or array.ndim > rank:
        return None
    array = array.reshape((1,) * (rank - array.ndim) + array.shape)
    if any(size != 1 for place, size in enumerate(array.shape) if place != axis):
        return None
    return np.broadcast_to(array.reshape(-1), channels) if array.size in (1, channels) else None


def _scale_and_shift(network, node, made, channels, rank):
    """(s, t) of a node that reads the channels of a layer; None if it does something else."""
    if node.op_type == "BatchNormalization":
        if attribute(node, "training_mode", 0) or node.input[0] != made or len(node.output) > 1:
            return None
        given = [network.array(name) for name in node.input[1:5]]
        if any(array is None or array.dtype != np.float32 for array in given):
            return None
        scale, shift, mean, variance = (array.astype(np.float64) for array in given)
        factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
        return factor, shift - mean * factor
    if node.op_type not in ("Add", "Mul") or node.input[0] == node.input[1]:
        return None
    other = node.input[1] if node.input[0] == made else node.input[0]
    vector = _vector(network, other, channels, rank, 1)
    if vector is None:
        return None
    return ((vector, np.zeros(channels)) if node.op_type == "Mul" else
            (np.ones(channels), vector))


def _fold_into(network, node):
    """Folds the reader of a layer into it; the reader, or None."""
    made, weight = node.output[0], network.array(node.input[1])
    reader = network.only_consumer(made)
    axis = 0 if node.op_type == "Conv" else 1
    if (reader is None or reader.op_type not in FOLDED or weight is None
            or not network.is_float(node.input[1])
            or (axis == 1 and attribute(node, "group", 1) != 1)):
        return None
    bias = network.array(node.input[2]) if len(node.input) > 2 else np.float64(0)
    if bias is None:
        return None
    found = _scale_and_shift(network, reader, made, weight.shape[axis], weight.ndim)
    if found is None:
        return None
    scale, shift = found
    network.replace(node, 1, (weight * along(scale, axis, weight.ndim)).astype(np.float32))
    network.replace(node, 2, (bias * scale + shift).astype(np.float32))
    return reader


def fold(network):
    """Folds all that can be; how many nodes are gone."""
    gone = 0
    while True:
        dropped = set()
        for node in network.nodes:
            if node.op_type in ("Conv", "ConvTranspose") and not node.domain:
                reader = _fold_into(network, node)
                if reader is not None:
                    node.output[0] = reader.output[0]
                    dropped.add(reader.output[0])
        if not dropped:
            return gone
        gone += len(dropped)
        # The layer that was before the reader has its output now, and comes first.
        seen, kept = set(), []
        for node in network.nodes:
            if node.output[0] not in dropped or node.output[0] not in seen:
                kept.append(node)
            seen.add(node.output[0])
        network.set_nodes(kept)
        network.settle()
