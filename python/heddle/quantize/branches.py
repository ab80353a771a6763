"""branches: what quantisation does to single layers.

A model in which each layer has a twin that works on integers and reads the same f32 values: so the
error of each layer is its own, and one pass over the samples is enough. Only sums leave the model.
SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass

import numpy as np

from ..onnx_graph import make_value
from . import observe
from .emit import Emitter
from .graph import attribute, key_of

PARTS = ("sum", "count", "noise", "signal")


@dataclass
class LayerError:
    """Error of a layer's results: the mean of each channel, and sums of squares of the error and of
    the results."""

    mean: np.ndarray
    noise: float
    signal: float

    @property
    def decibels(self):
        return decibels(self.signal, self.noise)


def decibels(signal, noise):
    """The ratio of two sums of squares; no noise is 200."""
    return 200.0 if noise <= 1e-20 * signal else float(10 * np.log10(max(signal, 1e-300) / noise))


def _twin(emitter, node, layer):
    """Adds the twin of a layer; {part: tensor}."""
    key, channels = layer.key, _channels(emitter.network, layer)
    copy = type(node)()
    copy.CopyFrom(node)
    operands = emitter.operands(node)
    del copy.input[:], copy.output[:]
    copy.input.extend(operands)
    copy.output.append(emitter.name(f"{key}/twin"))
    copy.name = copy.output[0]
    emitter.nodes.append(copy)
    error = emitter.node("Sub", [copy.output[0], key], f"{key}/error")
    axes = [0]
    if layer.kind in ("Conv", "ConvTranspose"):
        rank = emitter.network.array(layer.weight).ndim
        axes = [axis for axis in range(rank) if axis != 1]
        flat = error
    else:
        shape = emitter.constant(f"{key}/rows", np.array([-1, channels], np.int64))
        flat = emitter.node("Reshape", [error, shape], f"{key}/flat")
    axes = emitter.constant(f"{key}/axes", np.array(axes, np.int64))
    squares = [emitter.node("Mul", [each, each], f"{key}/squares") for each in (error, key)]
    return {"sum": emitter.node("ReduceSum", [flat, axes], f"{key}/sum", keepdims=0),
            "count": emitter.node("Size", [error], f"{key}/count"),
            "noise": emitter.node("ReduceSum", squares[:1], f"{key}/noise", keepdims=0),
            "signal": emitter.node("ReduceSum", squares[1:], f"{key}/signal", keepdims=0)}


def _channels(network, layer):
    """How many output channels a layer has."""
    if not layer.constant:
        return 1
    array = network.array(layer.weight)
    if layer.kind == "Conv":
        return array.shape[0]
    if layer.kind == "ConvTranspose":  # its groups have so many each
        node = network.producer[layer.key]
        return array.shape[1] * attribute(node, "group", 1)
    return array.shape[-1] if layer.kind == "MatMul" else array.shape[layer.axis]


def layer_errors(network, decisions, samples):
    """{key: LayerError} of all layers."""
    emitter, places, parts, nodes = Emitter(network, decisions), decisions.places, {}, []
    for node in network.nodes:
        nodes.append(node)
        if key_of(node) in places.layers:
            parts[key_of(node)] = _twin(emitter, node, places.layers[key_of(node)])
            nodes += emitter.nodes
            emitter.nodes.clear()
    outputs = [make_value(name, None, 7 if part == "count" else 1)
               for each in parts.values() for part, name in each.items()]
    model = emitter.model([*emitter.before, *nodes], outputs=outputs)
    module = observe.compiled(model, decisions.settings.threads)
    totals = {}
    for results in observe.each_run(module, samples.calibrating(), f"'{network.name}'"):
        for name, array in results.items():
            totals[name] = totals.get(name, 0) + np.asarray(array, np.float64)
    found = {}
    for key, names in parts.items():
        total, count, noise, signal = (totals[names[part]] for part in PARTS)
        found[key] = LayerError(total / max(count / total.size, 1), float(noise), float(signal))
    return found
