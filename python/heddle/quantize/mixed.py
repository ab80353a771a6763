"""mixed: what each layer does to the outputs, and which ones stay in f32 for that.

One module serves for all choices: it has a switch for each op, or weights are its inputs. Layers
are tried in the order of the error that each alone brings; how many of the first ones stay in f32,
or get more bits, is found by halving, on samples to calibrate with, and confirmed on others.
SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import replace
from itertools import islice

import numpy as np

from . import emit, measure, observe
from ..library import RefusedError
from ..onnx_graph import make_value
from ..training.checkpoint import size_of
from .graph import label
from .places import Places

SEARCHED = 8  # samples at most that are searched on
TOLD = 5  # layers in a message


def _reader(tensor, readers):
    """Which node reads a tensor, or the integers of one."""
    node = readers.get(tensor) or readers.get(tensor.removesuffix("/integers"))
    return f" of '{label(node)}'" if node is not None else ""


class Alternatives:
    """Errors of the outputs for any choice of candidates: those chosen are quantised."""

    def __init__(self, network, model, reference, samples, settings):
        self.network, self.reference, self.samples = network, reference, samples
        self.settings = settings
        self.module = observe.compiled(model, settings.threads)
        self.searched = [(feed, reference.run(None, dict(feed)))
                         for feed in islice(samples.calibrating(), SEARCHED)]

    def error(self, chosen, held=False):
        """The greatest error of an output with these candidates."""
        more = self.feeds(chosen)
        pairs = (((feed, self.reference.run(None, dict(feed))) for feed in self.samples.held())
                 if held else self.searched)
        errors = measure.output_errors(
            [output.name for output in self.reference.outputs],
            ((wanted, self.module.run(None, {**feed, **more})) for feed, wanted in pairs))
        return max(each.relative for each in errors)

    def size(self, chosen):
        """Bytes of the model with these candidates."""
        return size_of(self.model(chosen))

    def largest(self, chosen):
        """Names and bytes of the tensors that take most in that model."""
        tensors = sorted(self.model(chosen).graph.initializer, key=lambda each: -each.ByteSize())
        readers = {name: node for node in self.network.nodes for name in node.input}
        return ", ".join(f"'{tensor.name}'{_reader(tensor.name, readers)} with "
                         f"{tensor.ByteSize()}" for tensor in tensors[:TOLD])


class Switches(Alternatives):
    """Layers, on integers if they are chosen."""

    all_chosen = "all layers as 8-bit integers"
    others, last = "layers in f32", "all but one layer are in f32"

    def __init__(self, network, decisions, reference, samples):
        self.decisions = decisions
        model, self.switches = emit.switched(network, decisions)
        super().__init__(network, model, reference, samples, decisions.settings)
        self.candidates = list(decisions.places.layers)

    def places(self, layers):
        """The Places where these layers alone are quantised."""
        every = self.decisions.places
        return Places(self.network, {key: every.layers[key] for key in every.layers
                                     if key in layers}, self.settings)

    def feeds(self, layers):
        ops = self.places(layers).ops
        return {name: np.array(key in ops) for key, name in self.switches.items()}

    def model(self, layers):
        """The model with these layers on integers."""
        return emit.quantised(self.network, self.with_layers(layers))

    def with_layers(self, layers):
        """The decisions with these layers alone."""
        return replace(self.decisions, places=self.places(layers))

    def name(self, key):
        return label(self.network.producer[key])

    def cost(self, key):
        """Bytes by which the choice is about, or 1."""
        layer = self.decisions.places.layers[key]
        return self.network.array(layer.weight).nbytes if layer.constant else 1


class Rounding(Alternatives):
    """Weights, each with the least number of bits that is chosen, else in f32: a candidate is a
    weight and a number of bits. `work` has the integers of all."""

    others, last = "steps to more bits", "all but one weight are in f32"

    def __init__(self, work):
        self.work, self.coded, self.candidates = work, work.coded, list(work.coded)
        self.all_chosen = f"all weights as {work.settings.weights}"
        self.arrays = {weight: work.network.array(weight) for weight, _ in work.coded}
        super().__init__(work.network, self._model(work.network), work.reference, work.samples,
                         work.settings)

    def _model(self, network):
        """The network, with weights for inputs."""
        model = type(network.model)()
        model.CopyFrom(network.model)
        kept = [each for each in model.graph.initializer if each.name not in self.arrays]
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
        model.graph.input.extend(make_value(name, array.shape)
                                 for name, array in self.arrays.items())
        return model

    def widths(self, chosen):
        """{weight: bits} of those that are quantised."""
        found = {}
        for weight, bits in chosen:
            found[weight] = min(bits, found.get(weight, bits))
        return found

    def feeds(self, chosen):
        widths = self.widths(chosen)
        return {name: self.work.values(name, widths[name]) if name in widths else array
                for name, array in self.arrays.items()}

    def model(self, chosen):
        """The model with this choice."""
        return self.work.model(self.widths(chosen))

    def name(self, candidate):
        weight, bits = candidate
        return f"{label(self.network.producer[self.work.readers[weight][0].key])}, int{bits}"

    def cost(self, candidate):
        """Bytes of the step to more bits, or to f32."""
        weight, bits = candidate
        more = self.coded.get((weight, 2 * bits))
        return (more.size if more else self.arrays[weight].nbytes) - self.coded[candidate].size


def sensitivity(switches):
    """{candidate: error of the outputs with it alone}."""
    return {each: switches.error({each}) for each in switches.candidates}


def _least(count, holds):
    """The least number up to `count` for which it holds, if it does for all above it; `count` if it
    holds for none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


class Choice:
    """The candidates by what they hurt, and how many of the first ones are not chosen."""

    def __init__(self, switches, alone):
        self.switches, self.alone = switches, alone
        self.settings = switches.settings
        self.order = sorted(alone, key=self._worth, reverse=True)

    def _worth(self, key):
        """Error that is saved, a byte of the budget where there is one."""
        return self.alone[key] / (1 if self.settings.budget_bytes is None
                                  else self.switches.cost(key))

    def quantised(self, count):
        """Those that are chosen when so many are not."""
        return set(self.order[count:])

    def count(self):
        """How many are not chosen; an error if the limits leave no choice."""
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
        """How many need not be chosen for the budget of bytes."""
        count, budget = len(self.order), self.settings.budget_bytes
        if budget is None:
            return count
        size = self.switches.size
        least = size(self.quantised(0))
        if least > budget:
            raise RefusedError(
                f"--budget-bytes {budget}: '{self.switches.network.name}' takes {least} bytes with "
                f"{self.switches.all_chosen}, {least - budget} more than that; most take "
                f"{self.switches.largest(self.quantised(0))}")
        return _least(count, lambda each: size(self.quantised(each + 1)) > budget)

    def _refuse(self, most):
        found = self.switches.error(self.quantised(min(most, len(self.order) - 1)), held=True)
        least, tolerance = len(self.order) - most, self.settings.tolerance
        why = (f"the budget leaves {most} of {len(self.order)} {self.switches.others}"
               if least > 0 else self.switches.last)
        worst = ", ".join(f"'{self.switches.name(key)}' ({self.alone[key]:.3g})"
                          for key in self.order[:TOLD])
        raise RefusedError(
            f"--tolerance {tolerance}: '{self.switches.network.name}' has an error of {found:.3g}, "
            f"{found / max(tolerance, 1e-300):.3g} times as much, where {why}; most is of the "
            f"layers {worst}")
