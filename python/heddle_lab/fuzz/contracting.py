"""contracting: matrix products, einsum, convolutions, pooling, recurrent and quantised ops.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from .evaluate import Rejected
from .graph import dtype_of
from .spec import op, squash

REALS = ("float32", "float64", "float16")


def weights(g, dtype, shape, scale=0.5):
    """Constants that are small where there are many."""
    array = np.round(g.generator.normal(0, scale, shape) * 64) / 64
    return g.constant(array.astype(dtype_of(dtype)))


def operand(g, dtype, dims):
    """A tensor with these sizes: one of the model's, a constant, or an input."""
    found = [t for t in g.tensors.values() if t.dtype == dtype and t.dims == dims]
    return g.choice(found) if found and g.chance(0.6) else g.fresh(dtype, dims)


def triangle(g, tensor):
    """The tensor with 0 on one side of a diagonal."""
    shift = g.scalar(g.between(-3, 3), "int64") if g.chance(0.5) else None
    return g.emit("Trilu", [tensor, shift], upper=g.between(0, 1))


@op("MatMul", weight=2.5)
def matmul(g, name):
    tensor = squash(g, g.pick((*REALS, "bfloat16"), range(1, 5)), -20, 20)
    if tensor.rank >= 2 and tensor.dtype != "bfloat16" and g.opset >= 14 and g.chance(0.15):
        tensor = triangle(g, tensor)
    inner, columns = tensor.dims[-1], g.dim()
    kind = g.rng.random()
    if kind < 0.15:
        dims = [inner]
    elif kind < 0.6:
        dims = [inner, columns]
    else:
        batch = [d if g.chance(0.7) else (1,) * g.cases for d in tensor.dims[:-2]]
        dims = [*batch, inner, columns]
    if g.chance(0.15) and tensor.rank >= 2:
        g.emit(name, [operand(g, tensor.dtype, [*dims[:-2], g.dim(), tensor.dims[-2]]), tensor])
        return
    g.emit(name, [tensor, operand(g, tensor.dtype, dims)])


@op("Gemm", weight=1.5)
def gemm(g, name):
    tensor = squash(g, g.pick(REALS, 2), -20, 20)
    is_left_turned, is_right_turned = g.between(0, 1), g.between(0, 1)
    inner, rows = tensor.dims[::-1] if not is_left_turned else tensor.dims
    columns = g.dim()
    right = operand(g, tensor.dtype, [columns, inner] if is_right_turned else [inner, columns])
    inputs = [tensor, right]
    if g.chance(0.7):
        one = (1,) * g.cases
        dims = g.choice([[columns], [rows, columns], [one, columns], [rows, one], [one], []])
        inputs.append(g.fresh(tensor.dtype, dims))
    attributes = {"alpha": 0.5, "beta": 2.0} if g.chance(0.4) else {}
    g.emit(name, inputs, transA=is_left_turned, transB=is_right_turned, **attributes)


@op("Einsum", weight=0.8)
def einsum(g, name):
    tensor = squash(g, g.pick(("float32", "float64"), range(1, 4)), -20, 20)
    letters = dict(zip("abcd", tensor.dims))
    left = "".join(letters)
    if g.chance(0.25):
        out = "".join(g.rng.sample(left, g.between(0, len(left))))
        g.emit(name, [tensor], equation=f"{left}->{out}")
        return
    shared = g.rng.sample(left, g.between(0, len(left)))
    letters["x"] = g.dim()
    right = [*shared, *(["x"] if g.chance(0.7) or not shared else [])]
    g.rng.shuffle(right)
    other = operand(g, tensor.dtype, [letters[c] for c in right])
    free = sorted(set(left) | set(right))
    out = g.rng.sample(free, g.between(0, min(4, len(free))))
    text = f"{left},{''.join(right)}"
    g.emit(name, [tensor, other], equation=text + ("->" + "".join(out) if g.chance(0.85) else ""))


def image(g, dtypes, space):
    """A tensor [n, c, spatial...] whose channels are fixed."""
    dims = [g.dim(), g.fixed_dim(1, 8), *(g.choice([g.fixed_dim(3, 16), g.dim()])
                                          for _ in range(space))]
    return g.pick(dtypes, space + 2, lambda t: t.is_fixed(1) and all(min(d) for d in t.dims), dims)


def window(g, tensor, space, most=4):
    """Attributes of a window that fits: kernel, strides, dilations, pads."""
    kernel, strides, dilations, pads = [], [], [], []
    for axis in range(space):
        size = min(tensor.dims[2 + axis])
        dilation = g.choice([1, 1, 1, 2])
        extent = g.between(1, most)
        pad = [g.between(0, min(2, extent - 1)) for _ in range(2)] if g.chance(0.6) else [0, 0]
        while extent > 1 and (extent - 1) * dilation + 1 > size + sum(pad):
            extent -= 1
        pad = [min(p, extent - 1) for p in pad]
        # Nor may a window lie in the padding alone, one end on either side of the image.
        if (extent - 1) * dilation + 1 > size + sum(pad) or dilation > size:
            dilation = 1
        kernel, dilations = [*kernel, extent], [*dilations, dilation]
        strides, pads = [*strides, g.choice([1, 1, 2, 3])], [*pads, pad]
    attributes = {}
    if any(s != 1 for s in strides):
        attributes["strides"] = strides
    if any(d != 1 for d in dilations):
        attributes["dilations"] = dilations
    is_overlapping = all(s <= k for s, k in zip(strides, kernel))  # else SAME may cut the image
    if g.chance(0.12) and all(d == 1 for d in dilations) and is_overlapping:
        is_inside = all(k <= min(d) for k, d in zip(kernel, tensor.dims[2:]))
        attributes["auto_pad"] = g.choice(["SAME_UPPER", "SAME_LOWER", "VALID"][:2 + is_inside])
    elif any(map(any, pads)):
        attributes["pads"] = [p[0] for p in pads] + [p[1] for p in pads]
    return kernel, attributes


@op("Conv", weight=2.5)
def conv(g, name):
    space = g.choice([1, 2, 2, 2, 2, 3])
    tensor = squash(g, image(g, REALS, space), -20, 20)
    channels = tensor.shape[1]
    kernel, attributes = window(g, tensor, space)
    groups = g.choice([1, 1, 1, *(n for n in range(1, channels + 1) if channels % n == 0)])
    outputs = groups * g.choice([1, 2, 3, 5] if groups > 1 else [1, 3, 4, 8, 13])
    if groups > 1 or g.chance(0.1):
        attributes["group"] = groups
    if g.chance(0.7):
        attributes["kernel_shape"] = kernel
    inputs = [tensor, weights(g, tensor.dtype, [outputs, channels // groups, *kernel])]
    if g.chance(0.6):
        inputs.append(weights(g, tensor.dtype, [outputs]))
    result = g.emit(name, inputs, **attributes)
    if g.chance(0.4):
        g.emit(g.choice(["Relu", "Sigmoid", "LeakyRelu", "HardSwish"]), [result])


@op("ConvTranspose", weight=1.0)
def conv_transpose(g, name):
    space = g.choice([1, 2, 2, 2, 3])
    tensor = squash(g, image(g, REALS, space), -20, 20)
    channels = tensor.shape[1]
    kernel, attributes = window(g, tensor, space, 3)
    attributes.pop("auto_pad", None)
    groups = g.choice([1, 1, *(n for n in range(1, channels + 1) if channels % n == 0)])
    outputs = g.choice([1, 2, 3, 4])
    attributes.update({"group": groups} if groups > 1 else {})
    strides = attributes.get("strides", [1] * space)
    if g.chance(0.3):
        attributes["output_padding"] = [g.between(0, s - 1) for s in strides]
    inputs = [tensor, weights(g, tensor.dtype, [channels, outputs, *kernel])]
    if g.chance(0.5):
        inputs.append(weights(g, tensor.dtype, [outputs * groups]))
    g.emit(name, inputs, kernel_shape=kernel, **attributes)


@op("MaxPool", "AveragePool", weight=1.0)
def pool(g, name):
    space = g.choice([1, 2, 2, 2, 3])
    tensor = image(g, REALS, space)
    kernel, attributes = window(g, tensor, space)
    if name == "AveragePool":
        if g.opset < 19:
            attributes.pop("dilations", None)
        attributes["count_include_pad"] = g.between(0, 1)
    if g.chance(0.3) and "auto_pad" not in attributes:
        attributes["ceil_mode"] = 1
    g.emit(name, [tensor], kernel_shape=kernel, **attributes)


@op("GlobalAveragePool", "GlobalMaxPool", weight=0.4)
def global_pool(g, name):
    g.emit(name, [image(g, REALS, g.between(1, 3))])


@op("LSTM", "GRU", "RNN", weight=0.5)
def recurrent(g, name):
    dims = [g.fixed_dim(1, 5), g.choice([g.fixed_dim(1, 3), g.dim()]), g.fixed_dim(1, 6)]
    tensor = g.pick(("float32",), 3, lambda t: t.is_fixed(2) and max(t.dims[0]) <= 6
                    and t.shape[2] <= 16 and t.size > 0, dims)
    tensor = squash(g, tensor, -3, 3)
    hidden, gates = g.between(1, 6), {"LSTM": 4, "GRU": 3, "RNN": 1}[name]
    direction = g.choice(["forward", "reverse", "bidirectional"])
    count = 2 if direction == "bidirectional" else 1
    inputs = [tensor, weights(g, "float32", [count, gates * hidden, tensor.shape[2]]),
              weights(g, "float32", [count, gates * hidden, hidden])]
    attributes = {"hidden_size": hidden, "direction": direction}
    bias = weights(g, "float32", [count, 2 * gates * hidden]) if g.chance(0.6) else None
    initial = [None] * (2 if name == "LSTM" else 1)
    if g.chance(0.5):
        state = [(count,) * g.cases, tensor.dims[1], (hidden,) * g.cases]
        initial = [g.fresh("float32", state) for _ in initial]
    if name == "GRU":
        attributes["linear_before_reset"] = g.between(0, 1)
    outputs = g.between(1, 3 if name == "LSTM" else 2)
    g.emit(name, [*inputs, bias, None, *initial], outputs=outputs, **attributes)


@op("MatMulInteger", weight=0.5)
def matmul_integer(g, name):
    tensor = g.pick(("uint8", "int8"), range(2, 4))
    dtype = g.choice(["uint8", "int8"])
    other = operand(g, dtype, [tensor.dims[-1], g.dim()])
    zeros = [g.scalar(g.between(0, 5), t.dtype) if g.chance(0.6) else None
             for t in (tensor, other)]
    g.emit(name, [tensor, other, *zeros])


@op("ConvInteger", weight=0.4)
def conv_integer(g, name):
    tensor = image(g, ("uint8",), 2)
    kernel, attributes = window(g, tensor, 2)
    channels = tensor.shape[1]
    dtype = g.choice(["uint8", "int8"])
    other = g.constant(g.elements(dtype, [g.between(1, 6), channels, *kernel]))
    zeros = [g.scalar(g.between(0, 5), t.dtype) if g.chance(0.6) else None
             for t in (tensor, other)]
    g.emit(name, [tensor, other, *zeros], **attributes)


@op("QLinearMatMul", weight=0.3)
def qlinear_matmul(g, name):
    tensor = g.pick(("uint8", "int8"), range(2, 4))
    dtype = tensor.dtype
    other = operand(g, dtype, [tensor.dims[-1], g.dim()])

    def scale(value):
        return [g.scalar(value, "float32"), g.scalar(g.between(0, 5), dtype)]

    if tensor.dims[-1] != other.dims[-2]:
        raise Rejected("the inner sizes differ")
    g.emit(name, [tensor, *scale(0.03), other, *scale(0.051), *scale(0.217)])


