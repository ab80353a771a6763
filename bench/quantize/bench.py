"""Errors of quantised models beside those of other quantisers, at equal settings.

    ./dev bench quantize [--models NAME...]
    ./dev bench quantize --finetune EPOCHS      # what fine-tuning gains: digits.py

All make activations u8 and weights i8 of channels, from the same samples. `ours`, `ours even` (with
--even-depthwise) and `nncf` choose ranges and biases their own way; the others take ranges from the
least value to the greatest and leave biases as they are (peers.py). All models are run by Heddle,
which computes what QDQ says: so the errors are of the numbers that were chosen, and of no engine.
Errors and accuracy are on samples that nobody has seen.
"""

import argparse
import contextlib
import json
import logging
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np
import onnx
from heddle.library import RefusedError
from heddle.quantize import measure, observe

import heddle
from bench.kernels import report
from bench.models import catalogue, tool
from bench.peers import cases
from bench.quantize import digits, peers

LEARNED = {"digits": digits.digits_network, "separable": digits.separable_network}
MODELS = ["kws_fp32", "magika", "superres", "ultraface", "squeezenet",
          "ppocr_cls", "ppocr_rec", "ppocr_det", *LEARNED, "mobilenet_v2", "resnet50",
          "densenet121", "minilm_l6_32"]
STORE = tool.RESULTS / "quantize.json"
PLAIN = {"calibration": "minmax", "bias_correction": False}
HELD = 12  # samples that errors are measured with
EVEN = {"even_depthwise": True}
BATCH = 32  # images of digits of a run
TABLES = {"decibels": ("signal to noise of the outputs, dB", ".1f"),
          "error": ("greatest error beside the largest number", ".3g"),
          "accuracy": ("accuracy", ".2%"), "seconds": ("seconds", ".1f"), "mib": ("MiB", ".2f")}


@dataclass
class Subject:
    """A model in f32, a function that makes the sample of a number, and samples that errors are
    measured with; with `labels` of these, accuracy is told."""

    path: str
    sample: Callable
    held: list
    labels: list = ()


def find(name, folder):
    """The subject of that name."""
    if name in LEARNED:
        known, (images, labels) = digits.digits()
        path = str(Path(folder) / f"{name}.onnx")
        digits.learned(LEARNED[name](), *known, digits.TRAINED).save(path)
        order = np.random.default_rng(2).permutation(len(known[0]))

        def batch(number):
            return {"images": known[0][order[number * BATCH:(number + 1) * BATCH]]}
        return Subject(path, batch, [{"images": images}], [labels])
    if name in {model.name for model in catalogue.models()}:
        path = catalogue.find(name).path()
        make = catalogue.find(name).feeds[0]
    else:
        path, case = cases.find(name).path(), cases.find(name)

        def make(random):
            return case.feeds(1, random)

    def sample(number):
        return make(np.random.default_rng(number))
    return Subject(path, sample, [sample(1000 + number) for number in range(HELD)])


def judged(make, reference, subject):
    """Figures of a model: errors of its outputs, its size, and the seconds of making it."""
    begin = time.perf_counter()
    model = make()
    seconds = time.perf_counter() - begin
    module = observe.compiled(model, 1)
    errors = measure.compare(reference, module, subject.held)
    return {"decibels": measure.decibels(sum(each.signal for each in errors),
                                         sum(each.noise for each in errors)),
            "error": max(each.relative for each in errors), "seconds": seconds,
            "mib": model.ByteSize() / 2**20, **accuracy(module, subject)}


def accuracy(module, subject):
    """The share of samples with labels whose class is found."""
    right = [module.run(None, feed)[0].argmax(-1) == labels
             for feed, labels in zip(subject.held, subject.labels)]
    return {"accuracy": float(np.concatenate(right).mean())} if right else {}


def compare(name, samples, only):
    """Figures of all quantisers for a model."""
    with tempfile.TemporaryDirectory() as folder:
        subject = find(name, folder)
        feeds = [subject.sample(number) for number in range(samples)]
        calibrating = [feed for place, feed in enumerate(feeds) if place % 5 != 4]
        reference = observe.compiled(onnx.load(subject.path), 1)
        path, found = subject.path, {"f32": accuracy(reference, subject)}
        makers = {"ours": lambda: heddle.quantize(path, feeds, threads=1),
                  "ours even": lambda: heddle.quantize(path, feeds, threads=1, **EVEN),
                  "ours minmax": lambda: heddle.quantize(path, feeds, threads=1, **PLAIN),
                  **{peer: lambda make=make: make(path, calibrating)
                     for peer, make in peers.PEERS.items()}}
        for key, make in makers.items():
            if only and key not in only:
                continue
            try:
                with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
                    found[key] = judged(make, reference, subject)
            except Exception as error:  # of any kind, where it is a rival's own
                if key.startswith("ours") and not isinstance(error, RefusedError):
                    raise
                why = (str(error).strip() or repr(error)).splitlines()[-1]
                print(f"{name}: {key} left out: {why}", flush=True)
    return found


def tables(found):
    """Lines of one table for each kind of figure; what was not measured is left blank."""
    names = ["ours", "ours even", "nncf", "ours minmax", "onnxruntime", "nncf minmax",
             "neural compressor"]
    for key, (title, form) in TABLES.items():
        rows = [(model, *(format(each[name][key], form) if key in each.get(name, {}) else
                                  "" for name in names)) for model, each in found.items()]
        rows = [row for row in rows if any(row[1:])]
        if rows:
            yield from ("", f"{title[0].upper()}{title[1:]}:", "")
            yield from report.table(["model", *names], rows)


def fine_tuned(epochs):
    """Prints the table of digits."""
    with contextlib.redirect_stderr(None):
        found = list(digits.compare(epochs, BATCH))
    digits.STORE.parent.mkdir(parents=True, exist_ok=True)
    digits.STORE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"`./dev bench quantize --finetune {epochs}`, {BATCH} images a step; {report.machine()}.",
          "", *report.table(digits.HEADS, digits.rows(found)), sep="\n")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--models", nargs="+", default=MODELS, metavar="NAME")
    options.add_argument("--samples", type=int, default=20)
    options.add_argument("--only", nargs="+", metavar="QUANTISER",
                         help="of others, what was measured before is kept")
    options.add_argument("--finetune", type=int, metavar="EPOCHS")
    given = options.parse_args()
    logging.disable(logging.WARNING)
    if given.finetune:
        fine_tuned(given.finetune)
        return
    kept = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}
    for name in given.models:
        try:
            kept[name] = {**kept.get(name, {}), **compare(name, given.samples, given.only)}
        except cases.Missing as reason:
            print(f"{name} left out: {reason}", flush=True)
            continue
        print(json.dumps(kept[name]), flush=True)
        STORE.parent.mkdir(parents=True, exist_ok=True)
        STORE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print(f"`./dev bench quantize`, {given.samples} samples; {report.machine()}.", *tables(kept),
          sep="\n")


if __name__ == "__main__":
    main()
