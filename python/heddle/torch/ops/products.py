"""products: matrix products and convolutions. SPDX-License-Identifier: Apache-2.0"""

import itertools

import torch

from .table import aten, builds, rank_of, value_of


@builds(aten.mm, aten.bmm, aten.matmul, aten.mv, aten.dot)
def mm(t, self, mat2=None, other=None, vec=None, tensor=None):
    right = next(x for x in (mat2, other, vec, tensor) if x is not None)
    return t.op("MatMul", self, right)


@builds(aten.addmm, aten.baddbmm, aten.addmv)
def addmm(t, self, mat1=None, mat2=None, batch1=None, batch2=None, mat=None, vec=None, beta=1,
          alpha=1):
    dtype = t.out.dtype
    left = next(x for x in (mat1, batch1, mat) if x is not None)
    right = next(x for x in (mat2, batch2, vec) if x is not None)
    found = t.op("MatMul", left, right)
    if alpha != 1:
        found = t.op("Mul", found, t.cast(alpha, dtype))
    if beta == 0:
        return found
    added = t.value(self) if beta == 1 else t.op("Mul", self, t.cast(beta, dtype))
    return t.op("Add", found, added)


@builds(aten.linear)
def linear(t, input, weight, bias=None):  # noqa: A002: a name of the schema
    turned = t.op("Transpose", weight, perm=[1, 0]) if rank_of(weight) == 2 else t.value(weight)
    found = t.op("MatMul", input, turned)
    return found if bias is None else t.op("Add", found, bias)


@builds(aten.convolution)
def convolve(t, input, weight, bias, stride, padding, dilation, transposed,  # noqa: A002
             output_padding, groups):
    count = rank_of(weight) - 2
    stride, padding, dilation = ([*given] * count if len(given) == 1 else [*given]
                                 for given in (stride, padding, dilation))
    shared = {"strides": stride, "dilations": dilation, "group": groups,
              "kernel_shape": list(value_of(weight).shape[2:])}
    if not all(isinstance(x, int) for x in (*stride, *padding, *dilation, *shared["kernel_shape"])):
        t.refuse("a convolution with a kernel, stride or padding of unknown size is not supported")
    if any(pad < 0 for pad in padding):
        t.refuse("a convolution with a negative padding is not supported")
    if not transposed:
        return t.op("Conv", input, weight, bias, pads=padding * 2, **shared)
    more = [*output_padding] * (count if len(output_padding) == 1 else 1)
    return t.op("ConvTranspose", input, weight, bias, pads=padding * 2,
                output_padding=more if any(more) else None, **shared)


def _groups(t, offs):
    """(Begin, end) of each group of rows, of which `offs` has the ends."""
    count = value_of(offs).shape[0]
    if not isinstance(count, int):
        t.refuse("a product of an unknown number of groups is not supported")
    offs = t.cast(offs, torch.int64)
    ends = [t.op("Slice", offs, t.ints(i), t.ints(i + 1), t.ints(0)) for i in range(count)]
    return list(itertools.pairwise([t.ints(0), *ends]))


def _grouped(t, x, weights, offs, sizes, is_turned=False):
    """Products of groups of rows, each with a matrix of its own; rows of no group are zeros. The
    work grows with the rows, not with the matrices."""
    groups, found = _groups(t, offs), []
    for i, (begin, end) in enumerate(groups):
        matrix = t.op("Gather", weights, t.constant(i, torch.int64), axis=0)
        if is_turned:
            matrix = t.op("Transpose", matrix, perm=[1, 0])
        found.append(t.op("MatMul", t.op("Slice", x, begin, end, t.ints(0)), matrix))
    zeros = t.expand(t.scalar(0, value_of(x).dtype), sizes)
    rest = t.op("Slice", zeros, groups[-1][1], t.shape(sizes[:1]), t.ints(0))
    return t.reshape(t.op("Concat", *found, rest, axis=0), sizes)


def _grouped_outer(t, x, y, offs, sizes):
    """A product of the columns of `x` with those of `y` for each group of rows."""
    found = []
    for begin, end in _groups(t, offs):
        left, right = (t.op("Slice", each, begin, end, t.ints(0)) for each in (x, y))
        found.append(t.op("MatMul", t.op("Transpose", left, perm=[1, 0]), right))
    joined = t.op("Concat", *found, axis=0)
    return t.reshape(joined, sizes)


@builds(aten._grouped_mm)
def grouped_mm(t, self, mat2, offs=None, bias=None, out_dtype=None):
    ranks = rank_of(self), rank_of(mat2)
    if bias is not None or offs is not None and ranks not in ((2, 3), (2, 2)):
        t.refuse("a product of groups of columns, or with a bias, is not supported")
    if offs is None:
        found = t.op("MatMul", self, mat2)
    elif ranks == (2, 3):
        found = _grouped(t, self, mat2, offs, t.out.shape)
    else:
        found = _grouped_outer(t, t.op("Transpose", self, perm=[1, 0]), mat2, offs, t.out.shape)
    return found if out_dtype is None else t.converted(found, t.out.dtype)


@builds("transformers.grouped_mm_fallback.default")
def experts(t, input, weight, offs):  # noqa: A002: a name of the schema
    return _grouped(t, input, weight, offs, t.out.shape)


@builds("transformers.grouped_mm_fallback_backward.default")
def experts_backward(t, input, weight, offs, grad_output):  # noqa: A002
    of_input, of_weight = t.out
    return (_grouped(t, grad_output, weight, offs, of_input.shape, is_turned=True),
            _grouped_outer(t, input, grad_output, offs, of_weight.shape))
