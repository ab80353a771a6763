"""images: pools and changes of size. SPDX-License-Identifier: Apache-2.0"""

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


@builds(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def max_pool(t, self, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
    count = 2 if t.node.target.overloadpacket is aten.max_pool2d_with_indices else 3
    kernel = _listed(kernel_size, count, None)
    given = {"kernel_shape": kernel, "strides": _listed(stride, count, kernel),
             "pads": _listed(padding, count, [0]) * 2, "dilations": _listed(dilation, count, [1]),
             "ceil_mode": int(ceil_mode)}
    image = _batched(t, self, count)
    if {user.args[1] for user in t.node.users} <= {0}:
        return _pooled(t, t.op("MaxPool", image, **given), count), None
    found, places = t.op("MaxPool", image, outputs=2, **given)
    plane = t.scalar(1, torch.int64)  # ONNX counts through the batch, torch within a plane
    for size in value_of(self).shape[-count:]:
        plane = t.op("Mul", plane, t.scalar(size, torch.int64))
    return _pooled(t, found, count), _pooled(t, t.op("Mod", places, plane), count)


@builds(aten.avg_pool2d, aten.avg_pool3d, aten.avg_pool1d)
def avg_pool(t, self, kernel_size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True,
             divisor_override=None):
    count = {aten.avg_pool1d: 1, aten.avg_pool2d: 2, aten.avg_pool3d: 3}[
        t.node.target.overloadpacket]
    kernel = _listed(kernel_size, count, None)
    if divisor_override is not None:
        count_include_pad = True
        if ceil_mode:
            t.refuse("an average pool with ceil_mode and a divisor of its own is not supported")
    found = t.op("AveragePool", _batched(t, self, count), kernel_shape=kernel,
                 strides=_listed(stride, count, kernel), pads=_listed(padding, count, [0]) * 2,
                 ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad))
    if divisor_override is not None:
        area = 1
        for size in kernel:
            area *= size
        found = t.op("Mul", found, t.scalar(area / divisor_override, t.out.dtype))
    return _pooled(t, found, count)


def pooling_matrix(size, out):
    """[out, size]: the mean of the elements that each of `out` windows has."""
    matrix = torch.zeros(out, size, dtype=torch.float64)
    for i in range(out):
        begin, end = i * size // out, -(-(i + 1) * size // out)
        matrix[i, begin:end] = 1 / (end - begin)
    return matrix


@builds(aten._adaptive_avg_pool2d)
def adaptive_avg_pool2d(t, self, output_size):
    """A mean, a pool where windows are alike, or products with the windows' matrices."""
    if list(output_size) == [1, 1]:
        return t.op("ReduceMean", self, t.ints(-2, -1), keepdims=1)
    height, width = value_of(self).shape[-2:]
    if not all(isinstance(x, int) for x in (height, width, *output_size)):
        t.refuse("adaptive_avg_pool2d of an image of unknown size is not supported")
    if height % output_size[0] == 0 and width % output_size[1] == 0:
        steps = [height // output_size[0], width // output_size[1]]
        return _pooled(t, t.op("AveragePool", _batched(t, self, 2), kernel_shape=steps,
                               strides=steps), 2)
    rows = t.constant(pooling_matrix(height, output_size[0]), t.out.dtype)
    columns = t.constant(pooling_matrix(width, output_size[1]).T, t.out.dtype)
    return t.op("MatMul", t.op("MatMul", rows, self), columns)


def _resized(t, x, mode, place, scales, count, rounding=None):
    rank = rank_of(x)
    if scales and all(scale is not None for scale in scales):
        return t.op("Resize", x, None, t.constant([1.0] * (rank - count) + [*scales],
                                                  torch.float32),
                    mode=mode, coordinate_transformation_mode=place, nearest_mode=rounding)
    return t.op("Resize", x, None, None, t.shape(t.out.shape), mode=mode,
                coordinate_transformation_mode=place, nearest_mode=rounding)


@builds(aten.upsample_nearest1d.vec, aten.upsample_nearest2d.vec, aten.upsample_nearest3d.vec)
def upsample_nearest(t, input, output_size, scale_factors):  # noqa: A002
    return _resized(t, input, "nearest", "asymmetric", scale_factors, rank_of(input) - 2, "floor")


@builds(aten.upsample_nearest1d.default, aten.upsample_nearest2d.default,
        aten.upsample_nearest3d.default)
def upsample_nearest_to(t, self, output_size, scales=None, scales_d=None, scales_h=None,
                        scales_w=None):
    given = [x for x in (scales_d, scales_h, scales_w, scales) if x is not None]
    count = rank_of(self) - 2
    return _resized(t, self, "nearest", "asymmetric", given if len(given) == count else None, count,
                    "floor")


@builds(aten.upsample_bilinear2d.vec, aten.upsample_linear1d.vec)
def upsample_bilinear(t, input, output_size, align_corners, scale_factors):  # noqa: A002
    place = "align_corners" if align_corners else "half_pixel"
    return _resized(t, input, "linear", place, None if align_corners else scale_factors,
                    rank_of(input) - 2)


@builds(aten.upsample_bilinear2d.default)
def upsample_bilinear_to(t, self, output_size, align_corners, scales_h=None, scales_w=None):
    place = "align_corners" if align_corners else "half_pixel"
    given = None if align_corners or scales_h is None or scales_w is None else [scales_h, scales_w]
    return _resized(t, self, "linear", place, given, 2)
