"""elementwise: arithmetic, comparisons, logic, activations and types.

SPDX-License-Identifier: Apache-2.0
"""

import math

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as PROMOTION
from torch._prims_common import elementwise_dtypes

from .fourier import as_complex
from .table import BUILDERS, aten, builds, prims, takes_complex, value_of

# op -> ONNX's, computed in the type of the result
UNARY = {
    aten.abs: "Abs", aten.acos: "Acos", aten.acosh: "Acosh", aten.asin: "Asin", aten.asinh: "Asinh",
    aten.atan: "Atan", aten.atanh: "Atanh", aten.cos: "Cos", aten.cosh: "Cosh", aten.erf: "Erf",
    aten.exp: "Exp", aten.log: "Log", aten.neg: "Neg", aten.reciprocal: "Reciprocal",
    aten.relu: "Relu", aten.sigmoid: "Sigmoid", aten.sign: "Sign", aten.sin: "Sin",
    aten.sinh: "Sinh", aten.sqrt: "Sqrt", aten.tan: "Tan", aten.tanh: "Tanh"}
ROUNDED = {aten.ceil: "Ceil", aten.floor: "Floor"}
BINARY = {aten.mul: "Mul", aten.maximum: "Max", aten.minimum: "Min"}
COMPARED = {aten.lt: "Less", aten.le: "LessOrEqual", aten.gt: "Greater",
            aten.ge: "GreaterOrEqual", aten.eq: "Equal"}
LOGICAL = {aten.logical_and: "And", aten.logical_or: "Or", aten.logical_xor: "Xor"}
BITWISE = {aten.bitwise_and: "And", aten.bitwise_or: "Or", aten.bitwise_xor: "Xor"}


def is_whole(dtype):
    return not dtype.is_floating_point


def common(*operands):
    """The type in which operands are computed, by torch's rules of promotion."""
    return elementwise_dtypes(*map(value_of, operands),
                              type_promotion_kind=PROMOTION.NO_OPMATH)[0]


def _unary(kind):
    return lambda t, self: t.op(kind, t.cast(self, t.out.dtype))


def _rounded(kind):
    return lambda t, self: (t.value(self) if is_whole(value_of(self).dtype)
                            else t.op(kind, self))


def _of_bools(t, kind, self, other):
    return t.op(kind, t.cast(self, torch.bool), t.cast(other, torch.bool))


def _binary(kind):
    def build(t, self, other):
        dtype = t.out.dtype
        if dtype == torch.bool:
            return _of_bools(t, {"Mul": "And", "Max": "Or", "Min": "And"}[kind], self, other)
        return t.op(kind, t.cast(self, dtype), t.cast(other, dtype))
    return build


def _compared(kind):
    def build(t, self, other):
        dtype = common(self, other)
        if dtype == torch.bool:
            dtype = torch.uint8 if kind != "Equal" else dtype
        return t.op(kind, t.cast(self, dtype), t.cast(other, dtype))
    return build


def _logical(kind):
    return lambda t, self, other: _of_bools(t, kind, self, other)


def _bitwise(kind):
    def build(t, self, other):
        dtype = t.out.dtype
        if dtype == torch.bool:
            return _of_bools(t, kind, self, other)
        return t.op(f"Bitwise{kind}", t.cast(self, dtype), t.cast(other, dtype))
    return build


for table, maker in ((UNARY, _unary), (ROUNDED, _rounded), (BINARY, _binary),
                     (COMPARED, _compared), (LOGICAL, _logical), (BITWISE, _bitwise)):
    for op, kind in table.items():
        BUILDERS[op] = maker(kind)


@builds(aten.ne)
def ne(t, self, other):
    return t.op("Not", BUILDERS[aten.eq](t, self, other))


@builds(aten.add, aten.sub)
def add(t, self, other, alpha=1):
    dtype = t.out.dtype
    if dtype == torch.bool:  # the sum of truths; their difference is none of torch
        return _of_bools(t, "Or", self, other) if alpha else t.cast(self, dtype)
    kind = "Add" if t.node.target.overloadpacket is aten.add else "Sub"
    right = t.cast(other, dtype)
    if alpha != 1:
        right = t.op("Mul", right, t.cast(alpha, dtype))
    return t.op(kind, t.cast(self, dtype), right)


@builds(aten.rsub)
def rsub(t, self, other, alpha=1):
    dtype = t.out.dtype
    left = t.cast(self, dtype)
    if alpha != 1:
        left = t.op("Mul", left, t.cast(alpha, dtype))
    return t.op("Sub", t.cast(other, dtype), left)


@builds(aten.div)
def div(t, self, other, rounding_mode=None):
    dtype = t.out.dtype
    left, right = t.cast(self, dtype), t.cast(other, dtype)
    if rounding_mode == "floor" and is_whole(dtype):
        left = t.op("Sub", left, t.op("Mod", left, right))
    found = t.op("Div", left, right)
    if rounding_mode is None or is_whole(dtype):
        return found
    return t.op("Floor", found) if rounding_mode == "floor" else truncated(t, found, dtype)


def truncated(t, x, dtype):
    return t.op("Where", t.op("Less", x, t.scalar(0, dtype)), t.op("Ceil", x), t.op("Floor", x))


@builds(aten.trunc)
def trunc(t, self):
    dtype = t.out.dtype
    return t.value(self) if is_whole(dtype) else truncated(t, t.value(self), dtype)


@builds(aten.fmod)
def fmod(t, self, other):
    dtype = t.out.dtype
    return t.op("Mod", t.cast(self, dtype), t.cast(other, dtype), fmod=1)


@builds(aten.remainder)
def remainder(t, self, other):
    dtype = t.out.dtype
    left, right = t.cast(self, dtype), t.cast(other, dtype)
    if is_whole(dtype):
        return t.op("Mod", left, right)
    rest, zero = t.op("Mod", left, right, fmod=1), t.scalar(0, dtype)
    apart = t.op("Xor", t.op("Less", rest, zero), t.op("Less", right, zero))
    apart = t.op("And", apart, t.op("Not", t.op("Equal", rest, zero)))
    return t.op("Where", apart, t.op("Add", rest, right), rest)


@builds(aten.pow)
def pow(t, self, exponent):  # noqa: A001: torch's own word
    dtype = t.out.dtype
    if isinstance(exponent, (int, float)) and exponent == 2:
        base = t.cast(self, dtype)
        return t.op("Mul", base, base)
    if isinstance(exponent, (int, float)) and exponent == 0.5:
        return t.op("Sqrt", t.cast(self, dtype))
    return t.op("Pow", t.cast(self, dtype), t.cast(exponent, dtype))


@builds(aten.round)
def round(t, self, decimals=0):  # noqa: A001: torch's own word
    if is_whole(t.out.dtype):
        return t.value(self)
    if not decimals:
        return t.op("Round", self)
    scale = t.scalar(10.0 ** abs(decimals), t.out.dtype)
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return t.op(back, t.op("Round", t.op(there, self, scale)), scale)


@builds(aten.rsqrt)
def rsqrt(t, self):
    return t.op("Reciprocal", t.op("Sqrt", t.cast(self, t.out.dtype)))


@builds(aten.expm1)
def expm1(t, self):
    return t.op("Sub", t.op("Exp", t.cast(self, t.out.dtype)), t.scalar(1, t.out.dtype))


@builds(aten.log1p)
def log1p(t, self):
    return t.op("Log", t.op("Add", t.cast(self, t.out.dtype), t.scalar(1, t.out.dtype)))


@builds(aten.log2, aten.log10)
def log2(t, self):
    base = 2 if t.node.target.overloadpacket is aten.log2 else 10
    return t.op("Mul", t.op("Log", t.cast(self, t.out.dtype)),
                t.scalar(1 / math.log(base), t.out.dtype))


@builds(aten.exp2)
def exp2(t, self):
    return t.op("Pow", t.scalar(2, t.out.dtype), t.cast(self, t.out.dtype))


@builds(aten.erfc)
def erfc(t, self):
    return t.op("Sub", t.scalar(1, t.out.dtype), t.op("Erf", t.cast(self, t.out.dtype)))


@builds(aten.atan2)
def atan2(t, self, other):
    """The angle from the quotient, moved by half a turn where x is negative."""
    dtype = t.out.dtype
    y, x, zero = t.cast(self, dtype), t.cast(other, dtype), t.scalar(0, dtype)
    half = t.scalar(math.pi, dtype)
    turn = t.op("Where", t.op("Less", y, zero), t.op("Neg", half), half)
    angle = t.op("Atan", t.op("Div", y, x))
    angle = t.op("Where", t.op("Less", x, zero), t.op("Add", angle, turn), angle)
    both = t.op("And", t.op("Equal", x, zero), t.op("Equal", y, zero))
    return t.op("Where", both, zero, angle)


@builds(aten.isnan)
def isnan(t, self):
    if is_whole(value_of(self).dtype):
        return t.op("Equal", t.cast(self, torch.int64), t.op(
            "Add", t.cast(self, torch.int64), t.scalar(1, torch.int64)))
    return t.op("IsNaN", self)


@builds(aten.isinf)
def isinf(t, self):
    dtype = value_of(self).dtype
    return t.op("IsInf", self if dtype in (torch.float32, torch.float64)
                else t.cast(self, torch.float32))


@builds(aten.logical_not)
def logical_not(t, self):
    return t.op("Not", t.cast(self, torch.bool))


@builds(aten.bitwise_not)
def bitwise_not(t, self):
    return t.op("Not" if t.out.dtype == torch.bool else "BitwiseNot", self)


@builds(aten.where)
def where(t, condition, self, other):
    dtype = t.out.dtype
    return t.op("Where", t.cast(condition, torch.bool), t.cast(self, dtype), t.cast(other, dtype))


@builds(aten.clamp, aten.clamp_min, aten.clamp_max)
def clamp(t, self, min=None, max=None):  # noqa: A002: names of the schema
    found, dtype = t.cast(self, t.out.dtype), t.out.dtype
    if min is not None:
        found = t.op("Max", found, t.cast(min, dtype))
    return found if max is None else t.op("Min", found, t.cast(max, dtype))


@builds(aten.hardtanh)
def hardtanh(t, self, min_val=-1, max_val=1):
    return clamp(t, self, min_val, max_val)


@builds(aten.gelu)
def gelu(t, self, approximate="none"):
    return t.op("Gelu", self, approximate=approximate)


@builds(aten.silu)
def silu(t, self):
    return t.op("Mul", self, t.op("Sigmoid", self))


@builds(aten.leaky_relu)
def leaky_relu(t, self, negative_slope=0.01):
    return t.op("LeakyRelu", self, alpha=float(negative_slope))


@builds(aten.elu)
def elu(t, self, alpha=1, scale=1, input_scale=1):
    if input_scale != 1:
        t.refuse(f"elu with an input_scale of {input_scale} is not supported")
    found = t.op("Elu", self, alpha=float(alpha))
    return found if scale == 1 else t.op("Mul", found, t.scalar(scale, t.out.dtype))


@builds(aten.softplus)
def softplus(t, self, beta=1, threshold=20):
    dtype = t.out.dtype
    scaled = t.op("Mul", self, t.scalar(beta, dtype))
    found = t.op("Div", t.op("Softplus", scaled), t.scalar(beta, dtype))
    return t.op("Where", t.op("Greater", scaled, t.scalar(threshold, dtype)), self, found)


@builds(aten.hardsigmoid)
def hardsigmoid(t, self):
    return t.op("HardSigmoid", self, alpha=1 / 6, beta=0.5)


@builds(aten.hardswish)
def hardswish(t, self):
    return t.op("HardSwish", self)


@builds(aten._to_copy)
@takes_complex
def to_copy(t, self, dtype=None):
    if t.out.is_complex():
        return as_complex(t, self)
    if value_of(self).is_complex():
        t.refuse("a real tensor of a complex one is not supported; take its real part")
    return t.cast(self, dtype or value_of(self).dtype)


@builds(prims.convert_element_type)
def convert_element_type(t, a, dtype):
    return t.cast(a, dtype)


@builds(aten.clone, aten.alias, aten.detach, aten.lift_fresh_copy)
@takes_complex
def clone(t, self):
    return t.value(self)


@builds(aten.copy)
def copy(t, self, src):
    found = t.cast(src, t.out.dtype)
    if list(value_of(self).shape) != list(value_of(src).shape):
        found = t.expand(found, t.out.shape)
    return found


@builds(aten.fmax, aten.fmin)
def fmax(t, self, other):
    """The larger or smaller of two, or the one that is a number."""
    kind = "Max" if t.node.target.overloadpacket is aten.fmax else "Min"
    dtype, found = t.out.dtype, _binary(kind)(t, self, other)
    if is_whole(dtype):
        return found
    left, right = t.cast(self, dtype), t.cast(other, dtype)
    found = t.op("Where", t.op("IsNaN", left), right, found)
    return t.op("Where", t.op("IsNaN", right), left, found)
