"""awq: channels with large inputs get larger weights, which are rounded with less error.

  x w = (x / s) (s w), with s = mean |x|^a of an input channel: `a` is the one of a grid with the
  least error of the outputs of all layers that read x; 1 / s goes into what makes x (Lin et al.,
  MLSys 2024).
SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from .. import smooth
from . import lowbit

EXPONENTS = np.arange(1, 20) / 20
LEAST = 1e-4  # mean magnitude, beside the greatest
ROWS = 512  # of a weight that are searched on


def groups(network, layers):
    """{tensor: its layers} of those whose scale can go into what makes the tensor."""
    found = {}
    for layer in layers.values():
        if layer.kind != "Gather":
            found.setdefault(layer.x, []).append(layer)
    return {name: group for name, group in found.items() if _has_place(network, name, group)}


def _has_place(network, name, group):
    if any(network.only_consumer(layer.weight) is None for layer in group):
        return False
    if smooth.absorbers(network, name) is not None:
        return True
    is_own = smooth.is_read_by(network, name, {layer.key for layer in group})
    return is_own and smooth.absorbers(network, name, True) is not None


def _error(rows, scale, products, quantise):
    """Error of outputs, where inputs are divided by the scale."""
    off = quantise(rows * scale).values() / scale - rows
    return float(((off @ products) * off).sum())


def best_scale(weights, moments, quantise):
    """The scale of input channels for weights in rows; None if none is better than 1."""
    products = moments.products.astype(np.float32)
    parts = [rows[::max(1, len(rows) // ROWS)] for rows in weights]
    most = moments.mean.max()
    if not np.isfinite(products).all() or not most > 0:
        return None
    found, least = None, sum(_error(rows, np.float32(1), products, quantise) for rows in parts)
    for exponent in EXPONENTS:
        scale = np.maximum(moments.mean / most, LEAST) ** exponent
        scale = (scale / np.sqrt(scale.max() * scale.min())).astype(np.float32)
        error = sum(_error(rows, scale, products, quantise) for rows in parts)
        if error < least:
            found, least = scale, error
    return found


def block_products(products, block):
    """The products of the inputs of each block."""
    count = -(-len(products) // block)
    wide = np.pad(products, (0, count * block - len(products)))
    return np.stack([wide[at:at + block, at:at + block]
                     for at in range(0, count * block, block)]).astype(np.float32)


def clipped(rows, products, grid, block):
    """The weight with the share of each block's range that has the least error of outputs."""
    return lowbit.nearest(rows, grid, block, "mse", block_products(products, block))
