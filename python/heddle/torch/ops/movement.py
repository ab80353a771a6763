"""movement: shapes, orders and parts of tensors. SPDX-License-Identifier: Apache-2.0"""

import torch

from ..sizes import expression
from .table import aten, axis_of, builds, prims, rank_of, takes_complex, value_of

LAST = (1 << 63) - 1


@builds(aten.view.default, aten._unsafe_view, aten.reshape, aten._reshape_copy)
def view(t, self, size):
    return t.reshape(self, t.out.shape)


@builds(aten.unsqueeze, aten.squeeze, aten.flatten.using_ints)
def unsqueeze(t, self, dim=None, start_dim=None, end_dim=None):
    return t.reshape(self, t.out.shape)


@builds(aten.expand)
def expand(t, self, size, implicit=False):
    return t.expand(self, t.out.shape)


@builds(prims.broadcast_in_dim)
def broadcast_in_dim(t, a, shape, broadcast_dimensions):
    sizes = [1] * t.out.dim()
    for axis, place in enumerate(broadcast_dimensions):
        sizes[place] = value_of(a).shape[axis]
    return t.expand(t.reshape(a, sizes), t.out.shape)


@builds(aten.permute)
def permute(t, self, dims):
    if not dims:
        return t.value(self)
    return t.op("Transpose", self, perm=[axis_of(dim, len(dims)) for dim in dims])


@builds(aten.t, aten.transpose.int)
def transpose(t, self, dim0=0, dim1=1):
    rank = rank_of(self)
    if rank < 2:
        return t.value(self)
    order = list(range(rank))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return t.op("Transpose", self, perm=order)


@builds(aten.cat)
def cat(t, tensors, dim=0):
    given = [x for x in tensors if list(value_of(x).shape) != [0]]  # torch's empty operand
    if not given:
        return t.cast(tensors[0], t.out.dtype)
    return t.op("Concat", *(t.cast(x, t.out.dtype) for x in given),
                axis=axis_of(dim, t.out.dim()))


@builds(aten.slice.Tensor)
@takes_complex
def slice_tensor(t, self, dim=0, start=None, end=None, step=1):
    start, end = 0 if start is None else start, LAST if end is None else end
    if isinstance(start, int) and isinstance(end, int) and start == 0 and end == LAST and step == 1:
        return t.value(self)
    return t.op("Slice", self, t.shape([start]), t.shape([end]),
                t.ints(axis_of(dim, rank_of(self))), t.ints(step))


@builds(aten.slice_scatter)
def slice_scatter(t, self, src, dim=0, start=None, end=None, step=1):
    """The elements of `src` where the slice is, by an index along the axis."""
    shape, axis = value_of(self).shape, axis_of(dim, rank_of(self))
    along = t.op("Range", t.scalar(0, torch.int64), t.scalar(shape[axis], torch.int64),
                 t.scalar(1, torch.int64))
    index = t.op("Slice", along, t.shape([0 if start is None else start]),
                 t.shape([LAST if end is None else end]), t.ints(0), t.ints(step))
    source = value_of(src).shape
    index = t.reshape(index, [-1 if i == axis else 1 for i in range(len(shape))])
    return t.op("ScatterElements", self, t.expand(index, source), src, axis=axis)


@builds(aten.select.int)
def select(t, self, dim, index):
    place = t.scalar(index, torch.int64)
    return t.op("Gather", self, place, axis=axis_of(dim, rank_of(self)))


@builds(aten.select_scatter)
def select_scatter(t, self, src, dim, index):
    shape, axis = list(value_of(self).shape), axis_of(dim, rank_of(self))
    shape[axis] = 1
    index = t.expand(t.reshape(t.scalar(index, torch.int64), [1] * len(shape)), shape)
    return t.op("ScatterElements", self, index, t.reshape(src, shape), axis=axis)


@builds(aten.split_with_sizes)
def split_with_sizes(t, self, split_sizes, dim=0):
    axis = axis_of(dim, rank_of(self))
    if len(split_sizes) == 1:
        return (t.value(self),)
    return tuple(t.op("Split", self, t.shape(split_sizes), axis=axis, outputs=len(split_sizes)))


@builds(aten.repeat)
def repeat(t, self, repeats):
    rank, more = rank_of(self), len(repeats) - rank_of(self)
    given = t.reshape(self, [1] * more + list(value_of(self).shape)) if more else self
    return t.op("Tile", given, t.shape(repeats)) if rank + more else t.value(self)


@builds(aten.flip)
def flip(t, self, dims):
    if not dims:
        return t.value(self)
    axes = [axis_of(dim, rank_of(self)) for dim in dims]
    count = len(axes)
    return t.op("Slice", self, t.ints(*[-1] * count), t.ints(*[-LAST] * count), t.ints(*axes),
                t.ints(*[-1] * count))


@builds(aten.constant_pad_nd)
def constant_pad_nd(t, self, pad, value=0):
    rank = rank_of(self)
    low, high = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    return t.op("Pad", self, t.shape(low + high), t.cast(value, t.out.dtype))


@builds(aten.diagonal)
def diagonal(t, self, offset=0, dim1=0, dim2=1):
    """The elements of a matrix at an index by rows."""
    rank = rank_of(self)
    first, second = axis_of(dim1, rank), axis_of(dim2, rank)
    rows, columns = value_of(self).shape[first], value_of(self).shape[second]
    count = t.out.shape[-1]
    others = [i for i in range(rank) if i not in (first, second)]
    sizes = [value_of(self).shape[i] for i in others]
    flat = t.reshape(t.op("Transpose", self, perm=[*others, first, second]), [*sizes, -1])
    begin = offset if offset >= 0 else -offset * columns
    if not all(isinstance(x, int) for x in (rows, columns, count, begin)):
        t.refuse("a diagonal of a matrix of unknown size is not supported")
    return t.op("Gather", flat, t.ints(*(begin + i * (columns + 1) for i in range(count))),
                axis=len(others))


@builds(aten.as_strided)
def as_strided(t, self, size, stride, storage_offset=None):
    """A view by an index of each element."""
    value = value_of(self)
    if value.is_contiguous() and t.out.is_contiguous() and not storage_offset and (
            expression(value.numel()) == expression(t.out.numel())):
        return t.reshape(self, t.out.shape)
    return t.op("Gather", t.reshape(self, [-1]),
                t.constant(_elements(t, value, size, stride, storage_offset)), axis=0)


def _elements(t, value, size, stride, offset):
    """The number in a tensor of each element of a view of its memory, in any order of dimensions
    and with gaps, as long as the view has none of them."""
    own = *value.shape, *value.stride(), value.storage_offset()
    if not all(isinstance(x, int) for x in (*own, *size, *stride, offset or 0)):
        t.refuse("as_strided of unknown sizes is not supported")
    held, order = _places(value.shape, value.stride(), own[-1]).reshape(-1).sort()
    if held.unique().numel() < held.numel():
        t.refuse("as_strided of a tensor with elements that share memory is not supported")
    wanted = _places(size, stride, own[-1] if offset is None else offset)
    found = torch.searchsorted(held, wanted.reshape(-1)).clamp(max=max(len(held) - 1, 0))
    if not torch.equal(held[found], wanted.reshape(-1)):
        t.refuse("as_strided that reads beyond its tensor is not supported")
    return order[found].view(wanted.shape)


def _places(size, stride, offset):
    """The number in memory of each element of a view."""
    index = torch.zeros((), dtype=torch.int64) + offset
    for extent, step in zip(size, stride):
        index = index.unsqueeze(-1) + torch.arange(extent) * step
    return index


@builds(aten.as_strided_scatter)
def as_strided_scatter(t, self, src, size, stride, storage_offset=None):
    places = _elements(t, value_of(self), size, stride, storage_offset)
    found = t.op("ScatterElements", t.reshape(self, [-1]), t.constant(places.reshape(-1)),
                 t.reshape(src, [-1]), axis=0)
    return t.reshape(found, value_of(self).shape)


@builds(aten.unfold)
def unfold(t, self, dimension, size, step):
    """Windows along an axis, whose elements are the last dimension."""
    if rank_of(self) == 0:
        return t.reshape(self, t.out.shape)
    axis, extent = axis_of(dimension, rank_of(self)), value_of(self).shape[dimension]
    if not isinstance(extent, int):
        t.refuse("windows along an axis of unknown size are not supported")
    count = (extent - size) // step + 1
    index = torch.arange(count).unsqueeze(1) * step + torch.arange(size)
    found = t.op("Gather", self, t.constant(index), axis=axis)
    rank = rank_of(self)
    order = [i for i in range(rank + 1) if i != axis + 1] + [axis + 1]
    return t.op("Transpose", found, perm=order)
