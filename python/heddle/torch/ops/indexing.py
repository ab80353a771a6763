"""indexing: elements by tensors of numbers. SPDX-License-Identifier: Apache-2.0"""

import torch

from .table import aten, axis_of, builds, rank_of, value_of


@builds(aten.embedding)
def embedding(t, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return t.op("Gather", weight, indices, axis=0)


@builds(aten.index_select)
def index_select(t, self, dim, index):
    if rank_of(self) == 0:
        return t.value(self)
    index = index if rank_of(index) else t.reshape(index, [1])
    return t.op("Gather", self, index, axis=axis_of(dim, rank_of(self)))


def _along(t, x, dtype=None):
    """A tensor with at least one dimension."""
    name = t.cast(x, dtype or value_of(x).dtype)
    return t.reshape(name, [1]) if rank_of(x) == 0 else name


def _shaped(t, name, like):
    return t.reshape(name, []) if rank_of(like) == 0 else name


@builds(aten.gather)
def gather(t, self, dim, index, sparse_grad=False):
    if 0 in value_of(index).shape:  # its rank may be another one
        return t.expand(t.scalar(0, t.out.dtype), t.out.shape)
    data, places = _along(t, self), _along(t, index, torch.int64)
    found = t.op("GatherElements", data, places, axis=axis_of(dim, rank_of(self)))
    return _shaped(t, found, index)


@builds(aten.scatter, aten.scatter_add, aten.scatter_reduce)
def scatter(t, self, dim, index, src=None, value=None, reduce=None, include_self=True):
    if not include_self:
        t.refuse("a scatter that leaves out the tensor's own elements is not supported")
    if 0 in value_of(index).shape:
        return t.value(self)
    packet = t.node.target.overloadpacket
    kind = "add" if packet is aten.scatter_add else REDUCTIONS.get(reduce, reduce)
    if kind == "mean":
        t.refuse("a scatter of means is not supported")
    is_bool = t.out.dtype == torch.bool and kind == "add"
    dtype, kind = (torch.uint8, "max") if is_bool else (t.out.dtype, kind)
    data, places = _along(t, self, dtype), _along(t, index, torch.int64)
    if src is None:
        updates = t.expand(t.cast(value, dtype), value_of(index).shape)
        updates = t.reshape(updates, [1]) if rank_of(index) == 0 else updates
    else:
        updates = _along(t, src, dtype)
        if list(value_of(src).shape) != list(value_of(index).shape):  # its first elements
            rank, sizes = rank_of(index), value_of(index).shape
            updates = t.op("Slice", updates, t.ints(*[0] * rank), t.shape(sizes),
                           t.ints(*range(rank)))
    found = t.op("ScatterElements", data, places, updates, axis=axis_of(dim, rank_of(self)),
                 reduction=kind)
    return _shaped(t, t.converted(found, torch.bool) if is_bool else found, self)


REDUCTIONS = {None: None, "add": "add", "multiply": "mul", "sum": "add", "prod": "mul",
              "amax": "max", "amin": "min"}


def _as_integers(t, self, indices):
    """Indices as tensors of int64, or None."""
    for index in indices:
        if index is not None and value_of(index).dtype in (torch.bool, torch.uint8):
            t.refuse("an index of truths has a size known only at run time; it is not supported")
    return [index if index is None else t.cast(index, torch.int64) for index in indices]


def _in_front(t, self, indices):
    """The axes that are indexed, and the order that has them in front."""
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    return axes, axes + [axis for axis in range(rank_of(self)) if axis not in axes]


def _joined(t, self, indices, axes):
    """Indices as one tensor whose last dimension has an index of each axis; negative ones are
    counted from the end by ONNX as well."""
    shape = torch.broadcast_shapes(*(value_of(indices[axis]).shape for axis in axes))
    given = _as_integers(t, self, indices)
    parts = [t.reshape(t.expand(given[axis], shape), [*shape, 1]) for axis in axes]
    return (parts[0] if len(parts) == 1 else t.op("Concat", *parts, axis=len(shape))), shape


@builds(aten.index.Tensor, aten._unsafe_index.Tensor)
def index_tensor(t, self, indices):
    axes, order = _in_front(t, self, indices)
    if not axes:
        return t.value(self)
    if len(axes) == 1:
        return t.op("Gather", self, _as_integers(t, self, indices)[axes[0]], axis=axes[0])
    joined, shape = _joined(t, self, indices, axes)
    data = self if order == sorted(order) else t.op("Transpose", self, perm=order)
    found = t.op("GatherND", data, joined)
    if axes == list(range(axes[0], axes[-1] + 1)) and axes[0] > 0:
        # Axes side by side stay where they are; others' result comes first.
        rank, count = len(shape), axes[0]
        total = t.out.dim()
        found = t.op("Transpose", found, perm=[*range(rank, rank + count), *range(rank),
                                               *range(rank + count, total)])
    return found


@builds(aten.index_put, aten._unsafe_index_put, aten._index_put_impl)
def index_put(t, self, indices, values, accumulate=False, unsafe=False):
    axes, order = _in_front(t, self, indices)
    if len(indices) == 1 and value_of(indices[0]).dtype == torch.bool and not accumulate:
        mask = value_of(indices[0])
        if value_of(values).dim() == 0:
            sizes = [*mask.shape, *[1] * (rank_of(self) - mask.dim())]
            return t.op("Where", t.reshape(indices[0], sizes), t.cast(values, t.out.dtype), self)
    joined, shape = _joined(t, self, indices, axes)
    data = self if order == sorted(order) else t.op("Transpose", self, perm=order)
    rest = [value_of(self).shape[axis] for axis in order[len(axes):]]
    given, sizes = t.cast(values, t.out.dtype), [*shape, *rest]
    together = axes == list(range(axes[0], axes[-1] + 1))
    if together and axes[0] > 0:  # the values have the indexed axes in the place of those
        count, rank = axes[0], len(shape)
        placed = [*rest[:count], *shape, *rest[count:]]
        given = t.expand(given, placed)
        given = t.op("Transpose", given, perm=[
            *range(count, count + rank), *range(count), *range(count + rank, len(placed))])
    else:
        given = t.expand(given, sizes)
    found = t.op("ScatterND", data, joined, given, reduction="add" if accumulate else None)
    if order == sorted(order):
        return found
    return t.op("Transpose", found, perm=[order.index(axis) for axis in range(len(order))])


@builds(aten.nonzero)
def nonzero(t, self):
    return t.op("Transpose", t.op("NonZero", self), perm=[1, 0])


@builds(aten._local_scalar_dense)
def local_scalar(t, self):
    return t.op("Reshape", t.cast(self, torch.int64), t.ints(1))
