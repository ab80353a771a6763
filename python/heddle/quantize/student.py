"""student: the quantised network as it is trained.

Weights and biases are of f32: QuantizeLinear and DequantizeLinear round a weight in the graph, and
derivatives pass straight through them (docs/spec/training.md). The one output is the loss: how far
the outputs are from those of the network in f32, which are inputs.

The scales of weights are held as they were chosen. So the student is what `emit` makes of its
weights, whatever a step does; a scale that followed the greatest weight would move all integers of
a channel with one number. Weights that leave the range of their integers are put back to its end.
SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass, replace

import numpy as np

from ..library import RefusedError
from ..onnx_graph import FLOAT, make_node, make_value
from . import emit, weights

TUNED = "heddle.tuned"
WANTED = "heddle.wanted"
LOSS = "heddle.loss"


@dataclass(frozen=True)
class Latent:
    """An initializer that is trained: whose it is, the magnitude that a learning rate of 1 moves it
    by, and its greatest one (None: any)."""

    key: object
    field: str  # of emit.Weight, or "sum": of the Correction
    unit: float
    most: np.ndarray | None


class Student(emit.Emitter):
    """Emits weights as they are trained."""

    def __init__(self, network, decisions):
        super().__init__(network, decisions)
        self.latents, self.tuned = {}, {}  # by names of initializers, and by keys of weights

    def latent(self, key, field, array, unit, most=None):
        """A new initializer that is trained."""
        name = self.constant(f"{TUNED}.{len(self.latents)}", np.asarray(array, np.float32))
        self.latents[name] = Latent(key, field, unit, most)
        return name

    def written(self, layer, key, weight):
        axis, text, scale = weight.axis, layer.weight, weight.scale
        self.tuned[key] = weight
        wide = scale.reshape(()) if axis is None else weights.along(scale, axis, weight.array.ndim)
        most = self.limit * wide
        name = self.latent(key, "array", np.clip(weight.array, -most, most), float(scale.mean()),
                           most)
        steps = self.steps(text, scale, axis, np.int8)
        stored = self.node("QuantizeLinear", [name, *steps], f"{text}/quantized", self.before,
                           **({} if axis is None else {"axis": axis}))
        return self.dequantised(text, stored, steps, axis), (
            "" if weight.bias is None else
            self.latent(key, "bias", weight.bias, self._unit(layer, scale)))

    def added(self, key, correction):
        layer = self.decisions.places.layers[key]
        scale = weights.scales(self.network.array(layer.weight), None, "minmax", self.limit)
        return self.latent(key, "sum", correction.array, self._unit(layer, scale))

    def _unit(self, layer, scale):
        """Effect of one step of a weight, where what the layer reads is largest."""
        return float(scale.mean()) * max(map(abs, self.decisions.ranges[layer.x]))

    def with_arrays(self, arrays):
        """The decisions with what was trained."""
        tuned, biases = dict(self.tuned), dict(self.decisions.biases)
        for name, latent in self.latents.items():
            if latent.field == "sum":
                biases[latent.key] = replace(biases[latent.key], array=arrays[name].copy())
            else:
                tuned[latent.key] = replace(tuned[latent.key],
                                            **{latent.field: arrays[name].copy()})
        return replace(self.decisions, weights=tuned, biases=biases)


def outputs_of(network, reference):
    """{output of f32, which a loss can be of: its sizes}; those that are open have names."""
    found = {}
    for number, (name, value) in enumerate(zip(network.outputs, reference.outputs)):
        if network.is_float(name):
            dims = network.types[name][1]
            if dims is None:
                dims = [None] * len(value.shape)
            found[name] = [size or f"wanted_{number}_{place}" for place, size in enumerate(dims)]
    if not found:
        raise RefusedError(f"--finetune: '{network.name}' has no output of f32")
    return found


def with_loss(emitter, nodes, outputs, signals):
    """The model of these nodes whose one output is the loss: the mean over the outputs of their
    squared errors beside `signals`, their mean squares, or of divergences. The outputs that are
    wanted are inputs, WANTED.OUTPUT."""
    is_divergence = emitter.decisions.settings.distance == "kl"
    nodes, parts, inputs = list(nodes), [], []

    def add(kind, *given, **attributes):
        return emitter.node(kind, given, f"{LOSS}/{kind}", nodes, **attributes)

    for name, dims in outputs.items():
        wanted, share = f"{WANTED}.{name}", 1 / len(outputs)
        inputs.append(make_value(wanted, dims, FLOAT))
        if is_divergence:
            logs = [add("LogSoftmax", each, axis=-1) for each in (wanted, name)]
            each = add("Mul", add("Softmax", wanted, axis=-1), add("Sub", *logs))
        else:
            error = add("Sub", name, wanted)
            each, share = add("Mul", error, error), share / max(signals[name], 1e-30)
        mean = add("ReduceMean", each, keepdims=0)
        parts.append(add("Mul", mean, emitter.constant(f"{LOSS}/share", np.float32(share))))
    nodes.append(make_node("Sum", parts, [LOSS], LOSS))
    return emitter.model(nodes, inputs, [make_value(LOSS, [], FLOAT)])
