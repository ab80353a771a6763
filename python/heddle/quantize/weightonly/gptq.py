"""gptq: weights rounded one column after the other, each error taken out of those that follow.

For the error of outputs on samples, tr(D H D') with H the products of inputs, the best change of
later columns for an error in one is a row of the Cholesky factor of H's inverse (Frantar et al.,
ICLR 2023). SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass

import numpy as np

from . import lowbit

LAZY = 128  # columns whose errors reach the rest at once; blocks divide it or are multiples of it
MORE = 10  # times as much damping, where there is no factor
TRIALS = 6


@dataclass(frozen=True)
class Factor:
    """U, with U' U the inverse of the damped products, and the order of columns that it is of."""

    upper: np.ndarray
    order: np.ndarray
    is_sorted: bool


def factor(products, damping, act_order):
    """The Factor of products of inputs; None if they are no numbers."""
    products = np.asarray(products, np.float64)
    if not np.isfinite(products).all():
        return None
    size = np.diag(products).copy()
    order = np.argsort(-size, kind="stable") if act_order else np.arange(len(size))
    products = products[np.ix_(order, order)]
    products[np.diag_indices(len(size))] += size[order] == 0  # inputs that are never there
    mean = size.mean() or 1.0
    damping = max(damping, 1e-9)
    for _ in range(TRIALS):
        damped = products + damping * mean * np.eye(len(size))
        try:  # H = R R' with R upper, from both ends: so U is the inverse of R
            root = np.linalg.cholesky(damped[::-1, ::-1])[::-1, ::-1]
        except np.linalg.LinAlgError:
            damping *= MORE
            continue
        return Factor(np.triu(np.linalg.inv(root)), order, act_order)
    return None


def rounded(rows, found, grid, block, how="minmax"):
    """The weight on the grid. Scales of a block are found when its first column comes; where
    columns come in another order, beforehand."""
    count, order, upper = rows.shape[1], found.order, found.upper
    scale, zero = (each.copy() for each in lowbit.fitted(lowbit.blocked(rows, block), grid, how))
    columns = rows.T[order].astype(np.float64)
    codes = np.empty(rows.shape, np.uint8)
    for begin in range(0, count, LAZY):
        end = min(begin + LAZY, count)
        errors = np.empty((end - begin, len(rows)))
        for place in range(begin, end):
            at = order[place] // block
            if not found.is_sorted and place % block == 0:
                part = columns[place:place + block].T
                scale[:, at], zero[:, at] = lowbit.fitted(part, grid, how)
            code = grid.codes(columns[place], scale[:, at], zero[:, at])
            error = (columns[place] - lowbit.values(code, scale[:, at], zero[:, at])
                     ) / upper[place, place]
            columns[place:end] -= upper[place, place:end, None] * error
            codes[:, order[place]], errors[place - begin] = code, error
        columns[end:] -= upper[begin:end, end:].T @ errors
    return lowbit.Coded(grid, block, codes, scale, zero)
