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
}
PACKED = {21, 22, 23}  # two elements a byte
RAW = {16: "uint16", 17: "uint8", 18: "uint8", 19: "uint8", 20: "uint8"}  # without ml_dtypes
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


def pack(array):
    """4-bit elements, one a byte, as the two a byte of the C API."""
    flat = np.ascontiguousarray(array).view(np.uint8).reshape(-1) & 15
    if flat.size % 2:
        flat = np.append(flat, np.uint8(0))
    return flat[0::2] | (flat[1::2] << 4)


def unpack(packed, number, shape):
    count = int(np.prod(shape, dtype=np.int64))
    flat = np.empty(packed.size * 2, np.uint8)
    flat[0::2] = packed & 15
    flat[1::2] = packed >> 4
    flat = flat[:count]
    if number == 22:  # ml_dtypes keeps int4 sign-extended
        flat = ((flat ^ 8).astype(np.int8) - 8).view(np.uint8)
    return flat.view(numpy_dtype(number)).reshape(shape)


def from_labels(array, labels, name):
    """Strings as indices into labels; -1 for a string that the model does not know."""
    index = {label: i for i, label in enumerate(labels)}
    if array.dtype.kind not in "OUST":
        raise UsageError(f"input '{name}': its elements are {array.dtype}, but str is allowed")
    texts = (t.decode() if isinstance(t, bytes) else str(t) for t in array.reshape(-1).tolist())
    return np.array([index.get(text, -1) for text in texts], np.int64).reshape(array.shape)


def to_labels(array, labels):
    table = np.array([*labels, ""], dtype=object)  # -1, "none", is the last one
    return table[array]


def feed(value, info):
    """A tensor of the C API for one input, and the array that must outlive it."""
    try:
        array = to_array(value)
    except ValueError as error:
        raise UsageError(f"input '{info.name}': {error}") from None
    if info.encoding == library.LABELS:
        array = from_labels(array, info.labels, info.name)
    wanted, number = numpy_dtype(info.dtype), NUMBERS.get(array.dtype.name)
    if info.dtype in RAW and array.dtype == np.dtype(RAW[info.dtype]):
        number = info.dtype  # the bits of a dtype that NumPy lacks
    if number is None:
        raise UsageError(
            f"input '{info.name}': its elements are {array.dtype}, but {wanted} is allowed"
        )
    if array.ndim > library.MAX_RANK:
        raise UsageError(
            f"input '{info.name}': its rank is {array.ndim}, but {info.rank} is allowed"
        )
    shape = array.shape
    array = pack(array) if number in PACKED else np.require(array, requirements="CA")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    tensor = Tensor(array.ctypes.data, array.nbytes, number, len(shape))
    tensor.dims[: len(shape)] = shape
    return tensor, array


def adopt(tensor, number):
    """An array over memory that the runtime allocated, freed with the array."""
    shape = tuple(tensor.dims[: tensor.rank])
    held = Tensor.from_buffer_copy(tensor)
    block = (ctypes.c_uint8 * tensor.bytes).from_address(tensor.data)
    release = weakref.finalize(block, library.call, "heddle_tensor_release", held)
    release.atexit = False  # an array may outlive this module then
    return _shaped(np.frombuffer(block, np.uint8), number, shape)


def copied(tensor):
    """An array with a tensor's elements, for tensors that do not live long."""
    flat = np.frombuffer(ctypes.string_at(tensor.data, tensor.bytes), np.uint8)
    return _shaped(flat, tensor.dtype, tuple(tensor.dims[: tensor.rank]))


def _shaped(flat, number, shape):
    if number in PACKED:
        return unpack(flat, number, shape)
    return flat.view(numpy_dtype(number)).reshape(shape)


def present(array, info):
    """An output as ONNX Runtime gives it: labels as str, maps as a list of dicts."""
    if info.encoding == library.LABELS:
        return to_labels(array, info.labels)
    if info.encoding in (library.MAP, library.INT_MAP):
        keys = info.keys
        return [dict(zip(keys, row)) for row in array.reshape(-1, len(keys)).tolist()]
    return array
