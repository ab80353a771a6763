"""lowbit: weights as integers of 4 or 8 bits, with a scale for each block of a row.

A row is what one output channel reads: its blocks lie along the inputs, the last one may be short.
SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass

import numpy as np

from ..weights import SHARES, TINY


@dataclass(frozen=True)
class Grid:
    """The integers: `bits` of them, around the middle one, or with zero points."""

    bits: int
    symmetric: bool

    @property
    def most(self):
        return 2**self.bits - 1

    @property
    def middle(self):
        return 2**(self.bits - 1)

    def parameters(self, rows, share=1.0):
        """(scale, zero point) of each row, for a share of its range; as MLAS finds them: the
        weight that is farthest from 0 is the least integer, so the scale may be negative."""
        low, high = rows.min(axis=-1).astype(np.float64), rows.max(axis=-1).astype(np.float64)
        if self.symmetric:
            scale = np.where(high > -low, high, low) / -self.middle
        else:
            low, high = np.minimum(low, 0), np.maximum(high, 0)
            scale = (high - low) / self.most
        scale = np.where(np.abs(scale) < TINY, 1, scale * share).astype(np.float32)
        zero = np.full(scale.shape, self.middle, np.uint8) if self.symmetric else np.clip(
            np.floor(-low * share / scale + 0.5), 0, self.most).astype(np.uint8)
        return scale, zero

    def codes(self, rows, scale, zero):
        """The integers of weights; scale and zero point are broadcast."""
        return np.clip(np.floor(rows / scale + zero + np.float32(0.5)), 0, self.most).astype(
            np.uint8)


def values(codes, scale, zero):
    """The numbers that integers stand for."""
    return (codes.astype(np.float32) - zero) * scale


def blocked(rows, block):
    """[rows, blocks, block], with zeros after the end."""
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % block)))
    return rows.reshape(len(rows), -1, block)


@dataclass(frozen=True)
class Coded:
    """A weight as integers: [rows, columns], with [rows, blocks] scales and zero points."""

    grid: Grid
    block: int
    codes: np.ndarray
    scale: np.ndarray
    zero: np.ndarray

    def values(self):
        wide = [np.repeat(each, self.block, axis=1)[:, :self.codes.shape[1]]
                for each in (self.scale, self.zero)]
        return values(self.codes, *wide)

    @property
    def size(self):
        """Bytes."""
        rows, blocks = self.scale.shape
        zeros = 0 if self.grid.symmetric else rows * -(-blocks * self.grid.bits // 8)
        return rows * blocks * (self.block * self.grid.bits // 8 + 4) + zeros


def fitted(parts, grid, how="minmax", products=None):
    """(scale, zero point) of blocks: from the least weight to the greatest, or for the share of
    that range with the least squared error; `products` are those of the inputs of each block, so
    that the error is that of outputs."""
    best = grid.parameters(parts)
    if how == "minmax":
        return best
    least = np.full(best[0].shape, np.inf)
    for share in SHARES[::-3]:
        scale, zero = grid.parameters(parts, share)
        off = values(grid.codes(parts, scale[..., None], zero[..., None]), scale[..., None],
                     zero[..., None]) - parts
        moved = off if products is None else (off.swapaxes(0, 1) @ products).swapaxes(0, 1)
        error = (off * moved).sum(axis=-1)
        best = tuple(np.where(error < least, one, other)
                     for one, other in zip((scale, zero), best))
        least = np.minimum(error, least)
    return best


def nearest(rows, grid, block, how="minmax", products=None):
    """The weight with each number rounded to the nearest integer."""
    parts = blocked(rows, block)
    scale, zero = fitted(parts, grid, how, products)
    codes = grid.codes(parts, scale[..., None], zero[..., None])
    return Coded(grid, block, codes.reshape(len(rows), -1)[:, :rows.shape[1]], scale, zero)
