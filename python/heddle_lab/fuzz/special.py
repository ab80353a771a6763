"""special: signals, images, attention and losses: ops with several inputs of related shapes.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from .contracting import image, window
from .evaluate import Rejected
from .spec import axis_of, op, squash


@op("LpPool", weight=0.3)
def lp_pool(g, name):
    space = g.between(1, 2)
    tensor = image(g, ("float32",), space)
    kernel, attributes = window(g, tensor, space)
    if g.opset < 18 or "auto_pad" in attributes:
        raise Rejected("the evaluator wants explicit pads")
    g.emit(name, [tensor], kernel_shape=kernel, p=g.between(1, 3), **attributes)


@op("GridSample", weight=0.5)
def grid_sample(g, name):
    tensor = image(g, ("float32",), 2)
    if g.opset < 20:
        raise Rejected("modes have other names before opset 20")
    grid = g.fresh("float32", [tensor.dims[0], g.fixed_dim(1, 5), g.fixed_dim(1, 5),
                               (2,) * g.cases], 0.3)
    grid = squash(g, grid, -1.3, 1.3)
    g.emit(name, [tensor, grid], mode=g.choice(["linear", "nearest", "cubic"]),
           padding_mode=g.choice(["zeros", "border", "reflection"]),
           align_corners=g.between(0, 1))


@op("Col2Im", weight=0.3)
def col2im(g, name):
    kernel, size = [g.between(1, 3) for _ in range(2)], [g.between(4, 7) for _ in range(2)]
    strides = [g.between(1, 2) for _ in range(2)]
    columns = int(np.prod([(n - k) // s + 1 for n, k, s in zip(size, kernel, strides)]))
    dims = [g.dim(), (g.between(1, 3) * int(np.prod(kernel)),) * g.cases, (columns,) * g.cases]
    tensor = g.fresh("float32", dims, 0.2)
    g.emit(name, [tensor, g.ints(size), g.ints(kernel)], strides=strides)


@op("CenterCropPad", weight=0.3)
def center_crop_pad(g, name):
    tensor = g.pick(("float32", "int64", "uint8"), range(1, 5))
    axes = g.rng.sample(range(tensor.rank), g.between(1, tensor.rank))
    g.emit(name, [tensor, g.ints([g.between(1, 9) for _ in axes])], axes=axes)


@op("Det", weight=0.3)
def det(g, name):
    size = g.fixed_dim(1, 4)
    tensor = g.pick(("float32",), range(2, 5),
                    lambda t: t.dims[-1] == t.dims[-2] and 0 < max(t.dims[-1]) < 6,
                    [*g.dims(g.between(0, 2)), size, size])
    g.emit(name, [squash(g, tensor, -4, 4)])


@op("DFT", weight=0.4)
def dft(g, name):
    if g.opset < 20:
        raise Rejected("the axis is an input since opset 20")
    tensor = squash(g, g.fresh("float32", [g.dim(), g.fixed_dim(2, 9), g.choice(
        [(1,) * g.cases, (2,) * g.cases])], 0.2), -20, 20)
    inverse, onesided = g.between(0, 1), 0
    if not inverse and tensor.shape[-1] == 1:
        onesided = g.between(0, 1)
    length = g.scalar(g.between(2, 12), "int64") if g.chance(0.3) else None
    g.emit(name, [tensor, length, g.scalar(1, "int64") if g.chance(0.6) else None],
           inverse=inverse, onesided=onesided)


@op("HannWindow", "HammingWindow", "BlackmanWindow", weight=0.15)
def window_function(g, name):
    size = g.scalar(g.between(2, 12), "int64") if g.chance(0.6) else g.input(
        "int64", [], [np.array(g.between(2, 12), np.int64)] * g.cases)
    g.emit(name, [size], periodic=g.between(0, 1))


@op("RoiAlign", weight=0.3)
def roi_align(g, name):
    tensor = image(g, ("float32",), 2)
    count = g.between(1, 4)
    corner = g.generator.uniform(0, 3, (count, 2))
    boxes = np.concatenate([corner, corner + g.generator.uniform(1, 5, (count, 2))], 1)
    batch = g.generator.integers(0, min(tensor.dims[0]), count)
    g.emit(name, [tensor, g.constant(np.round(boxes * 16).astype(np.float32) / 16),
                  g.ints(batch.tolist())], mode=g.choice(["avg", "max"]),
           output_height=g.between(1, 4), output_width=g.between(1, 4),
           sampling_ratio=g.between(1, 3), spatial_scale=g.choice([1.0, 0.5]),
           **({"coordinate_transformation_mode": g.choice(["half_pixel", "output_half_pixel"])}
              if g.opset >= 16 else {}))


@op("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", weight=0.3)
def loss(g, name):
    tensor = g.pick(("float32",), range(2, 5), lambda t: t.is_fixed(1) and t.shape[1] > 0
                    and min(min(d) for d in t.dims) > 0)
    dims = [tensor.dims[0], *tensor.dims[2:]]
    arrays = [g.generator.integers(0, tensor.shape[1], [d[case] for d in dims])
              for case in range(g.cases)]
    inputs = [tensor, g.input("int64", dims, arrays)]
    if g.chance(0.4):
        weights = np.round(g.generator.uniform(0.5, 2, tensor.shape[1]), 2).astype(np.float32)
        inputs.append(g.constant(weights))
    is_ignoring = {"ignore_index": g.between(0, 1)} if g.chance(0.3) else {}
    g.emit(name, inputs, reduction=g.choice(["none", "sum", "mean"]), **is_ignoring)


@op("CumProd", weight=0.3)
def cumprod(g, name):
    tensor = squash(g, g.pick(("float32", "float64", "int32", "int64"), range(1, 4)), -1.5, 1.5)
    g.emit(name, [tensor, g.scalar(axis_of(g, tensor.rank), "int64")],
           exclusive=g.between(0, 1), reverse=g.between(0, 1))


@op("AffineGrid", weight=0.2)
def affine_grid(g, name):
    batch = g.between(1, 3)
    theta = g.fresh("float32", [(batch,) * g.cases, (2,) * g.cases, (3,) * g.cases], 0.2)
    size = g.ints([batch, g.between(1, 3), g.between(2, 5), g.between(2, 5)])
    g.emit(name, [theta, size], align_corners=g.between(0, 1))


@op("Attention", weight=0.5)
def attention(g, name):
    if g.opset < 23:
        raise Rejected("since opset 23")
    batch, rows, columns = g.dim(), g.dim(), g.dim()
    heads, shared = g.choice([(1, 1), (2, 2), (4, 2), (4, 1)])
    width, out = g.fixed_dim(1, 8), g.fixed_dim(1, 8)
    dims = [[batch, (heads,) * g.cases, rows, width], [batch, (shared,) * g.cases, columns, width],
            [batch, (shared,) * g.cases, columns, out]]
    inputs = [g.fresh("float32", d, 0.1) for d in dims]
    if g.chance(0.4):
        inputs.append(g.fresh(g.choice(["float32", "bool"]), [rows, columns], 0.3))
    attributes = {"is_causal": 1} if len(inputs) == 3 and g.chance(0.4) else {}
    if g.chance(0.3):
        attributes["scale"] = 0.5
    if g.chance(0.2):
        attributes["softcap"] = 2.0
    g.emit(name, inputs, **attributes)


@op("RotaryEmbedding", weight=0.3)
def rotary(g, name):
    if g.opset < 23:
        raise Rejected("since opset 23")
    batch, heads, rows, half = g.dim(), g.fixed_dim(1, 4), g.dim(), g.between(1, 4)
    tensor = g.fresh("float32", [batch, heads, rows, (2 * half,) * g.cases], 0.1)
    caches = [g.fresh("float32", [batch, rows, (half,) * g.cases], 0.5) for _ in range(2)]
    g.emit(name, [tensor, *caches], interleaved=g.between(0, 1))


@op("QLinearConv", weight=0.4)
def qlinear_conv(g, name):
    tensor = image(g, ("uint8", "int8"), 2)
    kernel, attributes = window(g, tensor, 2)
    channels, outputs, dtype = tensor.shape[1], g.between(1, 6), tensor.dtype
    weights = g.constant(g.elements("int8", [outputs, channels, *kernel]))
    if g.chance(0.5):
        scale = g.constant(np.round(g.generator.uniform(0.01, 0.05, outputs), 4).astype(np.float32))
        zero = g.constant(np.zeros(outputs, np.int8))
    else:
        scale, zero = g.scalar(0.0213, "float32"), g.scalar(0, "int8")
    inputs = [tensor, g.scalar(0.0317, "float32"), g.scalar(g.between(0, 5), dtype), weights,
              scale, zero, g.scalar(0.0771, "float32"), g.scalar(g.between(0, 9), dtype)]
    if g.chance(0.5):
        inputs.append(g.constant(g.elements("int32", [outputs])))
    g.emit(name, inputs, **attributes)
