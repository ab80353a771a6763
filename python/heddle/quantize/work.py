"""work: the steps that both kinds of quantisation have.

SPDX-License-Identifier: Apache-2.0
"""

import os
import time

from ..library import RefusedError
from ..onnx_graph import nodes_of
from ..training.checkpoint import read_model, size_of
from . import measure, observe
from .data import Samples
from .graph import LEAST_OPSET, Network, label
from .places import find_layers
from .report import Report


def facts_of(outputs):
    return [{"name": each.name, "error": each.relative, "decibels": each.decibels}
            for each in outputs]


class Work:
    """One quantisation, as far as it has come; `_made` makes the model, `_told` says what it is."""

    opset = LEAST_OPSET

    def __init__(self, model, feeds, settings, folder, progress=None):
        self.settings, self.progress = settings, progress
        self.begin = time.perf_counter()
        self.network, self.bytes_before = self._network(model)
        self._refuse_without_layers(*self._find())
        self.samples = Samples(feeds, self.network, settings, folder)
        self.notes = []

    def _network(self, model):
        """The Network of a path, bytes, or a ModelProto, which stays as it is."""
        name = os.fspath(model) if isinstance(model, (str, os.PathLike)) else "<model>"
        read = read_model(model, "quantising", "quantize")
        if read is model:
            model = type(read)()
            model.CopyFrom(read)
            read = model
        size = size_of(read)
        return Network(read, name, self.opset), size

    def _find(self):
        """(layers, why others are left in f32)"""
        return find_layers(self.network, self.settings)

    def _refuse_without_layers(self, layers, left):
        if layers:
            return
        why = "; ".join(f"'{key}': {reason}" for key, reason in list(left.items())[:4])
        *kinds, last = self.settings.kinds
        raise RefusedError(f"'{self.network.name}': has nothing to quantise: " + (
            why or f"it has no {', '.join(kinds)} or {last} outside of the graphs of If, Loop and "
            "Scan"))

    def run(self):
        """(quantised ModelProto, Report)."""
        self.reference = observe.compiled(self.network.model, self.settings.threads)
        made = self._made()
        seconds = time.perf_counter() - self.begin
        return made, self._report(made, self._compared(made), seconds)

    def _compared(self, made):
        """Errors of its outputs."""
        module = observe.compiled(made, self.settings.threads)
        return measure.compare(self.reference, module, self.samples.held())

    def _report(self, made, outputs, seconds):
        held = self.samples.has_held
        return Report({
            "model": self.network.name,
            "data": {"random": self.samples.is_random,
                     "calibration": sum(1 for _ in self.samples.calibrating()),
                     "held_out": sum(1 for _ in self.samples.held()) if held else 0},
            "bytes_before": self.bytes_before, "bytes_after": size_of(made),
            "seconds": seconds,
            "outputs": facts_of(outputs),
            **self._told(),
            "left": [*({"name": self._label(key), "why": why} for key, why in self.left.items()),
                     *self._within_graphs()],
            "notes": self.notes,
        })

    def _label(self, key):
        return label(self.network.producer[key])

    def _within_graphs(self):
        """Products in the graphs of nodes."""
        outer = {label(node) for node in self.network.nodes}
        for node in nodes_of(self.network.graph):
            if node.op_type in self.settings.kinds and label(node) not in outer:
                yield {"name": label(node), "why": "it is in the graph of an If, Loop or Scan"}
