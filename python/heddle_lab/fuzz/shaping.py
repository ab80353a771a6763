"""shaping: ops that move elements: reshape, transpose, slice, pad, gather and scatter, and others.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
from onnx import numpy_helper

from .evaluate import Rejected
from .graph import FLOATS, INTS, dtype_of, number_of
from .spec import axis_of, op


@op("Transpose", weight=1.6)
def transpose(g, name):
    tensor = g.pick()
    order = list(range(tensor.rank))
    g.rng.shuffle(order)
    g.emit(name, [tensor], **({"perm": order} if tensor.rank and g.chance(0.85) else {}))


def factors(g, count):
    """A random shape of `count` elements."""
    shape = []
    while count > 1 and len(shape) < 4 and g.chance(0.85):
        size = g.choice([n for n in range(1, count + 1) if count % n == 0])
        shape.append(size)
        count //= size
    shape.insert(g.between(0, len(shape)), count)
    return shape


def shape_of(g, tensor, axes):
    """The sizes of some axes at run time, as a vector."""
    sizes = g.emit("Shape", [tensor])
    return g.emit("Gather", [sizes, g.ints(axes)])


@op("Reshape", weight=2.0)
def reshape(g, name):
    tensor = g.pick()
    if tensor.all_fixed and g.chance(0.7):
        shape = factors(g, tensor.size)
        if tensor.size and g.chance(0.6):
            shape[g.between(0, len(shape) - 1)] = -1
        g.emit(name, [tensor, g.ints(shape)])
        return
    if not tensor.rank:
        raise Rejected("a scalar has no axes to merge")
    first = g.between(0, tensor.rank - 1)  # merges axes, whose sizes may be symbolic
    last = g.between(first, tensor.rank - 1)
    if g.chance(0.4):
        if any(0 in tensor.dims[axis] for axis in range(last + 1, tensor.rank)):
            raise Rejected("to Reshape, a size of 0 is that of the input's axis at its place")
        shape = shape_of(g, tensor, [*range(first), *range(last + 1, tensor.rank)])
        g.emit(name, [tensor, g.emit("Concat", [shape, g.ints([-1])], axis=0)])
        return
    tail = [tensor.shape[axis] if tensor.is_fixed(axis) else None
            for axis in range(last + 1, tensor.rank)]
    if None in tail:
        raise Rejected("a symbolic size after the merged axes")
    head = [0 if g.chance(0.7) or not tensor.is_fixed(axis) else tensor.shape[axis]
            for axis in range(first)]
    g.emit(name, [tensor, g.ints([*head, -1, *tail])])


@op("Flatten", weight=0.7)
def flatten(g, name):
    tensor = g.pick()
    g.emit(name, [tensor], **({"axis": g.between(-tensor.rank, tensor.rank)}))


@op("Squeeze", weight=0.7)
def squeeze(g, name):
    tensor = g.pick(where=lambda t: any(set(d) == {1} for d in t.dims),
                    dims=[(1,) * g.cases, g.fixed_dim(), (1,) * g.cases])
    ones = [axis for axis, d in enumerate(tensor.dims) if set(d) == {1}]
    axes = sorted(g.rng.sample(ones, g.between(1, len(ones))))
    axes = [axis - tensor.rank if g.chance(0.3) else axis for axis in axes]
    is_every = len(ones) == len(axes) == sum(1 in d for d in tensor.dims) and g.chance(0.3)
    g.emit(name, [tensor, None if is_every else g.ints(axes)])


@op("Unsqueeze", weight=0.8)
def unsqueeze(g, name):
    tensor = g.pick(rank=range(5))
    count = g.between(1, 2)
    axes = g.rng.sample(range(tensor.rank + count), count)
    axes = [axis - tensor.rank - count if g.chance(0.3) else axis for axis in axes]
    g.emit(name, [tensor, g.ints(axes)])


@op("Concat", weight=1.5)
def concat(g, name):
    tensor = g.pick(low=1)
    axis = g.between(0, tensor.rank - 1)

    def fits(other):
        return (other.dtype == tensor.dtype and other.rank == tensor.rank and all(
            a == b for i, (a, b) in enumerate(zip(other.dims, tensor.dims)) if i != axis))

    parts = [tensor]
    for _ in range(g.between(1, 3)):
        found = [other for other in g.tensors.values() if fits(other)]
        if found and g.chance(0.7):
            parts.append(g.choice(found))
        else:
            dims = list(tensor.dims)
            dims[axis] = g.fixed_dim(1, 5)
            parts.append(g.fresh(tensor.dtype, dims))
    g.rng.shuffle(parts)
    g.emit(name, parts, axis=axis - tensor.rank if g.chance(0.3) else axis)


@op("Split", weight=0.9)
def split(g, name):
    tensor = g.pick(low=1)
    axis = g.between(0, tensor.rank - 1)
    size = tensor.shape[axis]
    if not tensor.is_fixed(axis) or size < 2:
        raise Rejected("nothing to split")
    count = g.between(2, min(size, 4))
    attributes = {"axis": axis - tensor.rank if g.chance(0.3) else axis}
    if size % count == 0 and g.chance(0.4):
        if g.opset >= 18:
            attributes["num_outputs"] = count
        g.emit(name, [tensor], outputs=count, **attributes)
        return
    if g.opset >= 18 and g.chance(0.2) and (count - 1) * -(-size // count) < size:
        g.emit(name, [tensor], outputs=count, num_outputs=count, **attributes)
        return
    cuts = sorted(g.rng.sample(range(1, size), count - 1))
    sizes = np.diff([0, *cuts, size]).tolist()
    g.emit(name, [tensor, g.ints(sizes)], outputs=count, **attributes)


@op("Tile", weight=0.6)
def tile(g, name):
    tensor = g.pick(rank=range(1, 5))
    g.emit(name, [tensor, g.ints([g.choice([1, 1, 2, 3]) for _ in range(tensor.rank)])])


@op("Expand", weight=0.8)
def expand(g, name):
    tensor = g.pick(rank=range(5))
    if g.chance(0.3):
        other = g.partner(tensor)
        g.emit(name, [tensor, g.emit("Shape", [other])])
        return
    shape = [g.between(2, 4) if set(d) == {1} and g.chance(0.7) else 1
             if not tensor.is_fixed(i) or g.chance(0.4) else d[0]
             for i, d in enumerate(tensor.dims)]
    if g.chance(0.3):
        shape.insert(0, g.between(1, 3))
    g.emit(name, [tensor, g.ints(shape)])


@op("Slice", weight=1.8)
def slice_(g, name):
    tensor = g.pick(low=1)
    axes = g.rng.sample(range(tensor.rank), g.between(1, tensor.rank))
    starts, ends, steps = [], [], []
    for axis in axes:
        size = min(tensor.dims[axis])
        step = g.choice([1, 1, 1, 2, 3, -1, -1, -2, 5])
        low, high = sorted([g.between(0, size), g.between(0, size)])
        start, end = (low, high) if step > 0 else (high, low - 1)
        if step < 0 and end == -1:
            end = -(2**31)
        start = g.choice([start, start - size]) if tensor.is_fixed(axis) and start < size else start
        if step > 0 and g.chance(0.3):
            end = g.choice([2**63 - 1, 2**31 - 1, 1000])
        if step > 0 and end > 0 and end < size and g.chance(0.2):
            end -= size
        starts, ends, steps = [*starts, start], [*ends, end], [*steps, step]
    written = [axis - tensor.rank if g.chance(0.3) else axis for axis in axes]
    has_steps = any(step != 1 for step in steps) or g.chance(0.5)
    is_default = sorted(axes) == list(range(len(axes))) == axes and not has_steps and g.chance(0.5)
    if g.chance(0.2) and len(axes) == 1 and steps == [1] and not tensor.is_fixed(axes[0]):
        end = shape_of(g, tensor, [axes[0]])  # up to the end, as a value of the run
        g.emit(name, [tensor, g.ints(starts), end, g.ints(written)])
        return
    g.emit(name, [tensor, g.ints(starts), g.ints(ends), None if is_default else g.ints(written),
                  g.ints(steps) if has_steps else None])


@op("Pad", weight=1.2)
def pad(g, name):
    tensor = g.pick((*FLOATS, "int32", "int64", "bool", "int8", "uint8"), low=1)
    mode = g.choice(["constant", "constant", "reflect", "edge"] + ["wrap"] * (g.opset >= 19))
    axes = list(range(tensor.rank))
    if g.opset >= 18 and g.chance(0.4):
        axes = g.rng.sample(axes, g.between(1, len(axes)))
    before, after = [], []
    for axis in axes:
        size = min(tensor.dims[axis])
        most = 3 if mode in ("constant", "edge") and size else max(0, min(size - 1, 3))
        least = -1 if mode == "constant" and size > 2 and g.chance(0.3) else 0
        before.append(g.between(least, most))
        after.append(g.between(least, most))
    fill = None
    if mode == "constant" and g.chance(0.6):
        fill = g.constant(g.elements(tensor.dtype, ()))
    written = None if len(axes) == tensor.rank and axes == sorted(axes) else g.ints(
        [axis - tensor.rank if g.chance(0.3) else axis for axis in axes])
    g.emit(name, [tensor, g.ints(before + after), fill, written], mode=mode)


def indices(g, dims, limit, dtype=None):
    """Indices below `limit`, some of them counted from the end."""
    if limit < 1:
        raise Rejected("no element to index")
    dtype = dtype or g.choice(["int64", "int64", "int32"])
    low = -limit if g.chance(0.4) else 0
    arrays = [g.generator.integers(low, limit, [d[case] for d in dims]).astype(dtype)
              for case in range(g.cases)]
    if all(len(set(d)) == 1 for d in dims) and g.chance(0.6):
        return g.constant(arrays[0])
    return g.input(dtype, dims, arrays)


@op("Gather", weight=1.4)
def gather(g, name):
    tensor = g.pick(low=1)
    axis = g.between(0, tensor.rank - 1)
    dims = g.dims(g.choice([0, 1, 1, 2]))
    at = indices(g, dims, min(tensor.dims[axis]))
    g.emit(name, [tensor, at], axis=axis - tensor.rank if g.chance(0.3) else axis)


@op("GatherElements", weight=0.7)
def gather_elements(g, name):
    tensor = g.pick(low=1)
    axis = g.between(0, tensor.rank - 1)
    dims = list(tensor.dims)
    dims[axis] = g.fixed_dim(1, 6)
    at = indices(g, dims, min(tensor.dims[axis]))
    g.emit(name, [tensor, at], axis=axis - tensor.rank if g.chance(0.3) else axis)


def nd_indices(g, tensor, depth, batch=()):
    """Index tuples [*batch, k, depth] that lie in the tensor; no tuple twice."""
    sizes = [min(tensor.dims[len(batch) + i]) for i in range(depth)]
    total = int(np.prod(sizes))
    if total < 1 or any(len(set(d)) != 1 for d in batch):
        raise Rejected("no element to index")
    count = g.between(1, min(total, 6))
    rows = [np.stack(np.unravel_index(g.generator.permutation(total)[:count], sizes), -1)
            for _ in range(int(np.prod([d[0] for d in batch], dtype=int)))]
    array = np.array(rows, np.int64).reshape([*(d[0] for d in batch), count, depth])
    if g.chance(0.3):
        array -= np.array(sizes)
    dims = [(size,) * g.cases for size in array.shape]
    return g.constant(array) if g.chance(0.5) else g.input("int64", dims, [array] * g.cases)


@op("GatherND", weight=0.6)
def gather_nd(g, name):
    tensor = g.pick(low=1)
    batch = g.between(1, tensor.rank - 1) if tensor.rank > 1 and g.chance(0.25) else 0
    depth = g.between(1, tensor.rank - batch)
    at = nd_indices(g, tensor, depth, tensor.dims[:batch])
    g.emit(name, [tensor, at], **({"batch_dims": batch} if batch or g.chance(0.2) else {}))


def scatter_reduction(g, tensor):
    """A way to reduce; without one, no element may be written twice."""
    modes = ["none", "add", "mul"] if g.opset < 18 else ["none", "add", "mul", "max", "min"]
    mode = g.choice(modes) if g.opset >= 16 and tensor.dtype in (*FLOATS, *INTS) else "none"
    return {} if mode == "none" else {"reduction": mode}


@op("ScatterND", weight=0.6)
def scatter_nd(g, name):
    tensor = g.pick(low=1)
    depth = g.between(1, tensor.rank)
    at = nd_indices(g, tensor, depth)
    updates = g.fresh(tensor.dtype, [at.dims[0], *tensor.dims[depth:]], 0.3)
    g.emit(name, [tensor, at, updates], **scatter_reduction(g, tensor))


@op("ScatterElements", weight=0.7)
def scatter_elements(g, name):
    tensor = g.pick(low=1)
    axis = g.between(0, tensor.rank - 1)
    size = min(tensor.dims[axis])
    if size < 1 or not tensor.all_fixed:
        raise Rejected("no element to index")
    shape = [g.between(1, max(1, d[0])) for d in tensor.dims]
    reduction = scatter_reduction(g, tensor)
    if reduction:
        array = g.generator.integers(0, size, shape)
    else:  # along the axis, each index once
        shape[axis] = g.between(1, size)
        rows = [g.generator.permutation(size)[: shape[axis]]
                for _ in range(int(np.prod(shape)) // shape[axis])]
        moved = [s for i, s in enumerate(shape) if i != axis]
        array = np.moveaxis(np.array(rows).reshape([*moved, shape[axis]]), -1, axis)
    if g.chance(0.3):
        array = array - size
    array = np.ascontiguousarray(array).astype(np.int64)
    dims = [(s,) * g.cases for s in shape]
    at = g.constant(array) if g.chance(0.5) else g.input("int64", dims, [array] * g.cases)
    updates = g.fresh(tensor.dtype, dims, 0.3)
    g.emit(name, [tensor, at, updates], axis=axis - tensor.rank if g.chance(0.3) else axis,
           **reduction)


@op("TopK", weight=0.8)
def top_k(g, name):
    tensor = g.pick((*FLOATS, "int32", "int64"), range(1, 5))
    axis = g.between(0, tensor.rank - 1)
    k = g.between(1, max(1, min(tensor.dims[axis])))
    count = g.ints([k]) if g.chance(0.8) else g.input(
        "int64", [(1,) * g.cases], [np.array([k], np.int64)] * g.cases)
    g.emit(name, [tensor, count], outputs=2, axis=axis - tensor.rank if g.chance(0.5) else axis,
           largest=g.between(0, 1))


@op("OneHot", weight=0.5)
def one_hot(g, name):
    depth = g.between(2, 6)
    at = indices(g, g.dims(g.between(0, 3)), depth, "int64")
    dtype = g.choice(["float32", "int64", "int32"])
    values = g.constant(np.array(g.choice([[0, 1], [-1, 3]]), dtype))
    g.emit(name, [at, g.scalar(depth, "int64"), values], axis=g.between(-at.rank - 1, at.rank))


@op("Trilu", weight=0.5)
def trilu(g, name):
    tensor = g.pick((*FLOATS, "int32", "int64", "bool"), range(2, 5))
    shift = g.scalar(g.between(-3, 3), "int64") if g.chance(0.6) else None
    g.emit(name, [tensor, shift], upper=g.between(0, 1))


@op("NonZero", weight=0.5)
def non_zero(g, name):
    g.emit(name, [g.pick(("float32", "int32", "int64", "bool", "uint8"), range(1, 5))])


@op("Compress", weight=0.5)
def compress(g, name):
    tensor = g.pick(low=1)
    axis = g.between(0, tensor.rank - 1) if g.chance(0.7) else None
    most = min(tensor.dims[axis]) if axis is not None else min(v.size for v in tensor.values)
    mask = g.fresh("bool", [(g.between(1, max(1, most)),) * g.cases], 0.3)
    g.emit(name, [tensor, mask], **({} if axis is None else {"axis": axis}))


@op("ReverseSequence", weight=0.4)
def reverse_sequence(g, name):
    tensor = g.pick(rank=range(2, 5))
    time = g.between(0, 1)
    if not tensor.is_fixed(1 - time) or min(tensor.dims[time]) < 1:
        raise Rejected("no sequence")
    array = g.generator.integers(1, min(tensor.dims[time]) + 1, tensor.shape[1 - time])
    g.emit(name, [tensor, g.constant(array.astype(np.int64))], batch_axis=1 - time, time_axis=time)


@op("DepthToSpace", weight=0.4)
def depth_to_space(g, name):
    dims = [g.fixed_dim(1, 3), (g.choice([4, 8, 12]),) * g.cases, g.dim(), g.dim()]
    tensor = g.pick(FLOATS, 4, lambda t: t.is_fixed(1) and t.shape[1] % 4 == 0 < t.shape[1], dims)
    g.emit(name, [tensor], blocksize=2, mode=g.choice(["DCR", "CRD"]))


@op("SpaceToDepth", weight=0.4)
def space_to_depth(g, name):
    tensor = g.pick(FLOATS, 4)
    sizes = [n for n in (1, 2, 3) if all(s % n == 0 for d in tensor.dims[2:] for s in d)]
    g.emit(name, [tensor], blocksize=max(sizes))


@op("Shape", weight=0.4)
def shape(g, name):
    tensor = g.pick(low=1)
    attributes = {}
    if g.opset >= 15 and g.chance(0.4):
        attributes = {"start": g.between(-tensor.rank, tensor.rank - 1)}
        if g.chance(0.5):
            attributes["end"] = g.between(1, tensor.rank)
    g.emit(name, [tensor], **attributes)


@op("Size", weight=0.2)
def size(g, name):
    g.emit(name, [g.pick()])


@op("ConstantOfShape", weight=0.4)
def constant_of_shape(g, name):
    value = numpy_helper.from_array(g.elements(g.dtype(), (1,)))
    if g.chance(0.5):
        sizes = g.emit("Shape", [g.pick(low=1)])
    else:
        sizes = g.ints([g.between(1, 5) for _ in range(g.between(0, 3))])
    g.emit(name, [sizes], **({"value": value} if g.chance(0.8) else {}))


@op("EyeLike", weight=0.3)
def eye_like(g, name):
    tensor = g.pick((*FLOATS, "int32", "int64"), 2)
    g.emit(name, [tensor], k=g.between(-2, 2), dtype=number_of(g.choice(["float32", "int64"])))


@op("Range", weight=0.4)
def range_(g, name):
    dtype = g.choice(["int64", "int32", "float32"])
    start, step = g.between(-4, 4), g.choice([1, 2, -1, 3])
    count = g.between(1, 12)
    numbers = [start, start + step * count, step]
    if g.chance(0.5):
        tensors = [g.scalar(number, dtype) for number in numbers]
    else:
        tensors = [g.input(dtype, [], [np.array(number, dtype_of(dtype))] * g.cases)
                   for number in numbers]
    g.emit(name, tensors)


@op("Dropout", weight=0.2)
def dropout(g, name):
    g.emit(name, [g.pick(FLOATS)])


@op("NonMaxSuppression", weight=0.2)
def non_max_suppression(g, name):
    boxes, classes = g.between(4, 12), g.between(1, 3)
    corner = g.generator.uniform(0, 8, (1, boxes, 2))
    size = g.generator.uniform(1, 5, (1, boxes, 2))
    array = np.round(np.concatenate([corner, corner + size], 2) * 64) / 64
    scores = np.round(g.generator.uniform(0, 1, (1, classes, boxes)), 4)
    inputs = []
    for values in (array, scores):
        dims = [(n,) * g.cases for n in values.shape]
        inputs.append(g.input("float32", dims, [values.astype(np.float32)] * g.cases))
    g.emit(name, [*inputs, g.ints([g.between(1, 5)]), g.constant(np.array([0.43], np.float32)),
                  g.constant(np.array([0.21], np.float32)) if g.chance(0.6) else None])


@op("Unique", weight=0.15)
def unique(g, name):
    tensor = g.pick(("float32", "int64"), range(1, 4))
    g.emit(name, [tensor], outputs=4, sorted=1,
           **({"axis": axis_of(g, tensor.rank)} if g.chance(0.4) else {}))


@op("Resize", weight=0.9)
def resize(g, name):
    tensor = g.pick(("float32",), range(3, 5))
    mode = g.choice(["nearest", "linear", "cubic"])
    space = tensor.rank - 2
    if mode == "cubic" and space != 2:
        raise Rejected("cubic needs two axes")
    attributes = {"mode": mode, "coordinate_transformation_mode": g.choice(
        ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])}
    if mode == "nearest":
        attributes["nearest_mode"] = g.choice(
            ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attributes["cubic_coeff_a"] = g.choice([-0.75, -0.5])
    if g.chance(0.6) or not tensor.all_fixed:
        scales = [1.0, 1.0] + [g.choice([0.5, 2.0, 1.5, 3.0, 0.75]) for _ in range(space)]
        g.emit(name, [tensor, None, g.constant(np.array(scales, np.float32))], **attributes)
    else:
        sizes = [*tensor.shape[:2], *(g.between(2, 12) for _ in range(space))]
        g.emit(name, [tensor, None, None, g.ints(sizes)], **attributes)


