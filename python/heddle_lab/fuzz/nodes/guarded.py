"""guarded: arrays that end where readable memory ends, and runs that use nothing else.

One element read or written beyond an array is a fault at once; so is what lies before it by less
than the bytes that alignment leaves. Arrays lie at the end of a mapping, or with `low` at the
begin of one.
SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import math
import mmap
import re

import numpy as np

PAGE = mmap.PAGESIZE
PACKED = re.compile("string|u?int[24]$|float4")  # what runs allocate themselves
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
    fed = {name: copied(array, low) if isinstance(array, np.ndarray) else array
           for name, array in feeds.items()}
    infos, shapes = session.get_outputs(), session.output_shapes(fed)
    out = {info.name: empty(shapes[info.name], info.numpy_dtype, low) for info in infos
           if shapes[info.name] is not None and is_placed(info, shapes[info.name])}
    return {info.name: value for info, value in zip(infos, session.run(None, fed, out=out))}


def is_placed(info, shape):
    """Tells whether a run stores such a result in the caller's memory, of at most 64 MiB."""
    kind = re.fullmatch(r"tensor\((\w+)\)", info.type)
    return kind and not PACKED.match(kind[1]) and \
        math.prod(shape) * info.numpy_dtype.itemsize <= 1 << 26
