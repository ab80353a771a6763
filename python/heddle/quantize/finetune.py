"""finetune: weights and biases are trained through their rounding, by the network in f32.

A step is one run of the samples to train with; after each epoch those to validate with say how far
the outputs are. What was best there is what stays, if it is better than what was not trained. Rates
are in steps of a weight's integers, so that one fits layers of any magnitude (Adam moves each by
about that much). SPDX-License-Identifier: Apache-2.0
"""

import time
import warnings

import numpy as np

from .. import apart
from ..library import RefusedError
from ..training import DivergedError, Trainer, cosine
from ..training.checkpoint import LARGEST_PROTO, size_of
from .emit import Decisions, Emitter, quantised_nodes
from .student import WANTED, Student, outputs_of, with_loss

PLAIN = {"batch_norm": "running", "dropout": False}  # as in inference


class _Derived(Exception):
    """The derivative was made."""


def _small(network, model):
    if size_of(model) >= LARGEST_PROTO:
        raise RefusedError(f"--finetune: '{network.name}' has 2 GiB of weights or more, with which "
                           "no step is compiled")
    return model


def check(network, reference, layers, settings):
    """Refuses a network whose outputs have no derivative by its layers: compiles it until that is
    known."""
    emitter = Emitter(network, Decisions(None, {}, settings))
    outputs = outputs_of(network, reference)
    model = with_loss(emitter, network.nodes, outputs, dict.fromkeys(outputs, 1.0))
    trained = list({layer.weight for layer in layers.values() if layer.constant})

    def after(stage, _):
        if stage != "import":
            raise _Derived

    try:
        apart.compile(_small(network, model), progress=after,
                      training={"loss": "output", "trainable": trained, **PLAIN})
    except _Derived:
        pass
    except RefusedError as error:
        raise RefusedError(f"--finetune: '{network.name}': {error}") from error


class Course:
    """Fine-tuning of one network."""

    def __init__(self, network, decisions, reference, samples):
        self.settings, self.samples, self.reference = decisions.settings, samples, reference
        self.outputs = outputs_of(network, reference)
        self.training = self._wanted("training", samples.training())
        self.validating = self._wanted("validating", samples.validating())
        self.student = Student(network, decisions)
        nodes = quantised_nodes(self.student)
        model = _small(network, with_loss(self.student, nodes, self.outputs, self._signals()))
        latents = self.student.latents
        rate = cosine(self.settings.learning_rate, self.settings.finetune * len(self.training))
        with warnings.catch_warnings():  # of folded normalisations, which are folded on purpose
            warnings.simplefilter("ignore")
            self.trainer = Trainer(
                model, "output", optimizer="adam", learning_rate=rate, trainable=list(latents),
                groups=[{"match": [name], "learning_rate": each.unit}
                        for name, each in latents.items()],
                threads=self.settings.threads or None, recipe=PLAIN, cache=False)

    def _wanted(self, what, feeds):
        """Functions that read a feed with what the outputs have to be."""
        found, names = [], [output.name for output in self.reference.outputs]
        for number, feed in enumerate(feeds):
            results = dict(zip(names, self.reference.run(None, dict(feed))))
            wanted = {f"{WANTED}.{name}": results[name] for name in self.outputs}
            found.append(self.samples.keep(f"{what}{number}", {**feed, **wanted}))
        return found

    def _signals(self):
        """{output: its mean square}."""
        squares = {name: [] for name in self.outputs}
        for read in self.training:
            feed = read()
            for name, each in squares.items():
                each.append(np.mean(np.square(feed[f"{WANTED}.{name}"], dtype=np.float64)))
        return {name: float(np.mean(each)) for name, each in squares.items()}

    def error(self):
        """The mean loss of the samples to validate with."""
        return float(np.mean([self.trainer.evaluate(read())[0] for read in self.validating]))

    def run(self, tell):
        """(the decisions that were best, or None if none was better than those before; facts).
        `tell` is called after each epoch with its facts, and the decisions if they are the best."""
        begin = time.perf_counter()
        best = before = self.error()
        random, found, epochs, stopped = np.random.default_rng(0), None, [], None
        for epoch in range(self.settings.finetune):
            try:
                losses = [self._step(self.training[place]())
                          for place in random.permutation(len(self.training))]
            except DivergedError as error:
                stopped = str(error)
                break
            epochs.append({"epoch": epoch + 1, "loss": float(np.mean(losses)),
                           "validation": self.error(), "seconds": time.perf_counter() - begin})
            is_best = epochs[-1]["validation"] < best
            if is_best:
                best, found = epochs[-1]["validation"], self.student.with_arrays(
                    self.trainer.weights)
            tell({**epochs[-1], "epochs": self.settings.finetune}, found if is_best else None)
        return found, {
            "trained_with": len(self.training), "validated_with": len(self.validating),
            "before": before, "after": best, "epochs": epochs, "stopped": stopped,
            "kept": found is not None}

    def _step(self, feed):
        loss = self.trainer.step(feed)
        arrays = self.trainer.weights
        for name, latent in self.student.latents.items():
            if latent.most is not None:
                np.clip(arrays[name], -latent.most, latent.most, out=arrays[name])
        return loss
