"""smooth: outliers of activations go into the weights that read them (Xiao et al., ICML 2023).

  x w = (x / s) (w * s), with s = max |x|^alpha / max |w|^(1 - alpha) of an input channel. x is what
  a normalisation of layers has made: 1 / s goes into its scale and bias, or where others read x,
  too, into a product of its own before the layers.
SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from . import observe
from .graph import attribute, key_of

NORMALISATIONS = ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
LEAST = 1e-5


def _vectors(network, name):
    """Nodes and places of the constants by which a normalisation ends; None if it is none."""
    node = network.producer.get(name)
    if node is None:
        return None
    places = [place for place in range(1, len(node.input)) if node.input[place]]
    if node.op_type in NORMALISATIONS:
        found = [(node, place) for place in places]
    elif node.op_type == "Add":  # written out: (x - mean) / deviation * scale + bias
        inner = network.producer.get(node.input[0])
        if (inner is None or inner.op_type != "Mul"
                or network.only_consumer(inner.output[0]) is not node):
            return None
        found = [(inner, 1), (node, 1)]
    else:
        return None
    arrays = [network.array(each.input[place]) for each, place in found]
    is_vector = all(array is not None and array.ndim == 1 and array.size > 1 for array in arrays)
    return found if is_vector else None


def _readers(network, layers):
    """{tensor: its layers} of those that a normalisation makes."""
    found = {}
    for layer in layers.values():
        is_product = layer.kind in ("MatMul", "Gemm") and layer.constant and layer.axis is not None
        if is_product and _vectors(network, layer.x) is not None:
            found.setdefault(layer.x, []).append(layer)
    return found


def _inputs_axis(network, layer):
    node = network.producer[layer.key]
    return 1 if layer.kind == "Gemm" and attribute(node, "transB", 0) else 0


def smooth(network, layers, samples, settings):
    """Smooths all that follows normalisations; how many tensors there are."""
    readers = _readers(network, layers)
    if not readers:
        return 0
    greatest = observe.greatest(network, list(readers), samples, settings.threads)
    for name, group in readers.items():
        found = [np.abs(network.array(layer.weight)).max(axis=1 - _inputs_axis(network, layer))
                 for layer in group]
        of_weights = np.maximum(np.max(found, axis=0), LEAST)
        scale = np.maximum(greatest[name], LEAST) ** settings.smooth / of_weights ** (
            1 - settings.smooth)
        scale = np.where(greatest[name] > 0, np.maximum(scale, LEAST), 1).astype(np.float32)
        _move(network, name, group, scale)
    network.settle()
    return len(readers)


def _move(network, name, group, scale):
    """Divides the tensor by `scale` and multiplies the weights by it."""
    keys = {layer.key for layer in group}
    for layer in group:
        weight, axis = network.array(layer.weight), _inputs_axis(network, layer)
        factor = scale if axis else scale[:, None]
        network.replace(network.producer[layer.key], 1, weight * factor)
    others = [node for node in network.consumers[name] if key_of(node) not in keys]
    if not others and not network.is_shared(name):
        for node, place in _vectors(network, name):
            network.replace(node, place, network.array(node.input[place]) / scale)
        return
    made = network.scale(name, 1 / scale, f"{name}/smooth")
    for key in keys:
        network.producer[key].input[0] = made
    network.index()
