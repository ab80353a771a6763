"""weights: constants as integers of 8 bits around 0, and biases as integers of 32 bits.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

MOST, REDUCED = 127, 63  # of 8 bits and of 7
SHARES = np.linspace(0.4, 1, 61)  # of the greatest magnitude
LARGEST_BIAS = 2**31 - 2**8  # as f32 has it
TINY = 1e-37  # a scale that f32 has


def _rows(array, axis):
    """A row for each scale."""
    return (array.reshape(1, -1) if axis is None
            else np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1))


def scales(array, axis, how, limit=MOST):
    """The scale of each row, by the greatest magnitude or the least squared error; `limit` is the
    greatest integer."""
    rows = _rows(array, axis)
    most = np.abs(rows).max(axis=1)
    if how == "mse":
        best, error = most, np.full(len(rows), np.inf)
        for share in SHARES[::-1]:
            step = np.where(most > 0, most * share / limit, 1)[:, None]
            found = ((np.clip(np.rint(rows / step), -limit, limit) * step - rows) ** 2).sum(axis=1)
            best = np.where(found < error, most * share, best)
            error = np.minimum(found, error)
        most = best
    return np.where(most > 0, most / limit, 1).astype(np.float32)


def along(vector, axis, rank):
    """The vector as an array that is broadcast along an axis."""
    return vector.reshape([-1 if place == axis else 1 for place in range(rank)])


def integers(array, scale, axis, limit=MOST):
    """The weight as i8."""
    step = scale.reshape(()) if axis is None else along(scale, axis, array.ndim)
    return np.clip(np.rint(array / step), -limit, limit).astype(np.int8)


def as_vector(bias):
    """A bias that lies along the last axis as a vector; None if it lies otherwise."""
    return bias.reshape(-1) if bias.ndim < 2 or bias.size == bias.shape[-1] else None


def enough_for_bias(scale, bias, x_scale):
    """The scales, so large that the bias fits 32 bits and its scale, `scale * x_scale`, f32."""
    least = np.maximum(np.abs(bias) / LARGEST_BIAS, TINY) / float(x_scale)
    return np.maximum(scale, least.astype(np.float32))


def bias_integers(bias, scale):
    """The bias as i32."""
    return np.clip(np.rint(bias.astype(np.float64) / scale), -2**31, 2**31 - 1).astype(np.int32)
