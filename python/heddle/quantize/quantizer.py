"""quantizer: the steps of quantisation in their order.

SPDX-License-Identifier: Apache-2.0
"""

import os

from .. import workplace
from ..library import RefusedError
from ..onnx_graph import nodes_of
from ..training.checkpoint import LARGEST_PROTO, read_model
from . import bias, emit, measure, observe
from .branches import layer_errors
from .calibrate import CALIBRATORS
from .data import Samples
from .equalise import equalise
from .fold import fold
from .graph import Network, label
from .mixed import Choice, Switches, sensitivity
from .places import Places, find_layers
from .report import Report
from .settings import LAYERS
from .smooth import smooth


def run(model, feeds, settings):
    """(quantised ModelProto, Report)."""
    with workplace.folder() as folder:
        return Work(model, feeds, settings, folder).run()


def _network(model):
    """The Network of a path, bytes, or a ModelProto, which stays as it is."""
    name = os.fspath(model) if isinstance(model, (str, os.PathLike)) else "<model>"
    read = read_model(model, "quantising", "quantize")
    if read is model:
        model = type(read)()
        model.CopyFrom(read)
        read = model
    return Network(read, name), read.ByteSize()


class Work:
    """One quantisation, as far as it has come."""

    def __init__(self, model, feeds, settings, folder):
        self.settings = settings
        self.network, self.bytes_before = _network(model)
        self._refuse_without_layers(*find_layers(self.network, settings))
        self.samples = Samples(feeds, self.network, settings, folder)
        self.notes = []

    def _refuse_without_layers(self, layers, left):
        if layers:
            return
        why = "; ".join(f"'{key}': {reason}" for key, reason in list(left.items())[:4])
        raise RefusedError(f"'{self.network.name}': has nothing to quantise: " + (
            why or "it has no Conv, ConvTranspose, MatMul or Gemm outside of the graphs of If, "
            "Loop and Scan"))

    def run(self):
        self.reference = observe.compiled(self.network.model, self.settings.threads)
        self._prepare()
        self._choose()
        self._find_ranges()
        self._measure_layers()
        self._weigh()
        made = emit.quantised(self.network, self.decisions)
        if made.ByteSize() < LARGEST_PROTO:
            self.network.onnx.checker.check_model(made)
        module = observe.compiled(made, self.settings.threads)
        outputs = measure.compare(self.reference, module, self.samples.held())
        return made, self._report(made, outputs)

    def _prepare(self):
        """Changes weights; the function of the network stays what it is."""
        network, settings = self.network, self.settings
        folded = fold(network)
        if folded:
            self.notes.append(f"{folded} nodes are folded into the layers before them")
        if settings.equalise:
            self.notes.append(f"{equalise(network)} pairs of layers are equalised")
        if settings.smooth:
            layers, _ = find_layers(network, settings)
            count = smooth(network, layers, self.samples, settings)
            self.notes.append(f"{count} normalised tensors are smoothed")

    def _choose(self):
        """Finds what is quantised in the network as it is now."""
        layers, self.left = find_layers(self.network, self.settings)
        self.places = Places(self.network, layers, self.settings)

    def _find_ranges(self):
        observed = self.places.observed()
        found = observe.histograms(self.network, observed, self.samples, self.settings.threads)
        self.decisions = emit.Decisions(self.places, {}, self.settings)
        calibrator, grid = CALIBRATORS[self.settings.calibration], self.decisions.grid
        bounds = {name: calibrator(histogram, grid, self.settings)
                  for name, histogram in found.items()}
        self.decisions.ranges = self.places.ranges(bounds)

    def _measure_layers(self):
        """Errors of single layers, which are taken out of biases."""
        self.errors = layer_errors(self.network, self.decisions, self.samples)
        if self.settings.bias_correction:
            self.decisions.biases = bias.corrections(self.network, self.places.layers, self.errors)

    def _weigh(self):
        """Measures what layers do to the outputs, and leaves some of them in f32."""
        self.alone = {}
        if not self.settings.sensitivity and not self.settings.mixed:
            return
        switches = Switches(self.network, self.decisions, self.reference, self.samples)
        self.alone = sensitivity(switches)
        if self.settings.mixed:
            choice = Choice(switches, self.alone)
            kept = choice.order[:choice.count()]
            self.decisions = switches.with_layers(set(choice.order) - set(kept))
            self.places = self.decisions.places
            self.left |= {key: f"alone it has an error of {self.alone[key]:.3g} in the outputs"
                          for key in kept}

    def _report(self, made, outputs):
        held = self.samples.has_held
        return Report({
            "model": self.network.name,
            "data": {"random": self.samples.is_random,
                     "calibration": sum(1 for _ in self.samples.calibrating()),
                     "held_out": sum(1 for _ in self.samples.held()) if held else 0},
            "bytes_before": self.bytes_before, "bytes_after": made.ByteSize(),
            "outputs": [{"name": each.name, "error": each.relative, "decibels": each.decibels}
                        for each in outputs],
            "tensors": {name: self._tensor(name) for name in self.places.pairs},
            "layers": [self._layer(layer) for layer in self.places.layers.values()],
            "left": [*({"name": self._label(key), "why": why} for key, why in self.left.items()),
                     *self._within_graphs()],
            "notes": self.notes,
        })

    def _label(self, key):
        return label(self.network.producer[key])

    def _tensor(self, name):
        scale, zero = self.decisions.grid.parameters(*self.decisions.ranges[name])
        return {"range": list(map(float, self.decisions.ranges[name])), "scale": float(scale),
                "zero_point": int(zero)}

    def _layer(self, layer):
        return {"name": self._label(layer.key), "type": layer.kind, "input": layer.x,
                "decibels": self.errors[layer.key].decibels,
                **({"alone": self.alone[layer.key]} if self.alone else {})}

    def _within_graphs(self):
        """Products in the graphs of nodes."""
        outer = {label(node) for node in self.network.nodes}
        for node in nodes_of(self.network.graph):
            if node.op_type in LAYERS and label(node) not in outer:
                yield {"name": label(node), "why": "it is in the graph of an If, Loop or Scan"}
