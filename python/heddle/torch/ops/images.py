"""images: pools and changes of size. SPDX-License-Identifier: Apache-2.0"""

import math

import torch

from .table import aten, builds, rank_of, value_of


def _listed(given, count, default):
    given = list(given) if given else default
    return given * count if len(given) == 1 else given


def _batched(t, x, count):
    """An image with a batch and channels."""
    shape = value_of(x).shape
    return t.value(x) if len(shape) == count + 2 else t.reshape(x, [1, *shape])


def _pooled(t, name, count):
    """The result in the shape that torch says."""
    out = t.out[0] if isinstance(t.out, tuple) else t.out
    return name if out.dim() == count + 2 else t.reshape(name, out.shape)


def max_pool_of(t, image, count, kernel_size, stride, padding, dilation, ceil_mode, outputs=1):
    kernel = _listed(kernel_size, count, None)
    return t.op("MaxPool", image, outputs=outputs, kernel_shape=kernel,
                strides=_listed(stride, count, kernel), pads=_listed(padding, count, [0]) * 2,
                dilations=_listed(dilation, count, [1]), ceil_mode=int(ceil_mode))


@builds(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def max_pool(t, self, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
    count = 2 if t.node.target.overloadpacket is aten.max_pool2d_with_indices else 3
    given = _batched(t, self, count), count, kernel_size, stride, padding, dilation, ceil_mode
    if {user.args[1] for user in t.node.users} <= {0}:
        return _pooled(t, max_pool_of(t, *given), count), None
    found, places = max_pool_of(t, *given, outputs=2)
    plane = t.scalar(1, torch.int64)  # ONNX counts through the batch, torch within a plane
    for size in value_of(self).shape[-count:]:
        plane = t.op("Mul", plane, t.scalar(size, torch.int64))
    return _pooled(t, found, count), _pooled(t, t.op("Mod", places, plane), count)


def average_pool(t, image, count, kernel_size, stride, padding, ceil_mode, count_include_pad):
    kernel = _listed(kernel_size, count, None)
    return t.op("AveragePool", image, kernel_shape=kernel, strides=_listed(stride, count, kernel),
                pads=_listed(padding, count, [0]) * 2, ceil_mode=int(ceil_mode),
                count_include_pad=int(count_include_pad))


@builds(aten.avg_pool2d, aten.avg_pool3d, aten.avg_pool1d)
def avg_pool(t, self, kernel_size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True,
             divisor_override=None):
    count = {aten.avg_pool1d: 1, aten.avg_pool2d: 2, aten.avg_pool3d: 3}[
        t.node.target.overloadpacket]
    if divisor_override is not None and ceil_mode:
        t.refuse("an average pool with ceil_mode and a divisor of its own is not supported")
    found = average_pool(t, _batched(t, self, count), count, kernel_size, stride, padding,
                         ceil_mode, count_include_pad or divisor_override is not None)
    if divisor_override is not None:
        area = math.prod(_listed(kernel_size, count, None))
        found = t.op("Mul", found, t.scalar(area / divisor_override, t.out.dtype))
    return _pooled(t, found, count)


def pooling_matrix(size, out):
    """[out, size]: the mean of the elements that each of `out` windows has."""
    matrix = torch.zeros(out, size, dtype=torch.float64)
    for i in range(out):
        begin, end = i * size // out, -(-(i + 1) * size // out)
        matrix[i, begin:end] = 1 / (end - begin)
    return matrix


@builds(aten._adaptive_avg_pool2d, aten._adaptive_avg_pool3d)
def adaptive_avg_pool(t, self, output_size):
    return mean_of_parts(t, self, output_size)


def mean_of_parts(t, image, output_size):
    """A mean, or products with the windows' matrices."""
    count, dtype = len(output_size), value_of(image).dtype
    if set(output_size) == {1}:
        return t.op("ReduceMean", image, t.ints(*range(-count, 0)), keepdims=1)
    sizes = value_of(image).shape[-count:]
    if not all(isinstance(x, int) for x in (*sizes, *output_size)):
        t.refuse("an adaptive average pool of an image of unknown size is not supported")
    pairs = list(zip(sizes, output_size))
    if all(out and size % out == 0 for size, out in pairs) and rank_of(image) == count + 2:
        steps = [size // out for size, out in pairs]
        return t.op("AveragePool", image, kernel_shape=steps, strides=steps)
    rank, found = rank_of(image), t.value(image)
    for axis, (size, out) in enumerate(pairs, rank - count):
        matrix = t.constant(pooling_matrix(size, out), dtype)
        if axis == rank - 2:
            found = t.op("MatMul", matrix, found)
            continue
        order = [i for i in range(rank) if i != axis] + [axis]
        turned = axis != rank - 1
        found = t.op("Transpose", found, perm=order) if turned else found
        found = t.op("MatMul", found, t.op("Transpose", matrix, perm=[1, 0]))
        found = t.op("Transpose", found, perm=[order.index(i) for i in range(rank)]) \
            if turned else found
    return found


def resized(t, x, rank, sizes, mode, place, scales, rounding=None):
    """An image of these sizes; `scales` of the last axes, if they are given, say where it reads."""
    if scales and all(scale is not None for scale in scales):
        scales = t.constant([1.0] * (rank - len(scales)) + [*scales], torch.float32)
        given = [None, scales]
    else:
        given = [None, None, t.shape(sizes)]
    return t.op("Resize", x, *given, mode=mode, coordinate_transformation_mode=place,
                nearest_mode=rounding)


def scales_of(rank, *scales):
    """The scales of all axes of an image of this rank, or None where one is not given."""
    given = [x for x in scales if x is not None]
    return given if len(given) == rank - 2 else None


@builds(aten.upsample_nearest1d.vec, aten.upsample_nearest2d.vec, aten.upsample_nearest3d.vec)
def upsample_nearest(t, input, output_size, scale_factors):  # noqa: A002
    return resized(t, input, rank_of(input), t.out.shape, "nearest", "asymmetric", scale_factors,
                   "floor")


@builds(aten.upsample_nearest1d.default, aten.upsample_nearest2d.default,
        aten.upsample_nearest3d.default)
def upsample_nearest_to(t, self, output_size, scales=None, scales_d=None, scales_h=None,
                        scales_w=None):
    given = scales_of(rank_of(self), scales_d, scales_h, scales_w, scales)
    return resized(t, self, rank_of(self), t.out.shape, "nearest", "asymmetric", given, "floor")


@builds(aten.upsample_bilinear2d.vec, aten.upsample_linear1d.vec, aten.upsample_trilinear3d.vec)
def upsample_bilinear(t, input, output_size, align_corners, scale_factors):  # noqa: A002
    place = "align_corners" if align_corners else "half_pixel"
    return resized(t, input, rank_of(input), t.out.shape, "linear", place,
                   None if align_corners else scale_factors)


@builds(aten.upsample_bilinear2d.default, aten.upsample_linear1d.default,
        aten.upsample_trilinear3d.default)
def upsample_bilinear_to(t, self, output_size, align_corners, scales=None, scales_d=None,
                         scales_h=None, scales_w=None):
    place = "align_corners" if align_corners else "half_pixel"
    given = scales_of(rank_of(self), scales_d, scales_h, scales_w, scales)
    return resized(t, self, rank_of(self), t.out.shape, "linear", place,
                   None if align_corners else given)


@builds(aten.grid_sampler_2d, aten.grid_sampler_3d)
def grid_sampler(t, input, grid, interpolation_mode, padding_mode, align_corners):  # noqa: A002
    if (interpolation_mode, padding_mode) == (2, 1):  # torch clamps each of the 16, ONNX the place
        t.refuse("grid_sample with bicubic interpolation at a border is not supported")
    return t.op("GridSample", input, grid, align_corners=int(align_corners),
                mode=("linear", "nearest", "cubic")[interpolation_mode],
                padding_mode=("zeros", "border", "reflection")[padding_mode])
