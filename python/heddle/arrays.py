"""arrays: types of elements, and what the extension leaves to Python: elements of a few bits, maps,
and messages about feeds that do not fit. SPDX-License-Identifier: Apache-2.0
"""

import ctypes
from collections.abc import Mapping

import numpy as np

from . import library
from .library import Error, Tensor, UsageError

# onnx.TensorProto.DataType -> (ONNX Runtime's name, NumPy's or ml_dtypes' name)
DTYPES = {
    1: ("float", "float32"),
    2: ("uint8", "uint8"),
    3: ("int8", "int8"),
    4: ("uint16", "uint16"),
    5: ("int16", "int16"),
    6: ("int32", "int32"),
    7: ("int64", "int64"),
    8: ("string", "object"),
    9: ("bool", "bool"),
    10: ("float16", "float16"),
    11: ("double", "float64"),
    12: ("uint32", "uint32"),
    13: ("uint64", "uint64"),
    14: ("complex64", "complex64"),
    15: ("complex128", "complex128"),
    16: ("bfloat16", "bfloat16"),
    17: ("float8e4m3fn", "float8_e4m3fn"),
    18: ("float8e4m3fnuz", "float8_e4m3fnuz"),
    19: ("float8e5m2", "float8_e5m2"),
    20: ("float8e5m2fnuz", "float8_e5m2fnuz"),
    21: ("uint4", "uint4"),
    22: ("int4", "int4"),
    23: ("float4e2m1", "float4_e2m1fn"),
    24: ("float8e8m0", "float8_e8m0fnu"),
    25: ("uint2", "uint2"),
    26: ("int2", "int2"),
}
STRING, SEQUENCE = 8, 256
PACKED = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}  # bits of an element, of which a byte holds several
RAW = {16: "uint16"} | {number: "uint8" for number in (17, 18, 19, 20, 24)}  # without ml_dtypes
NUMBERS = {name: number for number, (_, name) in DTYPES.items() if name != "object"}


def numpy_dtype(number):
    """The NumPy dtype; for what NumPy lacks that of ml_dtypes, or else the bits as integers."""
    name = DTYPES[number][1]
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        if number in RAW:
            return np.dtype(RAW[number])
        raise Error(f"arrays of {name} need the Python package ml_dtypes") from None


def number_of(dtype):
    """onnx.TensorProto.DataType of a NumPy dtype, or 0."""
    return NUMBERS.get(dtype.name, 0)


def pack(array, bits=4):
    """Elements of a few bits, one a byte, as the several a byte of the C API."""
    each = 8 // bits
    flat = np.ascontiguousarray(array).view(np.uint8).reshape(-1) & ((1 << bits) - 1)
    flat = np.append(flat, np.zeros(-flat.size % each, np.uint8)).reshape(-1, each)
    shifts = np.arange(each, dtype=np.uint8) * bits
    return np.bitwise_or.reduce(flat << shifts, axis=1).astype(np.uint8)


def unpack(packed, number, shape):
    bits = PACKED[number]
    count = int(np.prod(shape, dtype=np.int64))
    shifts = np.arange(8 // bits, dtype=np.uint8) * bits
    flat = (packed.reshape(-1, 1) >> shifts & ((1 << bits) - 1)).reshape(-1)[:count]
    if number in (22, 26):  # ml_dtypes keeps signed ones sign-extended
        sign = 1 << (bits - 1)
        flat = (flat ^ sign).astype(np.int8) - sign
    return flat.astype(np.int8).view(numpy_dtype(number)).reshape(shape)


def unpack_bytes(data, number, shape):
    return unpack(np.frombuffer(data, np.uint8), number, shape)


def split_maps(feeds, infos):
    """Feeds in which a dict is the keys, in ascending order, and the values of a map."""
    if not any(isinstance(value, dict) for value in feeds.values()):
        return feeds
    types = {info.name: info.dtype for info in infos}
    split = {}
    for name, value in feeds.items():
        if not isinstance(value, dict) or f"{name}.keys" not in types:
            split[name] = value
            continue
        order = sorted(value)
        for part, entries in (("keys", order), ("values", [value[key] for key in order])):
            part = f"{name}.{part}"
            split[part] = np.array(entries, numpy_dtype(types[part]))
    return split


def complete(feeds, infos, bound=()):
    """The dict of all inputs that a run takes, but for those that are bound, from feeds that are
    not that already."""
    if not isinstance(feeds, Mapping):
        raise UsageError(
            f"the feeds are a {type(feeds).__name__}, but {{name of an input: array}} is allowed"
        )
    feeds = split_maps(feeds, infos)
    known = [info.name for info in infos]
    missing = [name for name in known if name not in feeds and name not in bound]
    wrong = [name for name in feeds if name not in known]
    if missing or wrong:
        raise UsageError(
            "wrong inputs:"
            + (f" {missing} are missing" if missing else "")
            + (";" if missing and wrong else "")
            + (f" {wrong} are not known" if wrong else "")
            + f"; the model takes {known}"
        )
    return {name: feeds[name] for name in known if name in feeds}


def feed(value, info):
    """A structure of the C API for one input, and what must outlive it."""
    held = library.extension.Tensor(value, info.name, info.dtype, info.kind)
    return Tensor.from_buffer_copy(Tensor.from_address(held._structure)), held


def adopt(tensor, kind):
    """The array of what a run of the C API allocated, freed with the array."""
    return library.extension.adopt(ctypes.addressof(tensor), kind)


def copied(tensor, kind=library.TENSOR):
    """An array, a list of arrays, or None: the elements of a tensor that does not live long."""
    return library.extension.copy(ctypes.addressof(tensor), kind)


def present(array, info):
    """An output as ONNX Runtime gives it: maps as a list of dicts."""
    if info.encoding in (library.MAP, library.INT_MAP):
        keys = info.keys
        return [dict(zip(keys, row)) for row in array.reshape(-1, len(keys)).tolist()]
    return array
