"""arrays: between NumPy and tensors of the C API.

Takes anything with __dlpack__, the array interface or the buffer protocol; gives NumPy arrays.
SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import weakref

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


def to_array(value):
    """Anything array-like as a NumPy array, without a copy where that can be."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError) as error:
            if not hasattr(value, "__array__"):
                raise UsageError(f"cannot take {type(value).__name__}: {error}") from None
    return np.asarray(value)


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


def string_tensor(array, name):
    """A tensor of strings, and what must outlive it. Bytes go as they are, str as UTF-8."""
    if array.dtype.kind not in "OUST":
        raise UsageError(f"input '{name}': its elements are {array.dtype}, but str is allowed")
    texts = array.reshape(-1).tolist()
    for text in texts:
        if not isinstance(text, (str, bytes)):
            raise UsageError(
                f"input '{name}': it holds a {type(text).__name__}, but str is allowed"
            )
    encoded = [text if isinstance(text, bytes) else text.encode() for text in texts]
    blob = np.frombuffer(b"".join(encoded) + b"\0", np.uint8)
    strings = (library.String * max(len(encoded), 1))()
    place = blob.ctypes.data
    for i, text in enumerate(encoded):
        strings[i].data, strings[i].size = place, len(text)
        place += len(text)
    tensor = Tensor(ctypes.addressof(strings), ctypes.sizeof(strings), STRING, array.ndim)
    tensor.dims[: array.ndim] = array.shape
    return tensor, (strings, blob)


def list_tensor(values, info):
    """A sequence or an optional; None for what is absent."""
    if values is None and info.kind == library.SEQUENCE:
        raise UsageError(f"input '{info.name}': it is None, but a list is allowed")
    tensor = Tensor(None, 0, SEQUENCE, 1)
    if values is None:
        tensor.dims[0] = -1
        return tensor, None
    if info.kind == library.OPTIONAL:
        values = [values]
    if not isinstance(values, (list, tuple)):
        raise UsageError(
            f"input '{info.name}': it is a {type(values).__name__}, but a list is allowed"
        )
    items, alive = (Tensor * max(len(values), 1))(), []
    for i, value in enumerate(values):
        items[i], kept = tensor_of(value, info)
        alive.append(kept)
    tensor.data, tensor.bytes = ctypes.addressof(items), ctypes.sizeof(items)
    tensor.dims[0] = len(values)
    return tensor, (items, alive)


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


def feed(value, info):
    """A tensor of the C API for one input, and what must outlive it."""
    return tensor_of(value, info) if info.kind == library.TENSOR else list_tensor(value, info)


def tensor_of(value, info):
    """A tensor of the C API, and the array that must outlive it."""
    try:
        array = to_array(value)
    except ValueError as error:
        raise UsageError(f"input '{info.name}': {error}") from None
    if array.ndim > library.MAX_RANK:
        raise UsageError(
            f"input '{info.name}': its rank is {array.ndim}, but {info.rank} is allowed"
        )
    if info.dtype == STRING:
        return string_tensor(array, info.name)
    wanted, number = numpy_dtype(info.dtype), NUMBERS.get(array.dtype.name)
    if info.dtype in RAW and array.dtype == np.dtype(RAW[info.dtype]):
        number = info.dtype  # the bits of a dtype that NumPy lacks
    if number is None:
        raise UsageError(
            f"input '{info.name}': its elements are {array.dtype}, but {wanted} is allowed"
        )
    shape = array.shape
    if number in PACKED:
        array = pack(array, PACKED[number])
    else:
        array = np.require(array, requirements="CA")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    tensor = Tensor(array.ctypes.data, array.nbytes, number, len(shape))
    tensor.dims[: len(shape)] = shape
    return tensor, array


def adopt(tensor, kind):
    """What the runtime allocated: an array over its memory, freed with the array.

    Strings and lists are copied."""
    if tensor.dtype in (STRING, SEQUENCE):
        try:
            return copied(tensor, kind)
        finally:
            library.call("heddle_tensor_release", tensor)
    shape = tuple(tensor.dims[: tensor.rank])
    if not tensor.data:  # a result without elements may have no memory
        library.call("heddle_tensor_release", tensor)
        return _shaped(np.empty(0, np.uint8), tensor.dtype, shape)
    held = Tensor.from_buffer_copy(tensor)
    block = (ctypes.c_uint8 * tensor.bytes).from_address(tensor.data)
    release = weakref.finalize(block, library.call, "heddle_tensor_release", held)
    release.atexit = False  # an array may outlive this module then
    return _shaped(np.frombuffer(block, np.uint8), tensor.dtype, shape)


def copied(tensor, kind=library.TENSOR):
    """An array, a list of arrays, or None: the elements of a tensor that does not live long."""
    shape = tuple(tensor.dims[: tensor.rank])
    if tensor.dtype == SEQUENCE:
        if shape[0] < 0:
            return None
        items = (Tensor * shape[0]).from_address(tensor.data) if shape[0] else ()
        arrays = [copied(item) for item in items]
        return arrays[0] if kind == library.OPTIONAL else arrays
    if tensor.dtype == STRING:
        count = int(np.prod(shape, dtype=np.int64))
        strings = (library.String * count).from_address(tensor.data) if count else ()
        texts = [ctypes.string_at(s.data, s.size).decode(errors="surrogateescape") for s in strings]
        array = np.empty(count, object)
        array[:] = texts
        return array.reshape(shape)
    flat = np.frombuffer(ctypes.string_at(tensor.data, tensor.bytes), np.uint8)
    return _shaped(flat, tensor.dtype, shape)


def _shaped(flat, number, shape):
    if number in PACKED:
        return unpack(flat, number, shape)
    return flat.view(numpy_dtype(number)).reshape(shape)


def present(array, info):
    """An output as ONNX Runtime gives it: maps as a list of dicts."""
    if info.encoding in (library.MAP, library.INT_MAP):
        keys = info.keys
        return [dict(zip(keys, row)) for row in array.reshape(-1, len(keys)).tolist()]
    return array
