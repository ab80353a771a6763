"""reduction: sums, means, extremes, orders, normalisations. SPDX-License-Identifier: Apache-2.0"""

import torch

from .table import aten, axes_of, axis_of, builds, prims, rank_of, value_of


def reduced(t, kind, x, dim, keepdim, dtype):
    """A reduction of ONNX, computed in `dtype`. A scalar is what it is."""
    given = t.cast(x, dtype)
    if rank_of(x) == 0:
        return given
    return t.op(kind, given, t.ints(*axes_of(dim, rank_of(x))), keepdims=int(keepdim))


@builds(aten.sum, aten.sum.dim_IntList)
def sum(t, self, dim=None, keepdim=False, dtype=None):  # noqa: A001: torch's own word
    return reduced(t, "ReduceSum", self, dim, keepdim, t.out.dtype)


@builds(prims.sum)
def prims_sum(t, inp, dims, output_dtype=None):
    return reduced(t, "ReduceSum", inp, dims, False, t.out.dtype)


@builds(prims.prod)
def prims_prod(t, inp, dims, output_dtype=None):
    return reduced(t, "ReduceProd", inp, dims, False, t.out.dtype)


@builds(aten.mean, aten.mean.dim)
def mean(t, self, dim=None, keepdim=False, dtype=None):
    return reduced(t, "ReduceMean", self, dim, keepdim, t.out.dtype)


@builds(aten.prod.default, aten.prod.dim_int)
def prod(t, self, dim=None, keepdim=False, dtype=None):
    return reduced(t, "ReduceProd", self, dim, keepdim, t.out.dtype)


@builds(aten.amax, aten.amin)
def amax(t, self, dim=(), keepdim=False):
    kind = "ReduceMax" if t.node.target.overloadpacket is aten.amax else "ReduceMin"
    return reduced(t, kind, self, list(dim), keepdim, t.out.dtype)


@builds(aten.max.default, aten.min.default)
def max_all(t, self):
    kind = "ReduceMax" if t.node.target.overloadpacket is aten.max else "ReduceMin"
    return reduced(t, kind, self, None, False, t.out.dtype)


@builds(aten.any, aten.all)
def any(t, self, dim=None, keepdim=False):  # noqa: A001: torch's own word
    kind = "ReduceMax" if t.node.target.overloadpacket is aten.any else "ReduceMin"
    truths = t.cast(self, torch.bool)
    if rank_of(self) == 0:
        return t.converted(truths, t.out.dtype)
    whole = t.converted(truths, torch.int32)
    found = t.op(kind, whole, t.ints(*axes_of(dim, rank_of(self))), keepdims=int(keepdim))
    return t.converted(found, t.out.dtype)


@builds(aten.argmax, aten.argmin)
def argmax(t, self, dim=None, keepdim=False):
    kind = "ArgMax" if t.node.target.overloadpacket is aten.argmax else "ArgMin"
    if rank_of(self) == 0:
        return t.constant(0, torch.int64)
    if dim is None:
        found = t.op(kind, t.reshape(self, [-1]), axis=0, keepdims=0)
        return t.reshape(found, t.out.shape)
    return t.op(kind, self, axis=axis_of(dim, rank_of(self)), keepdims=int(keepdim))


@builds(aten.max.dim, aten.min.dim)
def max_dim(t, self, dim, keepdim=False):
    if rank_of(self) == 0:
        return t.value(self), t.constant(0, torch.int64)
    is_max, axis = t.node.target is aten.max.dim, axis_of(dim, rank_of(self))
    if value_of(self).dtype == torch.bool:
        whole = t.cast(self, torch.uint8)
        best = t.op("ReduceMax" if is_max else "ReduceMin", whole, t.ints(axis),
                    keepdims=int(keepdim))
        return (t.converted(best, torch.bool),
                t.op("ArgMax" if is_max else "ArgMin", whole, axis=axis, keepdims=int(keepdim)))
    return (t.op("ReduceMax" if is_max else "ReduceMin", self, t.ints(axis), keepdims=int(keepdim)),
            t.op("ArgMax" if is_max else "ArgMin", self, axis=axis, keepdims=int(keepdim)))


def spread(t, x, dim, correction, keepdim):
    """Variance, and the mean with all dimensions kept."""
    dtype, rank = value_of(x).dtype, rank_of(x)
    axes = axes_of(dim, rank)
    correction = 1 if correction is None else correction
    middle = t.op("ReduceMean", x, t.ints(*axes), keepdims=1) if rank else t.value(x)
    apart = t.op("Sub", x, middle)
    square = t.op("Mul", apart, apart)
    if correction == 0 and rank:
        return t.op("ReduceMean", square, t.ints(*axes), keepdims=int(keepdim)), middle
    total = t.op("ReduceSum", square, t.ints(*axes), keepdims=int(keepdim)) if rank else square
    count = t.scalar(1, dtype)
    for axis in axes:
        count = t.op("Mul", count, t.scalar(value_of(x).shape[axis], dtype))
    count = t.op("Max", t.op("Sub", count, t.scalar(correction, dtype)), t.scalar(0, dtype))
    return t.op("Div", total, count), middle


@builds(aten.var.correction)
def var(t, self, dim=None, correction=None, keepdim=False):
    return spread(t, self, dim, correction, keepdim)[0]


@builds(prims.var)
def prims_var(t, inp, dims, correction=1, output_dtype=None):
    return spread(t, inp, dims, correction, False)[0]


@builds(aten.var_mean.correction)
def var_mean(t, self, dim=None, correction=None, keepdim=False):
    found, middle = spread(t, self, dim, correction, keepdim)
    return found, middle if keepdim else t.reshape(middle, t.out[1].shape)


@builds(aten.cumsum)
def cumsum(t, self, dim, dtype=None):
    if rank_of(self) == 0:
        return t.cast(self, t.out.dtype)
    return t.op("CumSum", t.cast(self, t.out.dtype), t.scalar(axis_of(dim, rank_of(self)),
                                                              torch.int64))


@builds(aten.histc)
def histc(t, self, bins=100, min=0, max=0):  # noqa: A002: names of the schema
    """Counts of what lies in each of `bins` equal parts; the last has its end too."""
    dtype, flat = t.out.dtype, t.reshape(self, [-1])
    if min == max:
        t.refuse("a histogram between the least and the largest element is not supported")
    low, high = t.scalar(min, dtype), t.scalar(max, dtype)
    share = t.op("Mul", t.op("Sub", flat, low), t.scalar(bins, dtype))
    share = t.op("Div", share, t.op("Sub", high, low))
    is_within = t.op("And", t.op("GreaterOrEqual", flat, low), t.op("LessOrEqual", flat, high))
    share = t.op("Where", is_within, share, t.scalar(0, dtype))
    place = t.op("Min", t.converted(share, torch.int64), t.scalar(bins - 1, torch.int64))
    return t.op("ScatterElements", t.constant(torch.zeros(bins, dtype=dtype)), place,
                t.converted(is_within, dtype), axis=0, reduction="add")


def _most(t, x, count, axis, largest):
    """TopK, of integers where ONNX has none of the type."""
    dtype = value_of(x).dtype
    is_bool = dtype == torch.bool
    values, places = t.op("TopK", t.cast(x, torch.uint8) if is_bool else x, t.shape([count]),
                          axis=axis, largest=int(largest), outputs=2)
    return (t.converted(values, dtype) if is_bool else values), places


@builds(aten.topk.default)
def topk(t, self, k, dim=-1, largest=True, sorted=True):  # noqa: A002: a name of the schema
    if rank_of(self) == 0:
        return t.value(self), t.constant(0, torch.int64)
    return _most(t, self, k, axis_of(dim, rank_of(self)), largest)


@builds(aten.sort.default, aten.sort.stable)
def sort(t, self, dim=-1, descending=False, stable=None):
    if rank_of(self) == 0:
        return t.value(self), t.constant(0, torch.int64)
    axis = axis_of(dim, rank_of(self))
    return _most(t, self, value_of(self).shape[axis], axis, descending)


@builds(aten._softmax, aten._log_softmax)
def softmax(t, self, dim, half_to_float=False):
    kind = "Softmax" if t.node.target.overloadpacket is aten._softmax else "LogSoftmax"
    if rank_of(self) == 0:
        return t.reshape(t.op(kind, t.reshape(t.cast(self, t.out.dtype), [1]), axis=0), [])
    return t.op(kind, t.cast(self, t.out.dtype), axis=axis_of(dim, rank_of(self)))


@builds(aten.native_layer_norm)
def native_layer_norm(t, input, normalized_shape, weight, bias, eps):  # noqa: A002
    count = len(normalized_shape)
    if weight is None:
        weight = t.expand(t.scalar(1, value_of(input).dtype), normalized_shape)
    is_alone = {user.args[1] for user in t.node.users} <= {0}
    found = t.op("LayerNormalization", input, weight, bias, axis=-count, epsilon=float(eps),
                 outputs=1 if is_alone else 3)
    return (found, None, None) if is_alone else tuple(found)


@builds(aten._native_batch_norm_legit_no_training)
def batch_norm(t, input, weight, bias, running_mean, running_var, momentum, eps):  # noqa: A002
    dtype, channels = value_of(running_mean).dtype, value_of(running_mean).shape
    weight = weight if weight is not None else t.expand(t.scalar(1, dtype), channels)
    bias = bias if bias is not None else t.expand(t.scalar(0, dtype), channels)
    found = t.op("BatchNormalization", input, weight, bias, running_mean, running_var,
                 epsilon=float(eps))
    empty = t.constant(torch.zeros(0))
    return found, empty, empty
