"""creation: tensors of nothing but numbers and sizes, and random ones.

SPDX-License-Identifier: Apache-2.0
"""

import torch

from .table import aten, builds, prims, value_of


def filled(t, value, sizes, dtype):
    return t.expand(t.cast(value, dtype), sizes)


@builds(aten.full, aten.full_like, aten.new_full)
def full(t, size=None, fill_value=0, dtype=None, self=None):
    return filled(t, fill_value, t.out.shape, t.out.dtype)


@builds(aten.fill)
def fill(t, self, value):
    return filled(t, value, t.out.shape, t.out.dtype)


@builds(aten.empty.memory_format, aten.empty_like, aten.new_empty, aten.zeros, aten.zeros_like,
        aten.new_zeros, aten.empty_strided, prims.empty_strided, aten.empty_permuted,
        aten.new_empty_strided)
def zeros(t, **_):
    """Zeros, also where torch leaves open what there is."""
    return filled(t, 0, t.out.shape, t.out.dtype)


@builds(aten.ones, aten.ones_like, aten.new_ones)
def ones(t, **_):
    return filled(t, 1, t.out.shape, t.out.dtype)


@builds(aten.scalar_tensor)
def scalar_tensor(t, s, dtype=None):
    return t.cast(s, t.out.dtype)


def counted(t, start, end, step):
    dtype = t.out.dtype
    if dtype in (torch.int64, torch.int32, torch.float32, torch.float64):
        if dtype.is_floating_point and all(
                isinstance(x, (int, float)) for x in (start, end, step)):
            # The numbers are torch's, start + i * step, whatever ONNX's sums are.
            return t.constant(torch.arange(start, end, step, dtype=dtype))
        return t.op("Range", *(t.scalar(x, dtype) for x in (start, end, step)))
    wide = t.op("Range", *(t.scalar(x, torch.float32 if dtype.is_floating_point else torch.int64)
                           for x in (start, end, step)))
    return t.converted(wide, dtype)


@builds(aten.arange.start_step)
def arange(t, start, end, step=1, dtype=None):
    return counted(t, start, end, step)


@builds(aten.arange.start)
def arange_start(t, start, end, dtype=None):
    return counted(t, start, end, 1)


@builds(aten.arange.default)
def arange_end(t, end, dtype=None):
    return counted(t, 0, end, 1)


@builds(prims.iota)
def iota(t, length, start=0, step=1, dtype=None, requires_grad=False):
    count = t.op("Range", t.scalar(0, torch.int64), t.scalar(length, torch.int64),
                 t.scalar(1, torch.int64))
    if step != 1:
        count = t.op("Mul", count, t.scalar(step, torch.int64))
    if not isinstance(start, int) or start != 0:
        count = t.op("Add", count, t.scalar(start, torch.int64))
    return count if t.out.dtype == torch.int64 else t.converted(count, t.out.dtype)


def drawn(t, kind, low_or_mean, high_or_scale):
    """Random numbers of the type and shape of the node's result."""
    t.is_random = True
    dtype = t.out.dtype if t.out.dtype.is_floating_point else torch.float32
    like = filled(t, 0, t.out.shape, dtype)
    names = ("low", "high") if kind == "RandomUniformLike" else ("mean", "scale")
    return t.op(kind, like, **dict(zip(names, map(float, (low_or_mean, high_or_scale)))))


@builds(aten.rand, aten.rand_like)
def rand(t, size=None, self=None, dtype=None):
    return drawn(t, "RandomUniformLike", 0, 1)


@builds(aten.randn, aten.randn_like)
def randn(t, size=None, self=None, dtype=None):
    return drawn(t, "RandomNormalLike", 0, 1)


@builds(aten.randint.low, aten.randint_like.low_dtype)
def randint(t, low, high, size=None, self=None, dtype=None):
    """Whole numbers from `low`, and below `high`."""
    if not isinstance(low, int) or not isinstance(high, int) or high - low > 1 << 24:
        t.refuse("random integers of more than 24 bits, or of unknown bounds, are not supported")
    uniform = t.op("RandomUniformLike", filled(t, 0, t.out.shape, torch.float32), low=0.0,
                   high=float(high - low))
    t.is_random = True
    whole = t.op("Min", t.op("Floor", uniform), t.scalar(high - low - 1, torch.float32))
    return t.cast(t.op("Add", t.converted(whole, torch.int64), t.scalar(low, torch.int64)),
                  t.out.dtype)


@builds(aten.randint.default, aten.randint_like.default)
def randint_below(t, high, size=None, self=None, dtype=None):
    return randint(t, 0, high)


@builds(aten.bernoulli.p)
def bernoulli_p(t, self, p=0.5):
    below = t.op("Less", drawn(t, "RandomUniformLike", 0, 1), t.scalar(p, torch.float32))
    return t.converted(below, t.out.dtype)


@builds(aten.bernoulli.default)
def bernoulli(t, self):
    below = t.op("Less", drawn(t, "RandomUniformLike", 0, 1), self)
    return t.converted(below, t.out.dtype)


@builds(aten.native_dropout)
def native_dropout(t, input, p, train=True):  # noqa: A002: a name of the schema
    value = value_of(input)
    if not train or p == 0:
        return t.value(input), filled(t, True, value.shape, torch.bool)
    if p == 1:
        return filled(t, 0, value.shape, value.dtype), filled(t, False, value.shape, torch.bool)
    t.is_random = True
    uniform = t.op("RandomUniformLike", filled(t, 0, value.shape, torch.float32), low=0.0, high=1.0)
    kept = t.op("Greater", uniform, t.scalar(p, torch.float32))
    scaled = t.op("Mul", input, t.scalar(1 / (1 - p), value.dtype))
    return t.op("Where", kept, scaled, t.scalar(0, value.dtype)), kept
