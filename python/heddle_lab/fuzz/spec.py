"""spec: the table of op kinds, and the ways to bring values into an op's domain.

A spec is a name, a weight and a function that adds the op to a graph: it picks tensors, draws
legal attributes from their shapes, and emits the nodes. What it cannot know, such as whether a
result is finite, Graph.emit finds out by evaluating.
SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass
from typing import Callable

from .graph import FLOATS


@dataclass(frozen=True)
class Spec:
    name: str
    weight: float
    draw: Callable


SPECS = {}


def op(*names, weight=1.0):
    """Registers a function of (graph, op name) for each of these ops."""

    def register(draw):
        for name in names:
            SPECS[name] = Spec(name, weight, draw)
        return draw

    return register


def squash(g, tensor, low, high):
    """The tensor, moved into [low, high] by smooth ops where it is not."""
    least, greatest = tensor.range()
    if low <= least and greatest <= high:
        return tensor
    if tensor.dtype not in FLOATS:
        return g.emit("Clip", [tensor, g.scalar(max(low, -8), tensor.dtype),
                               g.scalar(min(high, 8), tensor.dtype)])
    if low >= 0:
        smooth = g.emit(g.choice(["Abs", "Sigmoid", "Softplus"]), [tensor])
        if smooth.range()[1] + low > high:
            smooth = g.emit("Sigmoid", [smooth])
            high = min(high, 1e4)
            smooth = g.emit("Mul", [smooth, g.scalar((high - low) * 0.5, tensor.dtype)])
        return g.emit("Add", [smooth, g.scalar(low + 0.125, tensor.dtype)]) if low >= 0 else smooth
    limit = min(-low, high)
    smooth = g.emit(g.choice(["Tanh", "Sin", "Softsign"]), [tensor])
    return smooth if limit >= 1 else g.emit("Mul", [smooth, g.scalar(limit, tensor.dtype)])


def axis_of(g, rank, may_be_negative=True):
    """A random axis, counted from either end."""
    axis = g.between(0, rank - 1)
    return axis - rank if may_be_negative and g.chance(0.4) else axis


def some_axes(g, rank):
    """Some axes, at least one, each counted from either end."""
    axes = sorted(g.rng.sample(range(rank), g.between(1, rank)))
    return [axis - rank if g.chance(0.3) else axis for axis in axes]
