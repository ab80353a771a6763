"""elementwise: arithmetic, comparisons, casts and activations, with broadcasting.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from .evaluate import Rejected
from .graph import FLOATS, INTS, number_of
from .spec import op, squash

UNIT, LIMIT = (-0.9, 0.9), (-4.0, 4.0)

# op -> the domain in which it is finite and tame
DOMAINS = {
    "Acos": UNIT, "Asin": UNIT, "Atanh": UNIT, "Acosh": (1.0, 20.0), "Log": (0.1, 100.0),
    "Sqrt": (0.05, 1e4), "Exp": LIMIT, "Sinh": LIMIT, "Cosh": LIMIT, "Tan": (-1.2, 1.2),
    "Reciprocal": (0.2, 1e3), "Erf": LIMIT, "Sin": (-50.0, 50.0), "Cos": (-50.0, 50.0),
}


def plain(dtypes=None, rank=None, **more):
    """Draws an op of one tensor of these dtypes."""
    return lambda g, name: g.emit(name, [g.pick(dtypes, rank)], **more)


def pair(dtypes):
    """Draws an op of a tensor of these dtypes and of one that broadcasts with it."""
    def draw(g, name):
        tensor = g.pick(dtypes)
        g.emit(name, [tensor, g.partner(tensor)])
    return draw


@op(*DOMAINS, "Atan", "Asinh", weight=0.5)
def unary_in_domain(g, name):
    tensor = g.pick(FLOATS)
    if name in DOMAINS:
        tensor = squash(g, tensor, *DOMAINS[name])
    g.emit(name, [tensor])


op("Abs", "Neg", "Sign", weight=0.8)(plain((*FLOATS, "int32", "int64", "int8", "int16")))
op("Ceil", "Floor", "Round", weight=0.6)(plain(FLOATS))
op("Identity", weight=0.4)(plain())
op("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Selu", "HardSwish", "Mish",
   weight=0.8)(plain(FLOATS))


ALPHA = {"LeakyRelu": (0.01, 0.5), "Elu": (0.5, 2.0), "Celu": (0.5, 2.0),
         "ThresholdedRelu": (-0.5, 1.5), "Swish": (0.5, 2.0)}


@op(*ALPHA, weight=0.6)
def activation_alpha(g, name):
    tensor = g.pick(("float32",) if name == "Celu" else FLOATS)
    alpha = {"alpha": round(g.rng.uniform(*ALPHA[name]), 3)} if g.chance(0.7) else {}
    g.emit(name, [tensor], **alpha)


@op("HardSigmoid", weight=0.5)
def hard_sigmoid(g, name):
    attributes = {"alpha": 0.3, "beta": 0.4} if g.chance(0.5) else {}
    g.emit(name, [g.pick(FLOATS)], **attributes)


@op("Gelu", weight=0.6)
def gelu(g, name):
    g.emit(name, [g.pick(FLOATS)], approximate=g.choice(["none", "tanh"]))


@op("Shrink", weight=0.4)
def shrink(g, name):
    g.emit(name, [g.pick(FLOATS)], bias=g.choice([0.0, 0.25]), lambd=g.choice([0.5, 1.0]))


@op("PRelu", weight=0.5)
def prelu(g, name):
    tensor = g.pick(FLOATS, range(1, 6))
    slope = g.partner(tensor)
    if slope.rank > tensor.rank:
        raise Rejected("the slope broadcasts one way only")
    g.emit(name, [tensor, slope])


@op("Add", "Sub", "Mul", weight=2.0)
def arithmetic(g, name):
    tensor = g.pick((*FLOATS, *INTS))
    other = g.partner(tensor)
    inputs = [tensor, other] if g.chance(0.7) else [other, tensor]
    if name == "Mul" and tensor.dtype in FLOATS:
        inputs = [squash(g, t, -30, 30) for t in inputs]
    g.emit(name, inputs)


@op("Div", weight=1.0)
def divide(g, name):
    tensor = g.pick((*FLOATS, "int32", "int64", "uint8", "int8"))
    other = g.partner(tensor)
    if tensor.dtype in FLOATS:
        other = squash(g, other, 0.25, 100)
    else:  # integers: no division by zero, and none of the least number
        other = g.emit("Max", [other, g.scalar(g.between(1, 3), other.dtype)])
    g.emit(name, [tensor, other])


@op("Pow", weight=0.7)
def power(g, name):
    tensor = g.pick(("float32", "float64", "float16", "int32", "int64"))
    if tensor.dtype in FLOATS:
        if g.chance(0.5):
            exponent = g.scalar(g.choice([2, 3, 0.5, -1, 0, 1, 2.5, -0.5, 4]), tensor.dtype)
            if g.chance(0.3):
                exponent = g.scalar(g.choice([2, 3]), g.choice(["int64", "int32", "float32"]))
        else:
            exponent = squash(g, g.partner(tensor), -2, 2)
        tensor = squash(g, tensor, 0.25, 6)
    else:
        tensor = squash(g, tensor, 0, 6)
        exponent = g.scalar(g.choice([0, 1, 2, 3]), tensor.dtype)
    g.emit(name, [tensor, exponent])


@op("Mod", weight=0.8)
def modulo(g, name):
    is_float = g.chance(0.35)
    tensor = g.pick(FLOATS if is_float else INTS)
    other = g.partner(tensor)
    if is_float:
        other = squash(g, other, 0.5, 50)
        g.emit(name, [tensor, other], fmod=1)
        return
    other = g.emit("Max", [other, g.scalar(g.between(2, 4), other.dtype)])
    if g.chance(0.3) and not other.dtype.startswith("u"):
        other = g.emit("Neg", [other])
    g.emit(name, [tensor, other], fmod=g.between(0, 1))


@op("Max", "Min", "Sum", "Mean", weight=0.8)
def variadic(g, name):
    allowed = FLOATS if name in ("Sum", "Mean") else (*FLOATS, *INTS)
    tensor = g.pick(allowed)
    others = [g.partner(tensor) for _ in range(g.choice([0, 1, 1, 1, 2, 3]))]
    g.emit(name, [tensor, *others])


op("Equal", weight=0.6)(pair((*FLOATS, *INTS, "bool")))
op("Less", "Greater", "LessOrEqual", "GreaterOrEqual", weight=0.6)(pair((*FLOATS, *INTS)))


op("And", "Or", "Xor", weight=0.4)(pair(("bool",)))
op("Not", weight=0.4)(plain(("bool",)))
op("BitwiseAnd", "BitwiseOr", "BitwiseXor", weight=0.4)(pair(INTS))
op("BitwiseNot", weight=0.3)(plain(INTS))


@op("BitShift", weight=0.3)
def shift(g, name):
    tensor = g.pick(("uint8", "uint16", "uint32", "uint64"))
    other = g.emit("Min", [g.partner(tensor), g.scalar(3, tensor.dtype)])
    g.emit(name, [tensor, other], direction=g.choice(["LEFT", "RIGHT"]))


@op("IsNaN", "IsInf", weight=0.3)
def classify(g, name):
    allowed = FLOATS if name == "IsNaN" or g.opset >= 20 else ("float32", "float64")
    tensor = g.pick(allowed)
    attributes = {}
    if name == "IsInf" and g.chance(0.4):
        attributes = {"detect_negative": g.between(0, 1), "detect_positive": g.between(0, 1)}
    g.emit(name, [tensor], **attributes)


def side(g, tensor):
    """A mask for the last two dimensions: one side of a diagonal, as causal masks are."""
    def numbers(axis):
        size = g.emit("Shape", [tensor], start=axis, end=axis + 1)
        count = g.emit("Squeeze", [size, g.ints([0])])
        return g.emit("Range", [g.scalar(0, "int64"), count, g.scalar(1, "int64")])
    rows, columns = numbers(tensor.rank - 2), numbers(tensor.rank - 1)
    if g.chance(0.5):
        rows = g.emit("Add", [rows, g.scalar(g.between(-3, 3), "int64")])
    rows = g.emit("Unsqueeze", [rows, g.ints([1])])
    comparison = g.choice(["Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
    return g.emit(comparison, [columns, rows] if g.chance(0.5) else [rows, columns])


@op("Where", weight=1.2)
def where(g, name):
    if g.opset >= 15 and g.chance(0.2):
        tensor = g.pick(rank=range(2, 5))
        inputs = [tensor, g.partner(tensor, tensor.dtype) if g.chance(0.5) else
                  g.scalar(g.choice([0, 1]), tensor.dtype)]
        g.emit(name, [side(g, tensor), *(inputs if g.chance(0.5) else inputs[::-1])])
        return
    condition = g.pick(("bool",))
    dtype = g.dtype()
    g.emit(name, [condition, g.partner(condition, dtype), g.partner(condition, dtype)])


@op("Clip", weight=0.8)
def clip(g, name):
    tensor = g.pick((*FLOATS, *INTS))
    low, high = sorted([g.between(-3, 3), g.between(-3, 6)])
    if tensor.dtype.startswith("u"):
        low, high = abs(low), abs(low) + abs(high)
    bounds = [g.scalar(low, tensor.dtype) if g.chance(0.8) else None,
              g.scalar(high, tensor.dtype) if g.chance(0.8) else None]
    g.emit(name, [tensor, *bounds])


@op("Cast", weight=2.0)
def cast(g, name):
    tensor = g.pick()
    to = g.dtype()
    if to == tensor.dtype and g.chance(0.8):
        raise Rejected("casts to its own dtype are rare")
    limits = {"uint8": (0, 255), "int8": (-128, 127), "int16": (-32768, 32767),
              "uint32": (0, 2**31), "uint16": (0, 65535)}.get(to, (-2.0**30, 2.0**30))
    least, greatest = tensor.range()
    if least < limits[0] or greatest > limits[1]:  # undefined from floats, wraps from integers
        raise Rejected("the cast overflows")
    g.emit(name, [tensor], to=number_of(to))


@op("CastLike", weight=0.3)
def cast_like(g, name):
    tensor, like = g.pick(FLOATS), g.pick((*FLOATS, "int32", "int64", "bool"))
    g.emit(name, [tensor, like])


@op("QuantizeLinear", weight=0.7)
def quantize(g, name):
    """Down to 8 bits and, mostly, back: near a boundary of two steps the graph refuses it."""
    tensor = g.pick(("float32",), range(1, 6))
    axis, per_axis = g.between(0, tensor.rank - 1), g.chance(0.4)
    if per_axis and not tensor.is_fixed(axis):
        raise Rejected("scales per axis need a fixed axis")
    shape = (tensor.shape[axis],) if per_axis else ()
    greatest = max(1.0, *map(abs, tensor.range()))
    scale = g.constant(np.asarray(
        g.generator.choice([0.5, 1, 2], shape) * greatest / 100).astype(np.float32))
    dtype = g.choice(["int8", "uint8"])
    zero = g.constant(g.elements(dtype, shape)) if g.chance(0.8) or dtype == "int8" else None
    attributes = {"axis": axis - tensor.rank if g.chance(0.3) else axis} if per_axis else {}
    small = g.emit(name, [tensor, scale, zero], **attributes)
    if g.chance(0.7):
        g.emit("DequantizeLinear", [small, scale, zero], **attributes)


@op("DequantizeLinear", weight=0.6)
def dequantize(g, name):
    tensor = g.pick(("int8", "uint8", "int32"))
    scale = g.scalar(g.choice([0.0625, 0.1, 0.5]), "float32")
    zero = g.scalar(g.between(0, 9), tensor.dtype) if tensor.dtype != "int32" else None
    g.emit(name, [tensor, scale, zero])


op("DynamicQuantizeLinear", weight=0.3)(plain(("float32",), range(1, 5), outputs=3))
