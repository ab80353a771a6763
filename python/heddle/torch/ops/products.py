"""products: matrix products and convolutions. SPDX-License-Identifier: Apache-2.0"""

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
