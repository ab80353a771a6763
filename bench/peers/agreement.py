"""Compares an engine's outputs with those of ONNX Runtime.

Floats: |a - b| <= 1e-3 |b| + 1e-3 max|b|, output by output. Of quantised models, whose
values jump by steps where sums round apart, and further with every layer: the root mean square of
a - b is at most a tenth of that of b. (ONNX Runtime with and without its optimisations differ by
0.052 on our BERT in int8, and so do both from the same network in floats.) Integers are equal.
"""

import math

import numpy as np

RELATIVE, ABSOLUTE = 1e-3, 1e-3
QUANTISED = 0.1
TINY = np.finfo(np.float32).tiny


def distance(actual, expected, quantised=False):
    """How far one output is off, in units of what is allowed: above 1, it differs."""
    if actual.shape != expected.shape:
        return math.inf
    if expected.size == 0:
        return 0.0
    if not np.issubdtype(expected.dtype, np.floating):
        return 0.0 if np.array_equal(actual, expected) else math.inf
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    size = np.abs(expected)
    scale, error = size.max(), np.abs(actual - expected)
    if not (np.isfinite(scale) and np.isfinite(error).all()):
        return 0.0 if np.array_equal(actual, expected, equal_nan=True) else math.inf
    if quantised:
        allowed = QUANTISED * np.sqrt((size ** 2).mean())
        return float(np.sqrt((error ** 2).mean()) / max(allowed, TINY))
    allowed = RELATIVE * size + ABSOLUTE * scale
    return float((error / np.maximum(allowed, TINY)).max())


def farthest(actual, expected, quantised=False):
    """The distance of the worst of all outputs."""
    if len(actual) != len(expected):
        return math.inf
    return max(distance(a, e, quantised) for a, e in zip(actual, expected))
