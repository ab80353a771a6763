"""The cost of a start beside ONNX Runtime: `./dev bench start [--models NAME...]`.

A new process imports a package, makes an InferenceSession of one thread, and runs it once. Heddle's
has compiled the model before, into a cache of this measurement's own (the *first* column). Both
packages have a process each by turns. Seconds are medians without and with the import; memory is
what is resident after the run, of which what processes share counts for each."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.kernels import report
from bench.models import catalogue

PACKAGES = {"heddle": "heddle.onnxruntime", "onnxruntime": "onnxruntime"}
MODELS = ("silero_vad", "ppocr_det", "ppocr_rec", "light_squeezenet")
PROGRAM = """
import sys, time
begin = time.perf_counter()
import importlib, json, numpy
package = importlib.import_module(sys.argv[1])
imported = time.perf_counter()
options = package.SessionOptions()
options.intra_op_num_threads = 1
options.log_severity_level = 3
with numpy.load(sys.argv[3]) as file:
    feeds = dict(file)
made = time.perf_counter()
session = package.InferenceSession(sys.argv[2], options, providers=["CPUExecutionProvider"])
session.run(None, feeds)
end = time.perf_counter()
with open("/proc/self/status") as file:
    resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
print(json.dumps([end - made, end - made + imported - begin, resident / 1e3]))
"""


def start(package, model, feeds, cache):
    """[seconds, seconds with the import, resident megabytes]"""
    done = subprocess.run([sys.executable, "-c", PROGRAM, PACKAGES[package], model, feeds],
                          env={**os.environ, "HEDDLE_CACHE": str(cache)}, check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(model, rounds):
    """The seconds of the first start, and {package: columns of the starts that follow}."""
    with tempfile.TemporaryDirectory() as folder:
        feeds, cache = Path(folder) / "feeds.npz", Path(folder) / "cache"
        np.savez(feeds, **model.make_feeds()[0])
        first = start("heddle", model.path(), feeds, cache)[0]
        found = {package: [] for package in PACKAGES}
        for number in range(rounds):
            for package in list(PACKAGES)[::1 if number % 2 else -1]:
                found[package].append(start(package, model.path(), feeds, cache))
    return first, {package: list(zip(*rows)) for package, rows in found.items()}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--models", nargs="+", default=MODELS, metavar="NAME")
    options.add_argument("--rounds", type=int, default=9)
    given = options.parse_args()
    rows = []
    for name in given.models:
        first, found = measure(catalogue.find(name), given.rounds)
        ours, theirs = ([statistics.median(column) for column in found[package]]
                        for package in PACKAGES)
        rows.append((name, f"{first:.2f}", f"{ours[0]:.3f}", f"{theirs[0]:.3f}",
                     *(f"{a / b:.2f}" for a, b in zip(ours, theirs))))
    print("\n".join(report.table(["model", "first s", "Heddle s", "ONNX Runtime s", "ratio",
                                  "with import", "memory"], rows)))


if __name__ == "__main__":
    main()
