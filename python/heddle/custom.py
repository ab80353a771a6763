"""custom: ops of the user's own, as Python or as a library in C (include/heddle/custom_op.h).

SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import os
from dataclasses import dataclass

import numpy as np

from . import arrays, library
from .library import call_everywhere

VERSION, MAX_RANK = 1, 16


class _Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("dims", ctypes.c_int64 * MAX_RANK), ("data", ctypes.c_void_p)]


class _Call(ctypes.Structure):
    _fields_ = [("attributes", ctypes.c_char_p), ("inputs", ctypes.POINTER(_Tensor)),
                ("outputs", ctypes.POINTER(_Tensor)), ("input_count", ctypes.c_int32),
                ("output_count", ctypes.c_int32), ("data", ctypes.c_void_p)]


_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(_Call))


class _Op(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("domain", ctypes.c_char_p),
                ("name", ctypes.c_char_p), ("shape", _FUNCTION), ("compute", _FUNCTION),
                ("data", ctypes.c_void_p)]


@dataclass(frozen=True)
class TensorType:
    """The type of an input or a result, in a shape function."""

    dtype: np.dtype
    shape: tuple


_registered = []  # what C points to must stay


def load_custom_ops(path):
    """Registers the ops of a library: nodes of their domains and names compile from now on."""
    call_everywhere("heddle_custom_op_load", os.fsencode(path))


def custom_op(domain, name, shape):
    """A decorator: the function computes nodes of this domain and name, in this process.

        @heddle.custom_op("org.example", "Scale", shape=lambda x, factor: x)
        def scale(x, factor):
            return x * np.float32(factor)

    Inputs come first, as arrays of the op's own; attributes of the node follow by name: a number,
    a text, or a list of such. `shape` takes TensorTypes in place of arrays and returns that of the
    result, or a list of them; it may depend on nothing else. An exception is the cause of the error
    that the run ends with; KeyboardInterrupt and SystemExit end it as themselves. Models with such
    an op run in this process alone: an artefact that was written to a file asks any other process
    to register the op.
    """

    def register(function):
        number = {arrays.numpy_dtype(n): n for n in arrays.DTYPES if n not in arrays.PACKED}

        def ask_shape(pointer):
            asked = pointer.contents
            inputs = [TensorType(arrays.numpy_dtype(t.dtype), _shape(t)) for t in _inputs(asked)]
            found = _listed(shape(*inputs, **_attributes(asked)))
            for output, about in zip(_outputs(asked, found), found):
                output.dtype = number[np.dtype(about.dtype)]
                output.rank = len(about.shape)
                output.dims[: output.rank] = [int(size) for size in about.shape]

        def compute(pointer):
            asked = pointer.contents
            inputs = [_view(tensor).copy() for tensor in _inputs(asked)]  # the op may keep them
            found = _listed(function(*inputs, **_attributes(asked)))
            for output, value in zip(_outputs(asked, found), found):
                room, value = _view(output), np.asarray(value)
                if (value.shape, value.dtype) != (room.shape, room.dtype):
                    raise ValueError(f"{domain}.{name} gave {value.dtype}{list(value.shape)}, but "
                                     f"its shape function {room.dtype}{list(room.shape)}")
                room[...] = value

        op = _Op(VERSION, domain.encode(), name.encode(), _guarded(ask_shape), _guarded(compute))
        call_everywhere("heddle_custom_op_register", ctypes.addressof(op))
        _registered.append(op)
        return function

    return register


def _guarded(function):
    """As C calls it: an exception becomes the number 1, and is raised where C returns."""
    return _FUNCTION(library.extension.guarded(function, library.raised))


def _listed(found):
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _inputs(asked):
    return [asked.inputs[i] for i in range(asked.input_count)]


def _outputs(asked, found):
    if len(found) != asked.output_count:
        raise ValueError(f"{len(found)} results, but the node has {asked.output_count}")
    return [asked.outputs[i] for i in range(asked.output_count)]


def _shape(tensor):
    return tuple(tensor.dims[: tensor.rank])


def _view(tensor):
    """The memory of a tensor as an array."""
    dtype, shape = arrays.numpy_dtype(tensor.dtype), _shape(tensor)
    if 0 in shape:
        return np.empty(shape, dtype)
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer((ctypes.c_uint8 * count).from_address(tensor.data), dtype).reshape(shape)


def _attributes(asked):
    lines = os.fsdecode(asked.attributes or b"").splitlines()
    return {name: _value(text) for name, _, text in (line.partition("=") for line in lines)}


def _value(text):
    """A number where it is one, a list where all of its words are."""
    for kind in (int, float):
        try:
            values = [kind(word) for word in text.split()]
        except ValueError:
            continue
        if values:
            return values[0] if len(values) == 1 else values
    return text
