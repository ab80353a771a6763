"""data: batches of a .npz file, in an order that a seed and the epoch decide.

SPDX-License-Identifier: Apache-2.0
"""

import zipfile

import numpy as np

from ..library import UsageError, check_file


class Samples:
    """Arrays by name whose first dimension counts the samples."""

    def __init__(self, path, names):
        """`names`: the inputs that each sample has, its labels among them."""
        check_file(path, "samples")
        try:
            with np.load(path, allow_pickle=False) as file:
                self.arrays = {name: file[name] for name in file.files}
        except FileNotFoundError as error:
            raise UsageError(f"'{path}': there is no such file") from error
        except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError) as error:
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
