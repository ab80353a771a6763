"""reducing: reductions over some axes, arg-reductions, sums along an axis, softmax and norms.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from .evaluate import Rejected
from .graph import FLOATS, INTS
from .spec import axis_of, op, some_axes, squash

# The opset since which the axes are an input.
AXES_INPUT = {"ReduceSum": 13}
REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
              "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")


@op(*REDUCTIONS, weight=0.7)
def reduction(g, name):
    integers = () if name in ("ReduceLogSum", "ReduceLogSumExp", "ReduceL2") else ("int32", "int64")
    tensor = g.pick((*FLOATS, *integers))
    if name == "ReduceProd":
        if tensor.size > 64 * max(1, len(tensor.shape)):
            raise Rejected("too many factors")
        tensor = squash(g, tensor, -2, 2)
    if name == "ReduceLogSum":
        tensor = squash(g, tensor, 0.1, 100)
    attributes = {"keepdims": g.between(0, 1)} if g.chance(0.8) else {}
    axes = some_axes(g, tensor.rank) if tensor.rank and g.chance(0.85) else None
    if g.opset >= AXES_INPUT.get(name, 18):
        if axes is None and g.chance(0.15):
            attributes["noop_with_empty_axes"] = 1
        g.emit(name, [tensor, g.ints(axes) if axes else None], **attributes)
    else:
        g.emit(name, [tensor], **attributes, **({"axes": axes} if axes else {}))


@op("ArgMax", "ArgMin", weight=0.6)
def arg_reduction(g, name):
    tensor = g.pick((*FLOATS, *INTS), range(1, 6))
    g.emit(name, [tensor], axis=axis_of(g, tensor.rank), keepdims=g.between(0, 1),
           select_last_index=g.between(0, 1))


@op("CumSum", weight=0.6)
def cumsum(g, name):
    tensor = g.pick(("float32", "float64", "int32", "int64"), range(1, 5))
    axis = g.constant(np.array(axis_of(g, tensor.rank), g.choice([np.int32, np.int64])))
    g.emit(name, [tensor, axis], exclusive=g.between(0, 1), reverse=g.between(0, 1))


@op("Softmax", "LogSoftmax", "Hardmax", weight=0.9)
def softmax(g, name):
    tensor = g.pick(FLOATS, range(1, 6))
    g.emit(name, [tensor], axis=axis_of(g, tensor.rank))


def parameter(g, tensor, axis, low=0.5, high=1.5):
    """A vector of constants, as long as an axis."""
    if not tensor.is_fixed(axis):
        raise Rejected("parameters need a fixed axis")
    values = g.generator.uniform(low, high, tensor.shape[axis])
    return g.constant(np.round(values * 64 / 64, 3).astype(tensor.values[0].dtype))


@op("BatchNormalization", weight=0.8)
def batch_norm(g, name):
    if g.opset < 14:
        raise Rejected("the evaluator trains before opset 14")
    tensor = g.pick(("float32", "float64", "float16"), range(2, 6))
    scale, bias, mean = (parameter(g, tensor, 1, low) for low in (0.5, -1, -1))
    attributes = {"epsilon": 0.01} if g.chance(0.5) else {}
    g.emit(name, [tensor, scale, bias, mean, parameter(g, tensor, 1, 0.3)], **attributes)


@op("InstanceNormalization", weight=0.5)
def instance_norm(g, name):
    tensor = g.pick(("float32", "float64", "float16"), range(3, 6))
    g.emit(name, [tensor, parameter(g, tensor, 1), parameter(g, tensor, 1, -1)], epsilon=0.01)


@op("LayerNormalization", weight=1.0)
def layer_norm(g, name):
    tensor = g.pick(("float32", "float64", "float16"), range(1, 5))
    axis = g.between(0, tensor.rank - 1) if g.chance(0.3) else tensor.rank - 1
    dims = tensor.dims[axis:]
    inputs = [tensor, g.fresh(tensor.dtype, dims, 0.9)]
    if g.chance(0.7):
        inputs.append(g.fresh(tensor.dtype, dims, 0.9))
    g.emit(name, inputs, axis=axis - tensor.rank if g.chance(0.5) else axis, epsilon=0.01)


@op("RMSNormalization", weight=0.5)
def rms_norm(g, name):
    tensor = g.pick(("float32", "float64", "float16"), range(1, 5))
    axis = g.between(0, tensor.rank - 1)
    g.emit(name, [tensor, g.fresh(tensor.dtype, tensor.dims[axis:], 0.9)],
           axis=axis - tensor.rank if g.chance(0.5) else axis, epsilon=0.01)


@op("GroupNormalization", weight=0.5)
def group_norm(g, name):
    if g.opset < 21:
        raise Rejected("scale per channel since opset 21")
    tensor = g.pick(("float32", "float64", "float16"), range(3, 5))
    scale, bias = parameter(g, tensor, 1), parameter(g, tensor, 1, -1)
    groups = g.choice([n for n in range(1, 9) if tensor.shape[1] and tensor.shape[1] % n == 0])
    g.emit(name, [tensor, scale, bias], num_groups=groups, epsilon=0.01)


@op("LpNormalization", weight=0.4)
def lp_norm(g, name):
    tensor = g.pick(("float32", "float64"), range(1, 5))
    g.emit(name, [tensor], axis=axis_of(g, tensor.rank), p=g.between(1, 2))


@op("MeanVarianceNormalization", weight=0.3)
def mean_variance(g, name):
    tensor = g.pick(("float32",), 4)
    attributes = {"axes": sorted(g.rng.sample(range(4), g.between(1, 3)))} if g.chance(0.5) else {}
    g.emit(name, [tensor], **attributes)


@op("LRN", weight=0.4)
def lrn(g, name):
    tensor = g.pick(("float32", "float16"), range(4, 5))
    g.emit(name, [tensor], size=g.choice([1, 3, 5]), alpha=0.2, beta=0.6, bias=1.5)
