"""bias: the mean error of each channel is taken out of the bias (Nagel et al., ICCV 2019, 4.2).

The means are those of the layer's own error on samples, so that borders and clipping count, too.
SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass

import numpy as np

from .graph import attribute, key_of
from .weights import as_vector


def _added(network, layer):
    """(node, place) of the constant that is added to a layer's channels; None if there is no place
    for one."""
    node = network.producer[layer.key]
    if layer.kind == "Gemm" and attribute(node, "beta", 1.0) != 1:
        return None
    if layer.kind != "MatMul":
        return node, 2
    reader = network.only_consumer(layer.key)
    if reader is None or reader.op_type != "Add":
        return None
    place = 1 if reader.input[0] == layer.key else 0
    return (reader, place) if reader.input[place] in network.tensors else None


@dataclass(frozen=True)
class Correction:
    """Another bias for a layer that works on integers: an operand of the layer's node, or of the
    sum after it."""

    node: str
    place: int
    array: np.ndarray


def corrections(network, layers, errors):
    """{key: Correction} of the layers that have a place for one."""
    found = {}
    for key, layer in layers.items():
        place = _added(network, layer) if layer.constant else None
        if place is None:
            continue
        mean, (node, operand) = errors[key].mean, place
        bias = network.array(node.input[operand]) if operand < len(node.input) else None
        if bias is None:
            bias = np.zeros(mean.size, np.float32)
        vector = as_vector(bias)
        if vector is not None and vector.size == mean.size:
            fixed = (vector - mean).astype(np.float32).reshape(bias.shape)
            found[key] = Correction(key_of(node), operand, fixed)
    return found
