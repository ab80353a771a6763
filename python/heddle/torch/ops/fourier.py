"""fourier: Fourier transforms, between real tensors. SPDX-License-Identifier: Apache-2.0"""

import torch

from .table import aten, axis_of, builds, rank_of, takes_complex, value_of


def as_complex(t, x):
    """A complex tensor of the node's type from a real or a complex one."""
    kind = t.out.dtype.to_real()
    if value_of(x).is_complex():
        return t.value(x) if value_of(x).dtype == t.out.dtype else t.converted(x, kind)
    real = t.op("Unsqueeze", t.cast(x, kind), t.ints(-1))
    zeros = t.expand(t.scalar(0, kind), [*t.out.shape, 1])
    return t.op("Concat", real, zeros, axis=-1)


@builds(aten.view_as_real, aten.view_as_complex)
@takes_complex
def same(t, self):
    return t.value(self)


@builds(aten.complex)
@takes_complex
def complex_of(t, real, imag):
    parts = [t.op("Unsqueeze", t.expand(x, t.out.shape), t.ints(-1)) for x in (real, imag)]
    return t.op("Concat", *parts, axis=-1)


@builds(aten._conj, aten._conj_physical)
@takes_complex
def conj(t, self):
    kind = value_of(self).dtype.to_real() if value_of(self).is_complex() else None
    return t.value(self) if kind is None else t.op("Mul", self, t.constant([1.0, -1.0], kind))


def transform(t, parts, axis, size, inverse, onesided=False):
    """The sums along an axis, without a factor."""
    found = t.op("DFT", parts, None, t.scalar(axis, torch.int64), inverse=int(inverse),
                 onesided=int(onesided))
    if not inverse:
        return found
    return t.op("Mul", found, t.scalar(size, t.out.dtype.to_real()))


def scaled(t, found, sizes, normalization):
    """The result with torch's factor: 1, or of the root of the count (1), or of the count (2)."""
    if normalization == 0:
        return found
    kind, count = t.out.dtype.to_real(), t.scalar(1, t.out.dtype.to_real())
    for size in sizes:
        count = t.op("Mul", count, t.scalar(size, kind))
    return t.op("Div", found, t.op("Sqrt", count) if normalization == 1 else count)


@builds(aten._fft_c2c.default)
@takes_complex
def fft_c2c(t, self, dim, normalization, forward):
    found, sizes = t.value(self), value_of(self).shape
    axes = [axis_of(each, rank_of(self)) for each in dim]
    for axis in axes:
        found = transform(t, found, axis, sizes[axis], not forward)
    return scaled(t, found, [sizes[axis] for axis in axes], normalization)


@builds(aten._fft_r2c.default)
@takes_complex
def fft_r2c(t, self, dim, normalization, onesided):
    sizes = value_of(self).shape
    axes = [axis_of(each, rank_of(self)) for each in dim]
    real = t.op("Unsqueeze", self, t.ints(-1))
    found = transform(t, real, axes[-1], sizes[axes[-1]], False, onesided)
    for axis in axes[:-1]:
        found = transform(t, found, axis, sizes[axis], False)
    return scaled(t, found, [sizes[axis] for axis in axes], normalization)


@builds(aten._fft_c2r.default)
@takes_complex
def fft_c2r(t, self, dim, normalization, last_dim_size):
    """Real numbers of half of what they became: the other half is its mirror image."""
    sizes, rank = list(value_of(self).shape), rank_of(self)
    axes = [axis_of(each, rank) for each in dim]
    if not isinstance(last_dim_size, int):
        t.refuse("an inverse transform of unknown size is not supported")
    found, last = t.value(self), axes[-1]
    for axis in axes[:-1]:
        found = transform(t, found, axis, sizes[axis], True)
    half = last_dim_size // 2 + 1
    found = t.op("Slice", found, t.ints(0), t.ints(half), t.ints(last))
    mirror = [min(last_dim_size - i, half - 1) for i in range(half, last_dim_size)]
    if mirror:
        other = t.op("Gather", found, t.ints(*mirror), axis=last)
        other = t.op("Mul", other, t.constant([1.0, -1.0], t.out.dtype))
        found = t.op("Concat", found, other, axis=last)
    found = transform(t, found, last, last_dim_size, True)
    real = t.op("Gather", found, t.constant(0, torch.int64), axis=rank)
    sizes[last] = last_dim_size
    return scaled(t, real, [sizes[axis] for axis in axes], normalization)
