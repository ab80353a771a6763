"""smooth: outliers of activations go into the weights that read them (Xiao et al., ICML 2023).

  x w = (x / s) (w * s), with s = max |x|^alpha / max |w|^(1 - alpha) of an input channel. x is what
  a normalisation of layers has made: 1 / s goes into its scale and bias, or where others read x,
  too, into a product of its own before the layers.
SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from . import observe
from .graph import attribute, key_of
from .weights import along

NORMALISATIONS = ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
LEAST = 1e-5


def absorbers(network, name, linear=False):
    """(node, place, axis) of the constants that scale the channels of a tensor: those by which a
    normalisation ends or, with `linear`, the weight and bias of a product, which only a Relu or
    another factor may follow. None if there are none."""
    node = network.producer.get(name)
    if node is None:
        return None
    kind = node.op_type
    if kind in NORMALISATIONS:
        return _vectors(network, node, [at for at in range(1, len(node.input)) if node.input[at]])
    if kind in ("Add", "Mul"):  # written out: (x - mean) / deviation * scale + bias
        own = next((found for at in (1, 0) if (found := _vectors(network, node, [at]))), None)
        if own is None:
            others = node.input if linear and kind == "Mul" else []
            return next((found for other in others
                         if (found := _below(network, node, other, True))), None)
        if kind == "Mul":
            return own
        below = _below(network, node, node.input[1 - own[0][1]], linear)
        return own + below if below else None
    if linear and kind == "Relu":
        return _below(network, node, node.input[0], True)
    return _of_product(network, node) if linear and kind in ("MatMul", "Gemm") else None


def _below(network, node, name, linear):
    """The absorbers of what this node alone reads."""
    return absorbers(network, name, linear) if network.only_consumer(name) is node else None


def _vectors(network, node, places):
    arrays = [network.array(node.input[place]) for place in places]
    is_vector = all(array is not None and array.ndim == 1 and array.size > 1 for array in arrays)
    return [(node, place, 0) for place in places] if is_vector else None


def _of_product(network, node):
    """The weight of a MatMul or Gemm, and its bias."""
    weight = network.array(node.input[1])
    if weight is None or weight.ndim != 2:
        return None
    axis = 0 if attribute(node, "transB", 0) else 1
    found = [(node, 1, axis)]
    if len(node.input) > 2 and node.input[2]:
        bias = network.array(node.input[2])
        if bias is None or not bias.ndim or bias.shape[-1] != weight.shape[axis]:
            return None
        found.append((node, 2, bias.ndim - 1))
    return found


def _readers(network, layers):
    """{tensor: its layers} of those that a normalisation makes."""
    found = {}
    for layer in layers.values():
        is_product = layer.kind in ("MatMul", "Gemm") and layer.constant and layer.axis is not None
        if is_product and absorbers(network, layer.x) is not None:
            found.setdefault(layer.x, []).append(layer)
    return found


def inputs_axis(network, layer):
    """The axis of a weight along which the inputs lie."""
    node = network.producer[layer.key]
    return 1 if layer.kind == "Gemm" and attribute(node, "transB", 0) else 0


def smooth(network, layers, samples, settings):
    """Smooths all that follows normalisations; how many tensors there are."""
    readers = _readers(network, layers)
    if not readers:
        return 0
    greatest = observe.greatest(network, list(readers), samples, settings.threads)
    for name, group in readers.items():
        found = [np.abs(network.array(layer.weight)).max(axis=1 - inputs_axis(network, layer))
                 for layer in group]
        of_weights = np.maximum(np.max(found, axis=0), LEAST)
        scale = np.maximum(greatest[name], LEAST) ** settings.smooth / of_weights ** (
            1 - settings.smooth)
        scale = np.where(greatest[name] > 0, np.maximum(scale, LEAST), 1).astype(np.float32)
        move(network, name, group, scale)
    network.settle()
    return len(readers)


def is_read_by(network, name, keys):
    """True if nothing but these nodes reads a tensor."""
    return not network.is_shared(name) and all(
        key_of(node) in keys for node in network.consumers[name])


def move(network, name, group, scale):
    """Divides the tensor by `scale` and multiplies the weights by it."""
    keys = {layer.key for layer in group}
    for layer in group:
        weight, axis = network.array(layer.weight), inputs_axis(network, layer)
        factor = scale if axis else scale[:, None]
        network.replace(network.producer[layer.key], 1, weight * factor)
    if is_read_by(network, name, keys):
        for node, place, axis in absorbers(network, name, True):
            array = network.array(node.input[place])
            network.replace(node, place, array / along(scale, axis, array.ndim))
        return
    made = network.scale(name, 1 / scale, f"{name}/smooth")
    for key in keys:
        network.producer[key].input[0] = made
    network.index()
