"""Networks that have learned scikit-learn's digits, quantised with and without fine-tuning.

    ./dev bench quantize --finetune EPOCHS

Accuracy and errors are of 360 images that no network was trained, calibrated or fine-tuned with. No
labels are used but for the accuracy: the network in f32 is what quantised ones are taught.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from heddle.quantize import measure, observe
from heddle.training import Trainer, cosine

import heddle
from bench.models import tool

sys.path.insert(0, str(tool.ROOT / "examples" / "train-digits"))
from network import Network, digits_network  # noqa: E402

STORE = tool.RESULTS / "finetune.json"
HELD, BATCH, TRAINED = 360, 64, 25  # images, images of a step, epochs
SETTINGS = {"8 bits, a scale a channel": {}, "8 bits, one scale": {"per_channel": False},
            "7 bits, one scale": {"per_channel": False, "reduce_range": True}}
HEADS = ["network", "weights", "f32", "before", "after", "before, dB", "after, dB", "static, s",
         "with fine-tuning, s"]


class Separable(Network):
    """3 x 3 for each channel, then 1 x 1, each with its normalisation."""

    def block(self, name, channels):
        self.conv_of(f"{name}.each", self.channels, (3, 3), group=self.channels, pads=[1, 1, 1, 1])
        self.conv_of(name, channels, (1, 1))

    def conv_of(self, name, channels, window, group=1, **attributes):
        inputs = self.channels // group
        filters = self.drawn(f"{name}.weight", (channels, inputs, *window),
                             inputs * window[0] * window[1])
        self.add("Conv", filters, name=name, group=group, **attributes)
        ones, zeros = np.ones(channels), np.zeros(channels)
        self.add("BatchNormalization", *(
            self.filled(f"{name}.norm.{what}", value) for what, value in (
                ("scale", ones), ("bias", zeros), ("mean", zeros), ("variance", ones))),
            name=f"{name}.norm")
        self.add("Relu", name=f"{name}.relu")
        self.channels = channels


def separable_network(seed=0):
    network = Separable((1, 8, 8), seed)
    network.conv("conv1", 16)
    network.block("block1", 24)
    network.block("block2", 24)
    network.add("MaxPool", name="pool2", kernel_shape=[2, 2], strides=[2, 2])
    network.block("block3", 32)
    network.block("block4", 32)
    return network.classifier(10)


def digits():
    """(images, labels) to learn, and others."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    order = np.random.default_rng(0).permutation(len(images))
    known, held = order[HELD:], order[:HELD]
    return (images[known], labels[known]), (images[held], labels[held])


def learned(network, images, labels, epochs):
    """The network after so many epochs."""
    steps, random = len(images) // BATCH, np.random.default_rng(0)
    trainer = Trainer(network, "cross_entropy", optimizer="adamw",
                      learning_rate=cosine(4e-3, epochs * steps))
    for _ in range(epochs):
        order = random.permutation(len(images))
        for first in range(0, steps * BATCH, BATCH):
            chosen = order[first:first + BATCH]
            trainer.step({"images": images[chosen], "labels": labels[chosen]})
    return trainer


def accuracy(module, images, labels):
    return float((module.run(None, {"images": images})[0].argmax(-1) == labels).mean())


def compare(epochs, batch):
    """Facts of each network and setting."""
    known, held = digits()
    for name, network in {"digits": digits_network, "separable": separable_network}.items():
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "digits.onnx")
            learned(network(), *known, TRAINED).save(path)
            reference = observe.compiled(onnx.load(path), 1)
            for what, options in SETTINGS.items():
                yield {"network": name, "weights": what, "f32": accuracy(reference, *held),
                       **{kind: judged(path, known[0], held, reference, {**options, **more})
                          for kind, more in (("before", {"batch": batch}),
                                             ("after", {"batch": batch, "finetune": epochs}))}}


def judged(path, images, held, reference, options):
    """Accuracy, noise of the outputs, and the seconds that quantising took."""
    begin = time.perf_counter()
    made = heddle.quantize(path, {"images": images}, threads=1, **options)
    seconds = time.perf_counter() - begin
    module = observe.compiled(made, 1)
    error, = measure.compare(reference, module, [{"images": held[0]}])
    return {"accuracy": accuracy(module, *held), "decibels": error.decibels, "seconds": seconds}


def rows(found):
    """Lines of the table."""
    for each in found:
        kinds = [each[kind] for kind in ("before", "after")]
        yield (each["network"], each["weights"], f"{each['f32']:.2%}",
               *(f"{kind['accuracy']:.2%}" for kind in kinds),
               *(f"{kind['decibels']:.1f}" for kind in kinds),
               *(f"{kind['seconds']:.0f}" for kind in kinds))
