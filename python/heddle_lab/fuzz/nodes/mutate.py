"""mutate: a case, changed in a few ways that may leave it legal or not.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import numpy as np
import onnx
from onnx import AttributeProto, helper

from .case import FORMS, is_integer, limits

SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33)
MOST_ELEMENTS = 1 << 14
NUMBERS = (-2**63, 2**63 - 1, -2**31, 2**31, 2**40, -2**40, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 100)
# An infinite attribute is legal nearly nowhere, so the values that inputs get have them alone.
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -5.0, 1e-3, 1e30)
ODD = (*FLOATS, float("inf"), float("-inf"), float("nan"))


@functools.cache
def schemas(op, domain):
    """All versions of an op that ONNX has a schema for, from old to new."""
    found = [s for s in onnx.defs.get_all_schemas_with_history()
             if s.name == op and s.domain == domain]
    return sorted(found, key=lambda s: s.since_version)


@functools.cache
def newest_opset(domain):
    return max((s.since_version for s in onnx.defs.get_all_schemas_with_history()
                if s.domain == domain), default=1)


def schema_at(case):
    """The schema that holds for the case, or None."""
    return next((s for s in reversed(schemas(case.op, case.domain))
                 if s.since_version <= case.opset), None)


def drawn_array(rng, shape, dtype):
    """Values of a dtype: small ones, with now and then an odd one."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == bool:
        return np.array([rng.random() < 0.5 for _ in range(count)], bool).reshape(shape)
    if dtype == object:
        texts = ["", "a", "b", "Aa b", "ü", "1.5", "-3", "a\n\x1b[31m"]
        flat = np.empty(count, object)
        flat[:] = [rng.choice(texts) for _ in range(count)]
        return flat.reshape(shape)
    if is_integer(dtype):
        low, high = limits(dtype)
        values = [rng.randint(max(low, -8), min(high, 8)) for _ in range(count)]
        return np.array(values, np.int64).astype(dtype).reshape(shape)
    values = np.array([rng.gauss(0, 2) for _ in range(count)])
    return values.reshape(shape).astype(dtype)


def resized(rng, array, shape):
    """The array with other sizes, filled with what it held."""
    if array.size == 0:
        return drawn_array(rng, shape, array.dtype)
    count = int(np.prod(shape, dtype=np.int64))
    flat = array.reshape(-1)
    return flat[np.arange(count) % flat.size].reshape(shape)


def present(case):
    return [i for i, array in enumerate(case.inputs) if array is not None]


def pick_input(rng, case):
    some = present(case)
    return rng.choice(some) if some else None


def fits(shape):
    return int(np.prod(shape, dtype=np.int64)) <= MOST_ELEMENTS


def change_opset(rng, case):
    # Before opset 7 broadcasting was spelt otherwise: neither peer takes such models.
    newest = newest_opset(case.domain)
    case.opset = rng.randint(7, newest) if case.domain == "" else rng.randint(1, max(newest, 1))


def change_attribute(rng, case):
    schema = schema_at(case)
    names = sorted({*(schema.attributes if schema else ()), *(a.name for a in case.attributes)})
    if not names:
        return
    name = rng.choice(names)
    old = next((a for a in case.attributes if a.name == name), None)
    case.attributes = [a for a in case.attributes if a.name != name]
    if old is not None and rng.random() < 0.2:
        return
    kind = old.type if old is not None else int(schema.attributes[name].type.value)
    made = new_attribute(rng, case, name, kind, old)
    if made is not None:
        case.attributes.append(made)


def changed_list(rng, case, values, draw):
    values = list(values)
    way = rng.randrange(5)
    if way == 0 and values:
        values[rng.randrange(len(values))] = draw()
    elif way == 1 and values:
        del values[rng.randrange(len(values))]
    elif way == 2:
        values.insert(rng.randint(0, len(values)), draw())
    elif way == 3:
        rng.shuffle(values)
    else:
        ranks = [case.inputs[i].ndim for i in present(case)] or [2]
        count = max(0, rng.choice(ranks) + rng.choice((0, 0, -1, -2, 1)))
        values = [draw() for _ in range(rng.choice((count, 2 * count, len(values))))]
    return values


def new_attribute(rng, case, name, kind, old):
    def number():
        return rng.choice(NUMBERS) if rng.random() < 0.5 else rng.randint(0, 3)

    def floating():
        return rng.choice(FLOATS) if rng.random() < 0.5 else rng.uniform(-2, 2)

    if kind == AttributeProto.INT:
        value = old.i + rng.choice((-1, 1)) if old is not None and rng.random() < 0.3 else number()
        if name == "to" or name == "dtype" or name.endswith("_type"):
            value = rng.randint(0, 27)
        return helper.make_attribute(name, max(-2**63, min(2**63 - 1, value)))
    if kind == AttributeProto.FLOAT:
        return helper.make_attribute(name, float(floating()))
    if kind == AttributeProto.STRING:
        return helper.make_attribute(name, rng.choice(texts_of(case.op, name)))
    if kind == AttributeProto.INTS:
        values = changed_list(rng, case, old.ints if old is not None else (), number)
        return helper.make_attribute(name, values, attr_type=kind)
    if kind == AttributeProto.FLOATS:
        values = changed_list(rng, case, old.floats if old is not None else (), floating)
        return helper.make_attribute(name, [float(v) for v in values], attr_type=kind)
    if kind == AttributeProto.STRINGS:
        values = changed_list(rng, case, old.strings if old is not None else (), lambda: b"c")
        return helper.make_attribute(name, values, attr_type=kind)
    return old


@functools.cache
def texts_of(op, name):
    """Values of this attribute in legal cases, and some that no legal case has."""
    from .seeds import seeds

    known = {a.s.decode() for case in seeds() if case.op == op for a in case.attributes
             if a.name == name and a.type == AttributeProto.STRING}
    return (*sorted(known), *sorted(known), "", "no such word")


def change_size(rng, case):
    """One size, everywhere where it is or at one place."""
    i = pick_input(rng, case)
    if i is None or case.inputs[i].ndim == 0:
        return
    axis = rng.randrange(case.inputs[i].ndim)
    old, new = case.inputs[i].shape[axis], rng.choice(SIZES)
    everywhere = rng.random() < 0.7
    for k in present(case):
        shape = list(case.inputs[k].shape)
        for a, size in enumerate(shape):
            if size == old and (everywhere or (k, a) == (i, axis)):
                shape[a] = new
        if tuple(shape) != case.inputs[k].shape and fits(shape):
            case.inputs[k] = resized(rng, case.inputs[k], shape)


def change_rank(rng, case):
    """An axis of size 1 more, or one axis less, of one input or of all of that rank."""
    i = pick_input(rng, case)
    if i is None:
        return
    rank = case.inputs[i].ndim
    grows = rank == 0 or rng.random() < 0.5
    axis = rng.randint(0, rank) if grows else rng.randrange(rank)
    everywhere = rng.random() < 0.5
    for k in present(case):
        shape = list(case.inputs[k].shape)
        if k != i and not (everywhere and len(shape) == rank):
            continue
        if grows:
            shape.insert(axis, 1)
        else:
            del shape[axis]
        case.inputs[k] = resized(rng, case.inputs[k], shape)


def broadcast_one(rng, case):
    """A size becomes 1, or leading axes go: what broadcasts, stays legal."""
    i = pick_input(rng, case)
    if i is None or case.inputs[i].ndim == 0:
        return
    shape = list(case.inputs[i].shape)
    if rng.random() < 0.5:
        shape[rng.randrange(len(shape))] = 1
    else:
        shape = shape[rng.randint(1, len(shape)):]
    case.inputs[i] = resized(rng, case.inputs[i], shape)


def dtypes_of(schema, i):
    """NumPy dtypes that the schema allows for an input, and the name of their variable."""
    formal = schema.inputs[min(i, len(schema.inputs) - 1)]
    kinds = formal.types
    numbers = [helper.TensorProto.DataType.Value(NAMES.get(k[7:-1], k[7:-1]).upper())
               for k in kinds if k.startswith("tensor(")]
    return [helper.tensor_dtype_to_np_dtype(number) for number in sorted(numbers)
            if number != 8], formal.type_str


NAMES = {"float8e4m3fn": "FLOAT8E4M3FN"}


def change_dtype(rng, case):
    schema, i = schema_at(case), pick_input(rng, case)
    if schema is None or i is None or not schema.inputs:
        return
    known, variable = dtypes_of(schema, i)
    if not known or rng.random() < 0.1:
        known = [np.dtype(name) for name in ("float32", "int64", "int32", "bool", "uint8")]
    dtype = rng.choice(known)
    for k in present(case):
        formal = schema.inputs[min(k, len(schema.inputs) - 1)]
        if k == i or formal.type_str == variable:
            array = case.inputs[k]
            case.inputs[k] = drawn_array(rng, array.shape, dtype) if array.dtype == object \
                else cast(array, dtype)


def cast(array, dtype):
    with np.errstate(all="ignore"):
        if dtype == object:
            return array.astype(str).astype(object)
        if array.dtype.name not in np.sctypeDict:
            array = array.astype(np.float32)
        if is_integer(dtype) and array.dtype.kind == "f":
            array = np.nan_to_num(array, posinf=0, neginf=0).astype(np.int64)
        return array.astype(dtype)


def change_values(rng, case):
    i = pick_input(rng, case)
    if i is None or case.inputs[i].size == 0:
        return
    # Padding that meets an infinite weight is left open: 0 times it, or nothing at all.
    values = FLOATS if i == 1 and "Conv" in case.op else ODD
    array = case.inputs[i]
    if rng.random() < 0.5:
        case.inputs[i] = drawn_array(rng, array.shape, array.dtype)
        return
    flat = array.copy().reshape(-1)
    if flat.dtype == object or flat.dtype == bool or flat.dtype.kind == "c":
        return
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(flat.size)
        if is_integer(flat.dtype):
            low, high = limits(flat.dtype)
            small = rng.choice((-1, 0, 1, 2, flat.size, -flat.size))
            value = rng.choice((*NUMBERS, low, high, small, small))
            flat[at] = np.int64(value).astype(flat.dtype) if low <= value <= high else 0
        else:
            with np.errstate(all="ignore"):
                flat[at] = np.float64(rng.choice(values)).astype(flat.dtype)
    case.inputs[i] = flat.reshape(array.shape)


def change_extreme(rng, case):
    """An integer of an attribute or of an input as far out as its type allows."""
    places = [a for a in case.attributes
              if a.type == AttributeProto.INT or a.type == AttributeProto.INTS and a.ints]
    places += [i for i in present(case) if case.inputs[i].size and is_integer(case.inputs[i].dtype)]
    if not places:
        return
    place, one = rng.choice(places), rng.choice((0, 0, 1))
    if isinstance(place, int):
        flat = case.inputs[place].copy().reshape(-1)
        low, high = limits(flat.dtype)
        value = rng.choice((low + one, high - one))
        flat[rng.randrange(flat.size)] = np.array(value).astype(flat.dtype)
        case.inputs[place] = flat.reshape(case.inputs[place].shape)
        return
    value = rng.choice((-2**63 + one, 2**63 - 1 - one))
    if place.type == AttributeProto.INT:
        place.i = value
    else:
        place.ints[rng.randrange(len(place.ints))] = value


def change_count(rng, case):
    """An optional input left out, one more, or another number of outputs."""
    way = rng.randrange(3)
    if way == 0 and case.inputs:
        case.inputs[rng.randrange(len(case.inputs))] = None
    elif way == 1 and present(case):
        case.inputs.append(case.inputs[rng.choice(present(case))])
        case.forms.append("fixed")
    else:
        case.outputs = max(1, case.outputs + rng.choice((-1, 1)))


CHANGES = ((change_attribute, 5), (change_size, 5), (change_dtype, 3), (change_values, 3),
           (broadcast_one, 2), (change_rank, 2), (change_opset, 2), (change_count, 1),
           (change_extreme, 2))


def draw_forms(rng, case):
    style = rng.choice(("fixed", "symbols", "shared", "open", "mixed", "mixed"))
    for i in present(case):
        form = rng.choice(FORMS) if style == "mixed" else style
        # A list of sizes or axes is often a constant, and many models mean nothing where it is not.
        if case.inputs[i].dtype == np.int64 and case.inputs[i].ndim <= 1 and rng.random() < 0.5:
            form = "constant"
        case.forms[i] = form


def mutate(rng, case):
    """A changed copy of the case."""
    case = case.copy()
    changes, weights = zip(*CHANGES)
    for change in rng.choices(changes, weights, k=rng.choice((0, 1, 1, 2, 2, 3, 4))):
        change(rng, case)
    draw_forms(rng, case)
    return case
