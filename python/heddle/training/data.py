"""data: batches of a .npz file, in an order that a seed and the epoch decide.

SPDX-License-Identifier: Apache-2.0
"""

import zipfile
import zlib

import numpy as np

from ..arrays import numpy_dtype
from ..library import UsageError, check_file


class Samples:
    """Arrays by name whose first dimension counts the samples."""

    def __init__(self, path, names):
        """`names`: the inputs that each sample has, its labels among them."""
        check_file(path, "samples")
        self.path = path
        try:
            with np.load(path, allow_pickle=False) as file:
                self.arrays = {name: file[name] for name in file.files}
        except FileNotFoundError as error:
            raise UsageError(f"'{path}': there is no such file") from error
        except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, AttributeError,
                TypeError) as error:  # the last of a .npy file
            raise UsageError(f"'{path}': is no .npz file of arrays: {error}; numpy.savez("
                             f"'{path}', {', '.join(f'{name}=...' for name in names)}) makes one"
                             ) from error
        missing = [name for name in names if name not in self.arrays]
        if missing:
            raise UsageError(f"'{path}': has no array '{missing[0]}'; it has "
                             f"{', '.join(self.arrays) or 'none'}, and training needs "
                             f"{', '.join(names)}")
        self.arrays = {name: self.arrays[name] for name in names}
        counts = {name: len(array) if array.ndim else 0 for name, array in self.arrays.items()}
        if len(set(counts.values())) != 1:
            raise UsageError(f"'{path}': its arrays have different numbers of samples: {counts}")
        self.count = counts[names[0]]

    def check(self, inputs, labels, classes):
        """Refuses what does not fit the inputs of a step, and labels that are none of so many
        classes (None: no such labels)."""
        for value in inputs:
            array, kind = self.arrays[value.name], numpy_dtype(value.dtype)
            fits = len(value.shape) == array.ndim and all(
                size == found or isinstance(size, str)
                for size, found in zip(value.shape[1:], array.shape[1:]))
            is_plain = array.dtype.kind not in "VUSO"  # texts, and types that NumPy lacks
            if not fits or (is_plain and array.dtype != kind):
                wanted = ", ".join(["samples", *map(str, value.shape[1:])][:len(value.shape)])
                raise UsageError(f"'{self.path}': '{value.name}' is {array.dtype}"
                                 f"{list(array.shape)}, but the model takes {kind}[{wanted}]")
        if classes is None:
            return
        bad = np.argwhere((self.arrays[labels] < 0) | (self.arrays[labels] >= classes))
        if len(bad):
            at = tuple(map(int, bad[0]))
            raise UsageError(f"'{self.path}': {labels}{list(at)} is {self.arrays[labels][at]}, but "
                             f"there are {classes} classes, from 0 to {classes - 1}")

    def batch(self, indices):
        return {name: np.ascontiguousarray(array[indices]) for name, array in self.arrays.items()}

    def batches(self, size, keeps_rest, order=None):
        """Feeds of `size` samples each; the last ones may be fewer where `keeps_rest`."""
        order = np.arange(self.count) if order is None else order
        end = self.count if keeps_rest else self.count - self.count % size
        for first in range(0, end, size):
            yield self.batch(order[first:first + size])

    def order(self, seed, epoch):
        return np.random.default_rng([seed, epoch]).permutation(self.count)


def batches_of(count, size, keeps_rest):
    return -(-count // size) if keeps_rest else count // size
