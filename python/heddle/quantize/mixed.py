"""mixed: what each layer does to the outputs, and which ones stay in f32 for that.

One module with a switch for each op serves for all choices. Layers are tried in the order of the
error that each alone brings; how many of the first ones stay in f32 is found by halving, on samples
to calibrate with, and confirmed on others. SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import replace
from itertools import islice

import numpy as np

from . import emit, measure, observe
from ..library import RefusedError
from .graph import label
from .places import Places

SEARCHED = 8  # samples at most that are searched on
TOLD = 5  # layers in a message


class Switches:
    """Errors of the outputs for any choice of layers."""

    def __init__(self, network, decisions, reference, samples):
        self.network, self.decisions, self.reference = network, decisions, reference
        self.samples = samples
        model, self.switches = emit.switched(network, decisions)
        self.module = observe.compiled(model, decisions.settings.threads)
        self.searched = [(feed, reference.run(None, dict(feed)))
                         for feed in islice(samples.calibrating(), SEARCHED)]

    def places(self, layers):
        """The Places where these layers alone are quantised."""
        every = self.decisions.places
        return Places(self.network, {key: every.layers[key] for key in every.layers
                                     if key in layers}, self.decisions.settings)

    def error(self, layers, held=False):
        """The greatest error of an output with these layers on integers."""
        ops = self.places(layers).ops
        chosen = {name: np.array(key in ops) for key, name in self.switches.items()}
        pairs = (((feed, self.reference.run(None, dict(feed))) for feed in self.samples.held())
                 if held else self.searched)
        errors = measure.output_errors(
            [output.name for output in self.reference.outputs],
            ((wanted, self.module.run(None, {**feed, **chosen})) for feed, wanted in pairs))
        return max(each.relative for each in errors)

    def size(self, layers):
        """Bytes of the model with these layers on integers."""
        return emit.quantised(self.network, self.with_layers(layers)).ByteSize()

    def with_layers(self, layers):
        """The decisions with these layers alone."""
        return replace(self.decisions, places=self.places(layers))


def sensitivity(switches):
    """{layer: error of the outputs with it alone}."""
    return {key: switches.error({key}) for key in switches.decisions.places.layers}


def _least(count, holds):
    """The least number up to `count` for which it holds, if it does for all above it; `count` if it
    holds for none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


class Choice:
    """The layers by what they hurt, and how many of the first ones stay in f32."""

    def __init__(self, switches, alone):
        self.switches, self.alone = switches, alone
        self.settings = switches.decisions.settings
        network = switches.network
        self.order = sorted(alone, key=self._worth, reverse=True)
        self.names = [label(network.producer[key]) for key in self.order]

    def _worth(self, key):
        """Error that is saved, a byte of the budget where there is one."""
        layer = self.switches.decisions.places.layers[key]
        if self.settings.budget_bytes is None or not layer.constant:
            return self.alone[key]
        return self.alone[key] / self.switches.network.array(layer.weight).nbytes

    def quantised(self, count):
        """The layers on integers when so many are in f32."""
        return set(self.order[count:])

    def count(self):
        """How many stay in f32; an error if the limits leave no choice."""
        most = self._affordable()
        if self.settings.tolerance is None:
            return most
        tolerance, switches = self.settings.tolerance, self.switches
        count = _least(most + 1, lambda count: count <= most and switches.error(
            self.quantised(count)) <= tolerance)
        while count <= most and switches.error(self.quantised(count), held=True) > tolerance:
            count += max(1, count // 8)
        if count > most or count == len(self.order):
            self._refuse(most)
        return count

    def _affordable(self):
        """How many layers may stay in f32 for the budget of bytes."""
        count, budget = len(self.order), self.settings.budget_bytes
        if budget is None:
            return count
        size = self.switches.size
        least = size(self.quantised(0))
        if least > budget:
            raise RefusedError(
                f"--budget-bytes {budget}: '{self.switches.network.name}' takes {least} bytes with "
                f"all layers as 8-bit integers, {least - budget} more than that")
        return _least(count, lambda each: size(self.quantised(each + 1)) > budget)

    def _refuse(self, most):
        found = self.switches.error(self.quantised(min(most, len(self.order) - 1)), held=True)
        least, tolerance = len(self.order) - most, self.settings.tolerance
        why = (f"the budget leaves {most} of {len(self.order)} layers in f32" if least > 0 else
               "all but one layer are in f32")
        worst = ", ".join(f"'{name}' ({self.alone[key]:.3g})"
                          for name, key in list(zip(self.names, self.order))[:TOLD])
        raise RefusedError(
            f"--tolerance {tolerance}: '{self.switches.network.name}' has an error of {found:.3g}, "
            f"{found / max(tolerance, 1e-300):.3g} times as much, where {why}; most is of the "
            f"layers {worst}")
