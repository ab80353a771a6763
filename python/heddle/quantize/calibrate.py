"""calibrate: the range of a tensor's values, from a histogram that grows with them.

A histogram has a fixed number of bins around 0. Values beyond it double its width: neighbours
become one bin. So one pass over any number of values is enough, in the memory of the bins.
SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass

import numpy as np

BINS = 8192
CLIPPED = np.geomspace(0.02, 1, 60)  # shares of a range that are tried
LEAST_SCALE = 1e-30


@dataclass(frozen=True)
class Grid:
    """The integers of a tensor: u8 with a zero point, or s8 around 0."""

    symmetric: bool

    @property
    def least(self):
        return -128 if self.symmetric else 0

    @property
    def most(self):
        return 127 if self.symmetric else 255

    @property
    def dtype(self):
        return np.dtype(np.int8 if self.symmetric else np.uint8)

    def parameters(self, low, high):
        """(scale, zero point) for a range, which always has 0."""
        low, high = min(float(low), 0.0), max(float(high), 0.0)
        if self.symmetric:
            scale, zero = max(-low, high) / 127, 0
        else:
            scale = (high - low) / 255
            zero = int(np.clip(np.rint(-low / scale), 0, 255)) if scale > LEAST_SCALE else 0
        return np.float32(scale if scale > LEAST_SCALE else 1), self.dtype.type(zero)

    def integers(self, values, low, high):
        """The integers that values become."""
        scale, zero = self.parameters(low, high)
        return np.clip(np.rint(values / scale) + int(zero), self.least, self.most)

    def rounded(self, values, low, high):
        """The values that they are then taken for."""
        scale, zero = self.parameters(low, high)
        return (self.integers(values, low, high) - int(zero)) * scale


class Histogram:
    """How many values are in each of equal bins from -reach to reach, and their extremes."""

    def __init__(self):
        self.counts = np.zeros(BINS, np.int64)
        self.reach = 0.0
        self.low, self.high = np.inf, -np.inf

    def add(self, array):
        values = np.asarray(array, np.float32).ravel()
        low, high = float(values.min()), float(values.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._widen(max(-low, high))
        if self.reach:
            places = ((values + np.float32(self.reach)) * np.float32(BINS / (2 * self.reach)))
            places = np.clip(places.astype(np.int64), 0, BINS - 1)
            self.counts += np.bincount(places, minlength=BINS)
        else:  # zeros alone, as far as a scale tells
            self.counts[BINS // 2] += values.size

    def _widen(self, reach):
        if reach > LEAST_SCALE and not self.reach:
            self.reach = 2.0 ** np.ceil(np.log2(reach))
        while self.reach and reach > self.reach:
            inner = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts = np.pad(inner, BINS // 4)
            self.reach *= 2

    @property
    def edges(self):
        return np.linspace(-self.reach, self.reach, BINS + 1)

    def filled(self):
        """(centres, counts) of the bins that are not empty; none lies beyond the extremes."""
        some = np.flatnonzero(self.counts)
        centres = (some + 0.5) * (2 * self.reach / BINS) - self.reach
        return np.clip(centres, self.low, self.high), self.counts[some]

    def range(self):
        """The least and the greatest value, and 0."""
        return min(self.low, 0.0), max(self.high, 0.0)


def minmax(histogram, grid, settings):
    """From the least value to the greatest."""
    return histogram.range()


def percentile(histogram, grid, settings):
    """All but the same number of values at either end."""
    low, high = histogram.range()
    total = np.concatenate([[0], np.cumsum(histogram.counts)])
    tail = (1 - settings.percentile / 100) / 2 * total[-1]
    edges = histogram.edges
    # Within a bin, values are taken to be spread evenly.
    bounds = np.interp([tail, total[-1] - tail], total, edges)
    return max(low, min(bounds[0], 0)), min(high, max(bounds[1], 0))


def divergence(histogram, grid, low, high):
    """Kullback-Leibler's, of the values and of those that a clipped range takes them for."""
    centres, counts = histogram.filled()
    given = counts.astype(np.float64)
    inside = (centres >= low) & (centres <= high)
    bins = np.clip(centres, low, high)[inside]
    wanted = given[inside]
    if not wanted.size or not wanted.sum():
        return np.inf
    levels = (grid.integers(bins, low, high) - grid.least).astype(np.int64)
    found = np.bincount(levels, wanted, 256)[levels] / np.bincount(levels, minlength=256)[levels]
    wanted = wanted.copy()
    wanted[0] += given[centres < low].sum()  # what is clipped is told at the ends
    wanted[-1] += given[centres > high].sum()
    wanted, found = wanted / wanted.sum(), found / found.sum()
    return float(np.sum(wanted * np.log(wanted / found)))


def entropy(histogram, grid, settings):
    """The clipped range of the least divergence."""
    low, high = histogram.range()
    return min(((low * share, high * share) for share in CLIPPED[::-1]),
               key=lambda bounds: divergence(histogram, grid, *bounds))


def squared_error(histogram, grid, low, high):
    """The sum of squares of what rounding and clipping do to the values."""
    centres, counts = histogram.filled()
    return float(np.sum(counts * (grid.rounded(centres, low, high) - centres) ** 2))


def mse(histogram, grid, settings):
    """The clipped range of the least squared error: first both ends alike, then each alone."""
    low, high = histogram.range()
    tried = [(low * share, high * share) for share in CLIPPED[::-1]]
    best = min(tried, key=lambda bounds: squared_error(histogram, grid, *bounds))
    if grid.symmetric or not low or not high:
        return best
    for end in (0, 1):
        ends = [tuple(value * share if place == end else best[place]
                      for place, value in enumerate((low, high))) for share in CLIPPED[::-1]]
        best = min([best, *ends], key=lambda bounds: squared_error(histogram, grid, *bounds))
    return best


CALIBRATORS = {"minmax": minmax, "percentile": percentile, "entropy": entropy, "mse": mse}
