"""guarded: arrays that end where readable memory ends, and runs that use nothing else.

One element read or written beyond an array is a fault at once; so is what lies before it by less
than the bytes that alignment leaves. Arrays lie at the end of a mapping, or with `low` at the
begin of one.
SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import mmap

import numpy as np

from heddle import arrays
from heddle.library import Tensor, call

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def empty(shape, dtype, low=False):
    """An array with unreadable pages around it, right after its last (or before its first)."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    size = count * dtype.itemsize
    pages = -(-size // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (0, pages + 1):
        if _libc.mprotect(address + page * PAGE, PAGE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    start = PAGE if low else (pages + 1) * PAGE - size
    return np.frombuffer(memory, dtype, count, start).reshape(shape)


def copied(array, low=False):
    if array.dtype == object:
        return array
    result = empty(array.shape, array.dtype, low)
    result[...] = array
    return result


def run(session, feeds, low=False):
    """All results of one run, whose inputs and outputs are guarded where sizes are known before."""
    inputs, outputs = session.get_inputs(), session.get_outputs()
    tensors, given, alive = (Tensor * len(inputs))(), (Tensor * len(outputs))(), []
    for i, info in enumerate(inputs):
        array = feeds[info.name]
        if isinstance(array, np.ndarray) and info.dtype not in arrays.PACKED:
            array = copied(array, low)
        tensors[i], kept = arrays.feed(array, info)
        alive.append(kept)
    sizes = (tensors, len(inputs), given, len(outputs))
    call("heddle_session_output_shapes", session._handle, *sizes)
    results = [None] * len(outputs)
    for i, tensor in enumerate(given):
        if 0 <= tensor.bytes <= 1 << 26 and tensor.dtype not in arrays.PACKED:
            results[i] = empty(tuple(tensor.dims[:tensor.rank]), arrays.numpy_dtype(tensor.dtype),
                               low)
            tensor.data, tensor.bytes = results[i].ctypes.data, results[i].nbytes
        else:
            tensor.data, tensor.bytes = None, 0
    call("heddle_session_run", session._handle, *sizes)
    del alive
    return {info.name: arrays.present(
        results[i] if results[i] is not None else arrays.adopt(given[i], info.kind), info)
            for i, info in enumerate(outputs)}
