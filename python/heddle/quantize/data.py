"""data: samples of a model's inputs, each checked before anything runs.

Samples can be gone through any number of times: those of an iterator are kept in files meanwhile. A
fifth of them, at least one of two, is not calibrated with: errors are measured on it. Another fifth
is not fine-tuned with: it says whether that has helped.
SPDX-License-Identifier: Apache-2.0
"""

import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..arrays import numpy_dtype
from ..library import UsageError, check_file
from ..onnx_graph import STRING

HELD = 5  # one of so many samples is held out
RANDOM = 16  # samples, where there are none
BROKEN = (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, AttributeError, TypeError)


@dataclass(frozen=True)
class Input:
    """An input of a model; a size that it leaves open is its name, or None."""

    name: str
    dtype: int
    dims: list

    def __str__(self):
        sizes = ", ".join("?" if size is None else str(size) for size in self.dims)
        return f"{numpy_dtype(self.dtype)}[{sizes}]"


def inputs_of(network):
    """The inputs of a network."""
    found = []
    for value in network.graph.input:
        if not value.type.HasField("tensor_type"):
            raise UsageError(f"'{network.name}': its input '{value.name}' is no tensor, but "
                             "samples are of tensors alone")
        kind = value.type.tensor_type
        dims = [dim.dim_value if dim.dim_value > 0 else dim.dim_param or None
                for dim in kind.shape.dim]  # exporters write -1 for a size that is open
        found.append(Input(value.name, kind.elem_type, dims))
    return found


def _check(where, feed, inputs):
    """Refuses a sample that does not fit."""
    if not isinstance(feed, Mapping):
        raise UsageError(f"{where}: is a {type(feed).__name__}, but {{name of an input: array}} is "
                         "needed")
    names = [each.name for each in inputs]
    for name in names:
        if name not in feed:
            has = ", ".join(map(str, feed)) or "none"
            raise UsageError(f"{where}: has no '{name}'; it has {has}, and the model takes "
                             f"{', '.join(names)}")
    for name in feed:
        if name not in names:
            raise UsageError(f"{where}: '{name}' is no input; the model takes {', '.join(names)}")
    for each in inputs:
        _check_array(where, each, np.asarray(feed[each.name]))


def _check_array(where, each, array):
    shape = list(array.shape)
    what = f"{where}: '{each.name}' is {array.dtype}{shape}"
    fits = len(shape) == len(each.dims) and all(
        not isinstance(size, int) or size == found for size, found in zip(each.dims, shape))
    is_right = array.dtype.kind in "SUO" if each.dtype == STRING else (
        array.dtype == numpy_dtype(each.dtype))
    if not fits or not is_right:
        raise UsageError(f"{what}, but the model takes {each}" + ("" if is_right or not fits else
                         f"; .astype('{numpy_dtype(each.dtype)}') converts it"))
    if array.size == 0:
        raise UsageError(f"{what}, which has no elements; leave such samples out")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        at = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
        raise UsageError(f"{where}: '{each.name}'{list(at)} is {array[at]}, but finite numbers are "
                         "needed; leave such samples out")


def _read(path):
    """The arrays of a .npz file."""
    check_file(path, "samples")
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError as error:
        raise UsageError(f"'{path}': there is no such file") from error
    except BROKEN as error:
        raise UsageError(f"'{path}': is no .npz file of arrays: {error}; "
                         f"numpy.savez('{path}', name=array) makes one") from error


def _files(path):
    """The .npz files that a path names."""
    if not os.path.isdir(path):
        return [path]
    files = sorted(Path(path).glob("*.npz"))
    if not files:
        raise UsageError(f"'{path}': has no .npz file; each holds arrays by the names of inputs")
    return files


def _cut(where, arrays, inputs, batch):
    """Samples of arrays whose first dimension counts them, one run each; others, such as labels,
    are left out."""
    names = {each.name for each in inputs}
    if names & set(arrays):
        arrays = {name: array for name, array in arrays.items() if name in names}
    sizes = {each.name: each.dims[0] if isinstance(each.dims[0], int) else batch
             for each in inputs if each.dims and np.ndim(arrays.get(each.name, 0))}
    for name in sizes:
        if len(arrays[name]) == 0:
            raise UsageError(f"{where}: '{name}' has no samples; its first dimension counts them")
    fixed = any(isinstance(each.dims[0], int) for each in inputs if each.name in sizes)
    runs = {name: len(arrays[name]) // size if fixed else -(-len(arrays[name]) // size)
            for name, size in sizes.items()}
    if len(set(runs.values())) > 1:
        counts = {name: len(arrays[name]) for name in sizes}
        raise UsageError(f"{where}: its arrays have different numbers of samples: {counts}, of "
                         f"which a run takes {sizes}")
    for run in range(max(runs.values(), default=1) or 1):
        yield f"{where}, sample {run}", {
            name: array[run * sizes[name]:(run + 1) * sizes[name]] if name in sizes else array
            for name, array in arrays.items()}


class Samples:
    """Feeds for runs of a model."""

    def __init__(self, feeds, network, settings, folder):
        """Checks all of them; what can be read once only is kept in `folder`."""
        self.settings, self.folder = settings, folder
        self._random = RandomInputs(network, settings.dim)
        self.inputs = self._random.inputs
        self.is_random = feeds is None
        self._source = self._sources(feeds)
        if isinstance(feeds, Iterator):
            self._keep()
        self.count = 0
        for where, feed in self:
            _check(where, feed, self.inputs)
            self.count += 1
        if settings.finetune and (self.is_random or self.count < 3):
            raise UsageError(
                "--finetune: there are no samples, and random inputs would teach the weights what "
                "no input needs; --data gives samples" if self.is_random else
                f"--finetune: {self.count} samples are too few: one trains, one says whether that "
                "has helped, and one tells the error; give 3 or more")
        if self.count == 0:
            raise UsageError("there are no samples to calibrate with; without any data, random "
                             "inputs are drawn")
        self.has_held = self.count > 1

    def __iter__(self):
        """(place for messages, feed), in their order."""
        for number, each in enumerate(self._source()):
            if self.settings.samples is not None and number >= self.settings.samples:
                return
            yield each

    def _sources(self, feeds):
        """A function that begins an iteration."""
        if feeds is None:
            return self._drawn
        batch = self.settings.batch
        if isinstance(feeds, Mapping):
            arrays = {name: np.asarray(array) for name, array in feeds.items()}
            return lambda: _cut("the feeds", arrays, self.inputs, batch)
        paths = [feeds] if isinstance(feeds, (str, os.PathLike)) else feeds
        if isinstance(paths, (list, tuple)) and paths and all(
                isinstance(path, (str, os.PathLike)) for path in paths):
            files = [file for path in paths for file in _files(path)]
            return lambda: (each for path in files
                            for each in _cut(f"'{path}'", _read(path), self.inputs, batch))
        if not isinstance(feeds, Iterable):
            raise UsageError(f"the feeds are a {type(feeds).__name__}, but an iterable of {{name "
                             "of an input: array}, or .npz files, are allowed")
        return lambda: ((f"feeds[{number}]", feed) for number, feed in enumerate(feeds))

    def _keep(self):
        """Keeps the samples of an iterator in files."""
        files = []
        for where, feed in self:
            _check(where, feed, self.inputs)
            files.append((where, self.keep(str(len(files)), {each.name: feed[each.name]
                                                             for each in self.inputs})))
        self._source = lambda: ((where, kept()) for where, kept in files)

    def keep(self, name, feed):
        """Writes a feed to a file; a function that reads it."""
        path = os.path.join(self.folder, f"{name}.npz")
        strings = {each.name for each in self.inputs if each.dtype == STRING}
        names = list(feed)
        np.savez(path, *(np.asarray(feed[key], str if key in strings else None) for key in names))

        def read():
            with np.load(path, allow_pickle=False) as file:
                return {key: file[f"arr_{place}"] for place, key in enumerate(names)}
        return read

    def _drawn(self):
        random = np.random.default_rng(0)
        for number in range(RANDOM):
            yield f"random sample {number}", self._random.feed(self.settings.batch, random)

    def calibrating(self):
        """Feeds to calibrate with."""
        return (feed for number, (_, feed) in enumerate(self) if not self._is_held(number))

    def held(self):
        """Feeds to measure errors with: others, if there are two."""
        return (feed for number, (_, feed) in enumerate(self)
                if self._is_held(number) or not self.has_held)

    def training(self):
        """Feeds to fine-tune with."""
        return (feed for number, (_, feed) in enumerate(self)
                if not self._is_held(number) and not self._is_held(number + 1))

    def validating(self):
        """Feeds that choose among what was fine-tuned: those before the held ones."""
        return (feed for number, (_, feed) in enumerate(self) if self._is_held(number + 1))

    def _is_held(self, number):
        every = min(self.count, HELD)
        return self.has_held and number % every == every - 1


class RandomInputs:
    """Random inputs of a network: normal numbers, and indices that its tables have."""

    def __init__(self, network, sizes):
        """`sizes`: "NAME=N" for those that the network leaves open; the first is the batch."""
        self.inputs, self.bounds = inputs_of(network), _bounds(network)
        self.sizes = {name: int(number) for name, _, number in
                      (size.partition("=") for size in sizes)}

    def feed(self, batch, random):
        """The next sample."""
        return {each.name: self._array(each, batch, random) for each in self.inputs}

    def _array(self, each, batch, random):
        shape = []
        for place, size in enumerate(each.dims):
            if not isinstance(size, int) and size not in self.sizes and place:
                raise UsageError(f"random inputs: '{each.name}' is {each}, whose size "
                                 f"'{size or place}' is open; --dim {size or 'NAME'}=N says it, or "
                                 "--data gives samples")
            shape.append(size if isinstance(size, int) else self.sizes.get(size, batch))
        dtype = numpy_dtype(each.dtype)
        if dtype.kind == "f":
            return random.standard_normal(shape).astype(dtype)
        if dtype.kind in "iub":
            return random.integers(0, self.bounds.get(each.name, 2), shape).astype(dtype)
        raise UsageError(f"random inputs: '{each.name}' is {each}, for which none are drawn; "
                         "--data gives samples")


def _bounds(network):
    """{input: rows of the smallest table that it chooses from}."""
    found = {}
    for node in network.nodes:
        if node.op_type == "Gather" and node.input[0] in network.tensors:
            dims = network.tensors[node.input[0]].dims
            rows = dims[0] if dims else 1
            found[node.input[1]] = min(rows, found.get(node.input[1], rows))
    return found
