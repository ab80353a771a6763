"""Errors of quantised models beside those of ONNX Runtime's quantize_static, at equal settings.

    ./dev bench quantize [--models NAME...]

Both are told to make activations u8 and weights i8 of channels, from the same samples; `minmax` is
ours with ranges from the least value to the greatest and no bias correction, as theirs. Both models
are run by Heddle, which computes what QDQ says: so the errors are of the numbers that were chosen,
and of no engine. Errors are on samples that neither has seen.
"""

import argparse
import contextlib
import json
import logging
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from heddle.quantize import measure, observe
from onnxruntime import quantization

import heddle
from bench.kernels import report
from bench.models import catalogue, tool
from bench.peers import cases

MODELS = ["ppocr_cls", "ppocr_rec", "ppocr_det", "ultraface", "superres", "kws_fp32",
          "mobilenet_v2", "resnet50", "densenet121", "minilm_l6_32"]
STORE = tool.RESULTS / "quantize.json"
PLAIN = {"calibration": "minmax", "bias_correction": False}
OPSET = 13  # the least that has a scale for each channel


class Reader(quantization.CalibrationDataReader):
    """Samples as ONNX Runtime asks for them."""

    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


def find(name):
    """(path, a function of a seed that makes a sample) of a model."""
    if name in {model.name for model in catalogue.models()}:
        model = catalogue.find(name)
        return model.path(), lambda seed: model.feeds[0](np.random.default_rng(seed))
    case = cases.find(name)
    return case.path(), lambda seed: case.feeds(1, np.random.default_rng(seed))


def theirs(path, feeds, folder):
    """The model that ONNX Runtime makes."""
    model = onnx.load(path)
    version = max(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    if version < OPSET:
        model = onnx.version_converter.convert_version(model, OPSET)
    given, ready, made = (str(Path(folder) / f"{name}.onnx") for name in ("given", "ready", "made"))
    onnx.save(model, given)
    quantization.shape_inference.quant_pre_process(given, ready, skip_symbolic_shape=True)
    quantization.quantize_static(
        ready, made, Reader(feeds), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
        activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)
    return onnx.load(made)


def judged(make, reference, held):
    """Figures of a model: errors of its outputs, its size, and the seconds of making it."""
    begin = time.perf_counter()
    model = make()
    seconds = time.perf_counter() - begin
    errors = measure.compare(reference, observe.compiled(model, 1), held)
    return {"decibels": measure.decibels(sum(each.signal for each in errors),
                                         sum(each.noise for each in errors)),
            "error": max(each.relative for each in errors), "seconds": seconds,
            "mib": model.ByteSize() / 2**20}


def compare(name, samples):
    """Figures of both quantisers for a model."""
    path, make_sample = find(name)
    feeds = [make_sample(seed) for seed in range(samples)]
    calibrating = [feed for place, feed in enumerate(feeds) if place % 5 != 4]
    held = [make_sample(1000 + seed) for seed in range(max(samples // 4, 1))]
    reference = observe.compiled(onnx.load(path), 1)
    makers = {"ours": lambda: heddle.quantize(path, feeds, threads=1),
              "minmax": lambda: heddle.quantize(path, feeds, threads=1, **PLAIN)}
    found = {"model": name}
    for key, make in makers.items():
        found[key] = judged(make, reference, held)
    with tempfile.TemporaryDirectory() as folder:
        found["theirs"] = judged(lambda: theirs(path, calibrating, folder), reference, held)
    return found


def rows(found):
    """Lines of the table."""
    for each in found:
        kinds = [each[kind] for kind in ("ours", "minmax", "theirs")]
        yield (each["model"], *(f"{kind['decibels']:.1f}" for kind in kinds),
               *(f"{kind['error']:.3g}" for kind in kinds),
               *(f"{kind['mib']:.2f}" for kind in kinds[::2]),
               *(f"{kind['seconds']:.0f}" for kind in kinds[::2]))


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--models", nargs="+", default=MODELS, metavar="NAME")
    options.add_argument("--samples", type=int, default=20)
    given = options.parse_args()
    logging.disable(logging.WARNING)
    found = []
    for name in given.models:
        try:
            with contextlib.redirect_stderr(None):
                found.append(compare(name, given.samples))
        except cases.Missing as reason:
            print(f"{name} left out: {reason}", flush=True)
            continue
        print(json.dumps(found[-1]), flush=True)
    STORE.parent.mkdir(parents=True, exist_ok=True)
    STORE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    heads = ["model", "ours, dB", "minmax, dB", "theirs, dB", "ours, error", "minmax, error",
             "theirs, error", "ours, MiB", "theirs, MiB", "ours, s", "theirs, s"]
    print(f"`./dev bench quantize`, {given.samples} samples; {report.machine()}.", "",
          *report.table(heads, rows(found)), sep="\n")


if __name__ == "__main__":
    main()
