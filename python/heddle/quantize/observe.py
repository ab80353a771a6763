"""observe: runs of a model by Heddle itself, with tensors within it as outputs.

SPDX-License-Identifier: Apache-2.0
"""

import os

import numpy as np

from .. import compiler, workplace
from ..library import Error, RefusedError
from ..onnx_graph import make_value
from ..packages import need
from ..training.checkpoint import LARGEST_PROTO, size_of, write_proto
from .calibrate import Histogram


TINY = 1e-30
LEVEL = 0  # of optimisation: a module is compiled for some tens of runs


def compiled(model, threads):
    """A module of a ModelProto, which may be larger than a message can be."""
    given = {"threads": threads or None, "cache": False, "opt_level": LEVEL}
    if size_of(model) < LARGEST_PROTO:
        return compiler.compile(model, **given)
    onnx = need("onnx", "quantising", "quantize")
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    with workplace.folder() as folder:
        path = os.path.join(folder, "model.onnx")
        write_proto(path, copy)
        return compiler.compile(path, **given)


def watched(network, tensors, threads):
    """A module that gives these tensors of a network instead of its outputs."""
    onnx, graph = network.onnx, network.graph
    own = list(graph.output)
    try:
        del graph.output[:]
        graph.output.extend(own_or_new(onnx, own, network, name) for name in tensors)
        return compiled(network.model, threads)
    except RefusedError as error:
        raise RefusedError(f"'{network.name}': tensors within it cannot be observed: {error}"
                           ) from error
    finally:
        del graph.output[:]
        graph.output.extend(own)


def own_or_new(onnx, own, network, name):
    """The ValueInfoProto of a tensor."""
    found = next((value for value in own if value.name == name), None)
    return found or make_value(name, None, network.types[name][0])


def each_run(module, feeds, what):
    """{tensor: array} of each run; numbers that are none end it with a message."""
    names = [output.name for output in module.outputs]
    for number, feed in enumerate(feeds):
        results = dict(zip(names, module.run(None, dict(feed))))
        for name, array in results.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise Error(f"{what}: '{name}' has numbers that are not finite for sample {number} "
                            "of those to calibrate with; leave that sample out, or see 'heddle "
                            "compare' about the model")
        yield results


def values(network, tensors, samples, threads):
    """{tensor: array} of each sample to calibrate with."""
    inputs = {value.name for value in network.graph.input}
    inner = [name for name in tensors if name not in inputs]
    module = watched(network, inner, threads) if inner else None
    runs = each_run(module, samples.calibrating(), f"'{network.name}'") if inner else None
    for feed in samples.calibrating():
        results = next(runs) if runs else {}
        yield {name: np.asarray(feed[name] if name in inputs else results[name])
               for name in tensors}


def histograms(network, tensors, samples, threads):
    """{tensor: Histogram} of what the samples make of them."""
    found = {name: Histogram() for name in tensors}
    for results in values(network, tensors, samples, threads):
        for name, histogram in found.items():
            if results[name].size:
                histogram.add(results[name])
    return found


def greatest(network, tensors, samples, threads, axis=-1):
    """{tensor: the greatest magnitude of each channel, along an axis}."""
    found = {}
    for results in values(network, tensors, samples, threads):
        for name, array in results.items():
            rows = np.moveaxis(np.abs(array), axis, -1)
            most = rows.reshape(-1, rows.shape[-1]).max(axis=0)
            found[name] = np.maximum(found[name], most) if name in found else most
    return found


class Moments:
    """The mean magnitude of each channel, and the mean of the products of all pairs of them."""

    def __init__(self):
        self.count, self._sum, self._products = 0, 0, 0

    def add(self, array):
        rows = array.reshape(-1, array.shape[-1])
        self.count += len(rows)
        self._sum = self._sum + np.abs(rows).sum(axis=0, dtype=np.float64)
        self._products += rows.T @ rows

    @property
    def mean(self):
        return self._sum / self.count

    @property
    def products(self):
        return self._products / self.count


def moments(network, tensors, samples, threads):
    """{tensor: Moments} of what the samples make of them."""
    found = {name: Moments() for name in tensors}
    for results in values(network, tensors, samples, threads):
        for name, array in results.items():
            if array.size:
                found[name].add(array)
    return found
