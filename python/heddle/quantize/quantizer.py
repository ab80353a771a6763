"""quantizer: the steps of the quantisation of products, in their order.

SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import replace

import numpy as np

from .. import workplace
from . import bias, emit, finetune, observe
from .branches import layer_errors
from .calibrate import CALIBRATORS
from .depthwise import even
from .equalise import equalise
from .fold import fold
from .mixed import Choice, Switches, sensitivity
from .places import Places
from .smooth import smooth
from .weightonly.quantizer import Weights
from .work import Work, facts_of


def run(model, feeds, settings, progress=None):
    """(quantised ModelProto, Report). `progress` is that of heddle.quantize."""
    kind = Products if settings.weights is None else Weights
    with workplace.folder() as folder:
        return kind(model, feeds, settings, folder, progress).run()


class Products(Work):
    """Products become ones of integers."""

    tuned = None  # facts of fine-tuning

    def _made(self):
        if self.settings.finetune:
            finetune.check(self.network, self.reference, self._find()[0], self.settings)
        self._prepare()
        self._choose()
        self._find_ranges()
        self._measure_layers()
        self._weigh()
        made = emit.quantised(self.network, self.decisions)
        if not self.settings.finetune:
            return made
        self._finetune(made)
        return emit.quantised(self.network, self.decisions)

    def _finetune(self, made):
        """Trains what was chosen."""
        def tell(facts, decisions):
            if self.progress is not None:
                self.progress(facts, decisions and emit.quantised(self.network, decisions))

        if self.progress is not None:
            self.progress({"epoch": 0}, made)
        before = facts_of(self._compared(made))
        places = bias.corrections(self.network, self.places.layers, {
            key: replace(error, mean=np.zeros_like(error.mean))
            for key, error in self.errors.items()})
        decisions = replace(self.decisions, biases={**places, **self.decisions.biases})
        found, facts = finetune.Course(self.network, decisions, self.reference,
                                       self.samples).run(tell)
        self.decisions = found or self.decisions
        self.tuned = {**facts, "outputs_before": before}

    def _prepare(self):
        """Changes weights; the function of the network stays what it is."""
        network, settings = self.network, self.settings
        folded = fold(network)
        if folded:
            self.notes.append(f"{folded} nodes are folded into the layers before them")
        if settings.equalise:
            self.notes.append(f"{equalise(network)} pairs of layers are equalised")
        if settings.even_depthwise:
            count = even(network, self._find()[0], self.samples, settings)
            self.notes.append(f"{count} tensors that depthwise convolutions read are evened out")
        if settings.smooth:
            layers, _ = self._find()
            count = smooth(network, layers, self.samples, settings)
            self.notes.append(f"{count} normalised tensors are smoothed")

    def _choose(self):
        """Finds what is quantised in the network as it is now."""
        layers, self.left = self._find()
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

    def _told(self):
        return {**({"finetune": self.tuned} if self.tuned else {}),
                "tensors": {name: self._tensor(name) for name in self.places.pairs},
                "layers": [self._layer(layer) for layer in self.places.layers.values()]}

    def _tensor(self, name):
        scale, zero = self.decisions.grid.parameters(*self.decisions.ranges[name])
        return {"range": list(map(float, self.decisions.ranges[name])), "scale": float(scale),
                "zero_point": int(zero)}

    def _layer(self, layer):
        return {"name": self._label(layer.key), "type": layer.kind, "input": layer.x,
                "decibels": self.errors[layer.key].decibels,
                **({"alone": self.alone[layer.key]} if self.alone else {})}
