"""derivative: gradients that torch has no decomposition of, as ONNX's Gradient of the op itself.

The compiler knows the derivatives of its ops, and drops the op when only its gradient is read.
SPDX-License-Identifier: Apache-2.0
"""

from .images import average_pool, max_pool_of, mean_of_parts, resized, scales_of
from .products import convolve
from .table import aten, builds, rank_of, value_of

TRAINING = "ai.onnx.preview.training"


def slopes(t, y, slope, *xs):
    """The gradients with respect to `xs` of a value `y` whose own gradient is `slope`."""
    names = [t.value(x) for x in xs]
    weighed = t.op("Mul", y, slope)
    found = t.op("Gradient", *names, domain=TRAINING, xs=names, y=weighed, outputs=len(names))
    return [found] if len(names) == 1 else found


@builds(aten.convolution_backward)
def convolution_backward(t, grad_output, input, weight, bias_sizes, stride,  # noqa: A002
                         padding, dilation, transposed, output_padding, groups, output_mask):
    found = [None, None, None]
    wanted = [i for i in (0, 1) if output_mask[i]]
    if wanted:
        y = convolve(t, input, weight, None, stride, padding, dilation, transposed, output_padding,
                     groups)
        for i, name in zip(wanted, slopes(t, y, grad_output,
                                          *((input, weight)[i] for i in wanted))):
            found[i] = name
    if output_mask[2]:
        found[2] = t.op("ReduceSum", grad_output,
                        t.ints(0, *range(2, rank_of(grad_output))), keepdims=0)
    return tuple(found)


@builds(aten.max_pool2d_with_indices_backward.default,
        aten.max_pool3d_with_indices_backward.default)
def max_pool_backward(t, grad_output, self, kernel_size, stride, padding, dilation, ceil_mode,
                      indices):
    count = len(kernel_size)
    if rank_of(self) != count + 2:
        t.refuse("the gradient of a pool without a batch is not supported")
    y = max_pool_of(t, self, count, kernel_size, stride, padding, dilation, ceil_mode)
    return slopes(t, y, grad_output, self)[0]


@builds(aten.avg_pool2d_backward.default, aten.avg_pool3d_backward.default)
def avg_pool_backward(t, grad_output, self, kernel_size, stride, padding, ceil_mode,
                      count_include_pad, divisor_override):
    count = len(kernel_size)
    if rank_of(self) != count + 2 or divisor_override is not None:
        t.refuse("the gradient of a pool without a batch, or with a divisor, is not supported")
    y = average_pool(t, self, count, kernel_size, stride, padding, ceil_mode, count_include_pad)
    return slopes(t, y, grad_output, self)[0]


@builds(aten._adaptive_avg_pool2d_backward, aten._adaptive_avg_pool3d_backward)
def adaptive_avg_pool_backward(t, grad_output, self):
    count = 2 if t.node.target.overloadpacket is aten._adaptive_avg_pool2d_backward else 3
    y = mean_of_parts(t, self, value_of(grad_output).shape[-count:])
    return slopes(t, y, grad_output, self)[0]


def _resize_slope(t, grad_output, input_size, mode, place, scales, rounding=None):
    """The slope of a resize, which is linear: it does not matter of what."""
    x = t.expand(t.scalar(0, t.out.dtype), input_size)
    y = resized(t, x, len(input_size), value_of(grad_output).shape, mode, place, scales, rounding)
    return slopes(t, y, grad_output, x)[0]


@builds(aten.upsample_nearest1d_backward.default, aten.upsample_nearest2d_backward.default,
        aten.upsample_nearest3d_backward.default)
def upsample_nearest_backward(t, grad_output, output_size, input_size, scales=None, scales_d=None,
                              scales_h=None, scales_w=None):
    given = scales_of(len(input_size), scales_d, scales_h, scales_w, scales)
    return _resize_slope(t, grad_output, input_size, "nearest", "asymmetric", given, "floor")


@builds(aten._upsample_nearest_exact1d_backward.default,
        aten._upsample_nearest_exact2d_backward.default,
        aten._upsample_nearest_exact3d_backward.default)
def upsample_nearest_exact_backward(t, grad_output, output_size, input_size, scales=None,
                                    scales_d=None, scales_h=None, scales_w=None):
    given = scales_of(len(input_size), scales_d, scales_h, scales_w, scales)
    return _resize_slope(t, grad_output, input_size, "nearest", "half_pixel", given,
                         "round_prefer_ceil")


@builds(aten.upsample_linear1d_backward.default, aten.upsample_bilinear2d_backward.default,
        aten.upsample_trilinear3d_backward.default)
def upsample_bilinear_backward(t, grad_output, output_size, input_size, align_corners, scales=None,
                               scales_d=None, scales_h=None, scales_w=None):
    given = scales_of(len(input_size), scales_d, scales_h, scales_w, scales)
    place = "align_corners" if align_corners else "half_pixel"
    return _resize_slope(t, grad_output, input_size, "linear", place,
                         None if align_corners else given)


@builds(aten.upsample_bicubic2d_backward.default)
def upsample_bicubic_backward(t, grad_output, output_size, input_size, align_corners, scales_h=None,
                              scales_w=None):
    place = "align_corners" if align_corners else "half_pixel"
    given = scales_of(len(input_size), scales_h, scales_w)
    return _resize_slope(t, grad_output, input_size, "cubic", place,
                         None if align_corners else given)
