"""emit: graphs with QuantizeLinear and DequantizeLinear.

`Emitter` makes the pairs and weights, each once; `quantised` a model of them. `switched` makes one
in which each op has an input that says whether it works on integers: so one compilation serves for
all choices. SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from ..onnx_graph import make_node, make_value, nodes_of
from . import weights
from .calibrate import Grid
from .graph import key_of, new_name

BOOL = 9


@dataclass
class Decisions:
    """The quantised ops (Places), the range of each tensor, the settings, and what differs from f32
    before it is rounded: biases of layers (bias.Correction), and weights (Weight), by the keys that
    the emitter gives them."""

    places: object
    ranges: dict
    settings: object
    biases: dict = field(default_factory=dict)
    weights: dict = field(default_factory=dict)

    @property
    def grid(self):
        return Grid(self.settings.activations == "s8")


@dataclass
class Weight:
    """A layer's weight and bias (None: it has none of that form) before they are rounded, and the
    scale of the weight, for each channel of an axis (None: one)."""

    array: np.ndarray
    axis: int | None
    scale: np.ndarray
    bias: np.ndarray | None


class Emitter:
    """New nodes and constants over a network, which stays as it is."""

    def __init__(self, network, decisions):
        self.network, self.decisions = network, decisions
        self.before, self.nodes, self.constants = [], [], []
        self._pairs, self._weights = {}, {}
        self._names = set(network.names)

    def name(self, text):
        """A name that is not taken, like this one."""
        return new_name(self._names, text)

    def constant(self, text, array):
        """A new initializer."""
        name = self.name(text)
        self.constants.append(self.network.onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, kind, inputs, text, into=None, **attributes):
        """A new node with one output."""
        name = self.name(text)
        (self.nodes if into is None else into).append(
            make_node(kind, inputs, [name], name, **attributes))
        return name

    def parameters(self, tensor):
        """(scale, zero point) of a tensor."""
        return self.decisions.grid.parameters(*self.decisions.ranges[tensor])

    def pair(self, tensor):
        """The tensor as its integers stand for it."""
        if tensor not in self._pairs:
            scale, zero = self.parameters(tensor)
            given = [self.constant(f"{tensor}/scale", scale), self.constant(f"{tensor}/zero", zero)]
            stored = self.node("QuantizeLinear", [tensor, *given], f"{tensor}/quantized")
            self._pairs[tensor] = self.node("DequantizeLinear", [stored, *given],
                                            f"{tensor}/dequantized")
        return self._pairs[tensor]

    def weight(self, layer):
        """(weight, bias or "") of a layer as their integers stand for them."""
        network, settings = self.network, self.decisions.settings
        array = network.array(layer.weight)
        axis = layer.axis if settings.per_channel else None
        bias = self._bias(layer, array.shape[axis] if axis is not None else None)
        key = (layer.weight, axis) if bias is None else layer.key
        if key not in self._weights:
            found = self.decisions.weights.get(key)
            if found is None:
                scale = weights.scales(array, axis, settings.weight_scale, self.limit)
                if bias is not None:
                    wide = weights.enough_for_bias(scale, bias, self.parameters(layer.x)[0])
                    scale = wide if axis is not None else wide.max(keepdims=True)
                found = Weight(array, axis, scale, bias)
            self._weights[key] = self.written(layer, key, found)
        return self._weights[key]

    @property
    def limit(self):
        """The greatest integer of a weight."""
        return weights.REDUCED if self.decisions.settings.reduce_range else weights.MOST

    def written(self, layer, _, weight):
        """(weight, bias or "") as nodes."""
        axis, scale = weight.axis, weight.scale
        plain = self._stored(layer.weight, weights.integers(weight.array, scale, axis, self.limit),
                             scale, axis)
        if weight.bias is None:
            return plain, ""
        step = (scale * self.parameters(layer.x)[0]).astype(np.float32)
        return plain, self._stored(f"{layer.key}/bias", weights.bias_integers(weight.bias, step),
                                   step, 0 if axis is not None else None)

    def _bias(self, layer, channels):
        """The bias of a layer as a vector; None if it has none of this form."""
        correction = self.decisions.biases.get(layer.key)
        bias = self.network.array(layer.bias) if layer.bias else None
        if correction is not None and correction.node == layer.key:
            bias = correction.array
        if bias is None or (channels is not None and bias.size != channels):
            return None
        return weights.as_vector(bias)

    def _stored(self, text, array, scale, axis):
        """A DequantizeLinear of a constant."""
        stored = self.constant(f"{text}/integers", array)
        return self.dequantised(text, stored, self.steps(text, scale, axis, array.dtype), axis)

    def steps(self, text, scale, axis, dtype):
        """The scale, for each channel or one, and zero points of 0."""
        scale = scale if axis is not None else scale.reshape(())
        return [self.constant(f"{text}/scale", scale),
                self.constant(f"{text}/zero", np.zeros(scale.shape, dtype))]

    def dequantised(self, text, stored, steps, axis):
        """A DequantizeLinear before all other nodes."""
        return self.node("DequantizeLinear", [stored, *steps], f"{text}/dequantized", self.before,
                         **({} if axis is None else {"axis": axis}))

    def operands(self, node):
        """The operands of a quantised op."""
        inputs, key = list(node.input), key_of(node)
        places = self.decisions.places
        layer = places.layers.get(key)
        reads = places.reads(key)
        if layer is not None and layer.constant:
            weight, bias = self.weight(layer)
            bias = bias or layer.bias
            return [self.pair(layer.x), weight, *([bias] if bias else [])]
        inputs[:len(reads)] = [self.pair(name) for name in reads]
        return inputs

    def corrected(self):
        """{a sum after a layer: (the layer, the place and name of its corrected operand)}."""
        return {each.node: (key, each.place, self.added(key, each))
                for key, each in self.decisions.biases.items()
                if each.node != key and key in self.decisions.places.ops}

    def added(self, key, correction):
        """The corrected operand of a sum after a layer."""
        return self.constant(f"{key}/bias", correction.array)

    def model(self, nodes, inputs=None, outputs=None):
        """The model of these nodes, with the constants that they read."""
        network, onnx = self.network, self.network.onnx
        model = onnx.ModelProto()
        for field in ("ir_version", "producer_name", "producer_version", "domain", "model_version",
                      "doc_string"):
            setattr(model, field, getattr(network.model, field))
        for field in ("opset_import", "metadata_props", "functions"):
            getattr(model, field).extend(getattr(network.model, field))
        graph, given = model.graph, network.graph
        graph.name = given.name
        graph.node.extend(nodes)
        graph.input.extend([*given.input, *(inputs or [])])
        graph.output.extend(given.output if outputs is None else outputs)
        graph.value_info.extend(given.value_info)
        read = {name for node in nodes_of(graph) for name in node.input}
        read |= {value.name for value in graph.output}
        for tensor in [*given.initializer, *self.constants]:
            if tensor.name in read:
                graph.initializer.append(tensor)
        return model


def _assembled(emitter, operands):
    """The nodes of the network in order, with what the emitter makes right before its reader."""
    found = []
    for node in emitter.network.nodes:
        inputs = operands(node)
        found += emitter.nodes
        emitter.nodes.clear()
        copy = type(node)()
        copy.CopyFrom(node)
        if inputs is not None:
            del copy.input[:]
            copy.input.extend(inputs)
        found.append(copy)
    return [*emitter.before, *found]


def quantised(network, decisions):
    """The network in QDQ form."""
    emitter = Emitter(network, decisions)
    return emitter.model(quantised_nodes(emitter))


def quantised_nodes(emitter):
    """The nodes of the network in QDQ form."""
    ops, corrected = emitter.decisions.places.ops, emitter.corrected()

    def operands(node):
        key = key_of(node)
        if key in corrected:
            _, place, name = corrected[key]
            return [*node.input[:place], name, *node.input[place + 1:]]
        return emitter.operands(node) if key in ops else None

    return _assembled(emitter, operands)


def switched(network, decisions):
    """(the network with a switch for each quantised op, {op: its input})."""
    emitter = Emitter(network, decisions)
    ops, corrected = decisions.places.ops, emitter.corrected()
    switches = {key: emitter.name(f"{key}/switch") for key in ops}

    def chosen(key, other, plain):
        """The first if the op works on integers, the second if not."""
        if plain == other:
            return plain
        plain = plain or emitter.constant(f"{key}/no_bias", np.zeros(1, np.float32))
        return emitter.node("Where", [switches[key], other, plain], f"{key}/chosen")

    def operands(node):
        key = key_of(node)
        if key in corrected:
            layer, place, name = corrected[key]
            return [chosen(layer, name, each) if i == place else each
                    for i, each in enumerate(node.input)]
        if key not in ops:
            return None
        return [chosen(key, other, plain)
                for other, plain in zip_longest(emitter.operands(node), node.input, fillvalue="")]

    nodes = _assembled(emitter, operands)
    inputs = [make_value(name, [], BOOL) for name in switches.values()]
    return emitter.model(nodes, inputs), switches
