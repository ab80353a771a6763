"""Layers of Debian's oneDNN, called directly: the best that it has for a shape.

Weights are in its layout before anything is timed, and so are images: what a network of nothing but
oneDNN's layers has. Its C functions and the loops that time them are in onednn.c, which the first
use compiles into build/bench/kernels (package libdnnl-dev).
"""

import ctypes
import functools
import statistics
import subprocess
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path

import numpy as np

from bench.kernels import report, turns

SOURCE = Path(__file__).with_name("onednn.c")
ALGORITHMS = {"direct": 0, "winograd": 1, "auto": 2}
MATMULS = ("matmul", "inner product", "matmul, own layouts", "inner product, own layouts")
MAX_DIMS = 12  # of oneDNN: it reads so many numbers, however many there are
SIZES = POINTER(c_int64)


@functools.cache
def library():
    """onednn.c, compiled; one thread, also where OpenMP was loaded before."""
    ctypes.CDLL("libgomp.so.1").omp_set_num_threads(1)
    path = report.STORE / "onednn.so"
    if not path.exists() or path.stat().st_mtime < SOURCE.stat().st_mtime:
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", SOURCE, "-ldnnl", "-o", path], check=True)
    found = ctypes.CDLL(str(path))
    for name, result, taken in (
            ("layer_convolution", c_void_p, [SIZES, SIZES, c_int, *[SIZES] * 4, c_int, c_int]),
            ("layer_matmul", c_void_p, [c_int64, c_int64, c_int64, c_int]),
            ("layer_destroy", None, [c_void_p]),
            ("layer_name", c_char_p, [c_void_p]),
            ("layer_copy", c_int, [c_void_p, c_int, POINTER(c_float)]),
            ("layer_time", c_int, [c_void_p, c_int, POINTER(c_double)]),
            ("session_time", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t,
                                     c_int, POINTER(c_double)])):
        function = getattr(found, name)
        function.restype, function.argtypes = result, taken
    return found


def _sizes(*values):
    return (c_int64 * MAX_DIMS)(*values)


class Layer:
    """One form of a layer."""

    def __init__(self, handle, form):
        self._handle = handle
        self.form = f"{form} ({library().layer_name(handle).decode()})"

    def __del__(self):
        library().layer_destroy(self._handle)

    def copy(self, index, array):
        """Takes plain data in, or the result (index 2) out."""
        if not library().layer_copy(self._handle, index, array.ctypes.data_as(POINTER(c_float))):
            raise RuntimeError(f"oneDNN cannot bring tensor {index} into the layout of {self.form}")

    def run(self, runs):
        """The seconds of each of so many runs."""
        seconds = (c_double * runs)()
        if not library().layer_time(self._handle, runs, seconds):
            raise RuntimeError(f"oneDNN cannot run {self.form}")
        return list(seconds)


def session(compiled):
    """A timed thing of a compiled model."""
    def run(runs):
        seconds = (c_double * runs)()
        if not library().session_time(*compiled.arguments(), runs, seconds):
            raise RuntimeError("heddle_session_run gave a status")
        return list(seconds)
    return run


def convolutions(images, filters, results, strides, dilations, pads):
    """Every form of a convolution: algorithms with layouts of its own choice, and channels last.

    `filters` are sizes as oihw, or goihw where there are groups.
    """
    forms = [(name, 0) for name in ALGORITHMS] + [("direct", 1), ("auto", 1)]
    for name, layout in forms:
        handle = library().layer_convolution(
            _sizes(*images), _sizes(*filters), len(filters), _sizes(*results), _sizes(*strides),
            _sizes(*dilations), (c_int64 * (2 * MAX_DIMS))(*pads), ALGORITHMS[name], layout)
        if handle:
            yield Layer(handle, f"{name}{', channels last' if layout else ''}")


def matmuls(m, k, n):
    """Every form of a product with constant weights."""
    for number, name in enumerate(MATMULS):
        handle = library().layer_matmul(m, k, n, number)
        if handle:
            yield Layer(handle, name)


def best(layers, tensors, rounds=3, turn_s=0.002):
    """The fastest of some layers, with their tensors (source, weights, None, bias) in place."""
    layers = list(layers)
    for layer in layers:
        for index, array in enumerate(tensors):
            if array is not None:
                layer.copy(index, np.ascontiguousarray(array, np.float32))
    times = turns.by_turns({i: layer.run for i, layer in enumerate(layers)}, rounds, turn_s)
    return layers[min(times, key=lambda i: statistics.median(times[i]))]
