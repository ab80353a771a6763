"""library: libheddle.so and libheddle_runtime.so: where they are found, their structures, errors.

Runs go through the extension (python/extension), which is loaded with the package. What is rare,
compiling and loading, goes through ctypes: `call(name, ...)` raises what a status says. A library
is loaded at the first call, so that importing the package costs next to nothing: the runtime alone
where nothing was compiled before, since the compiler takes 65 MB and as much time as a small model.
SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import stat
import threading
from ctypes import (POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint64,
                    c_void_p)
from pathlib import Path

from .options import CompileOptions


class Error(Exception):
    """A failure of Heddle; the base of all below. `code` is the exit status of a command that
    ends with it."""

    code = 5


class UsageError(Error, ValueError):
    """The caller's mistake: a missing file, a wrong feed, a bad option."""

    code = 2


class RefusedError(Error):
    """A model or artefact that Heddle does not accept."""

    code = 3


class LimitError(Error, MemoryError):
    """Out of memory, or a size too large for this machine."""

    code = 4


class InternalError(Error):
    """A mistake in Heddle."""


class DiffersError(Error):
    """Numbers differ from the reference."""

    code = 1


ERRORS = {kind.code: kind for kind in (DiffersError, UsageError, RefusedError, LimitError,
                                       InternalError)}

MAX_RANK = 16
UNKNOWN = -1
DENSE, MAP, INT_MAP = 0, 2, 3
TENSOR, SEQUENCE, OPTIONAL, OPTIONAL_SEQUENCE, ANY_RANK = 0, 1, 2, 3, 4


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("bytes", c_int64),
        ("dtype", c_int32),
        ("rank", c_int32),
        ("dims", c_int64 * MAX_RANK),
        ("owner", c_void_p),
    ]


class Dim(ctypes.Structure):
    _fields_ = [("value", c_int64), ("text", c_char_p)]


class Value(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int32),
        ("rank", c_int32),
        ("dims", POINTER(Dim)),
        ("encoding", c_int32),
        ("label_count", c_int32),
        ("labels", POINTER(c_char_p)),
        ("kind", c_int32),
        ("shares", c_int32),
    ]


class ModuleInfo(ctypes.Structure):
    _fields_ = [
        ("model", c_char_p),
        ("producer", c_char_p),
        ("target", c_char_p),
        ("features", c_char_p),
        ("weights_bytes", c_int64),
        ("flops", c_double),
    ]


class Memory(ctypes.Structure):
    _fields_ = [
        ("arena_bytes", c_int64),
        ("scratch_bytes", c_int64),
        ("held_bytes", c_int64),
        ("peak_bytes", c_int64),
        ("kept_bytes", c_int64),
        ("device_bytes", c_int64),
    ]


Profile = ctypes.CFUNCTYPE(None, c_void_p, c_int64, c_int64)
Each = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p, c_char_p, POINTER(Tensor))


HANDLE, TENSORS = c_void_p, POINTER(Tensor)
STATUS = c_void_p

# name -> (result, arguments); a STATUS result raises when it is not NULL.
PROTOTYPES = {
    "heddle_custom_op_load": (STATUS, [c_char_p]),
    "heddle_custom_op_register": (STATUS, [c_void_p]),
    "heddle_status_code": (c_int, [STATUS]),
    "heddle_status_message": (c_char_p, [STATUS]),
    "heddle_status_destroy": (None, [STATUS]),
    "heddle_version": (c_char_p, []),
    "heddle_module_load": (STATUS, [c_char_p, POINTER(HANDLE)]),
    "heddle_module_verify": (STATUS, [c_char_p]),
    "heddle_module_destroy": (None, [HANDLE]),
    "heddle_module_info": (ModuleInfo, [HANDLE]),
    "heddle_module_input_count": (c_size_t, [HANDLE]),
    "heddle_module_output_count": (c_size_t, [HANDLE]),
    "heddle_module_input": (POINTER(Value), [HANDLE, c_size_t]),
    "heddle_module_output": (POINTER(Value), [HANDLE, c_size_t]),
    "heddle_session_output_shapes": (STATUS, [HANDLE, TENSORS, c_size_t, TENSORS, c_size_t]),
    "heddle_session_run": (STATUS, [HANDLE, TENSORS, c_size_t, TENSORS, c_size_t]),
    "heddle_session_memory": (Memory, [HANDLE]),
    "heddle_session_threads": (c_int, [HANDLE]),
    "heddle_session_seed": (None, [HANDLE, c_uint64]),
    "heddle_compile_options_check": (STATUS, [POINTER(CompileOptions)]),
    "heddle_compile": (STATUS, [c_char_p, POINTER(CompileOptions), POINTER(HANDLE)]),
    "heddle_compile_bytes": (
        STATUS,
        [c_char_p, c_size_t, c_char_p, POINTER(CompileOptions), POINTER(HANDLE)],
    ),
    "heddle_text_str": (c_char_p, [HANDLE]),
    "heddle_text_destroy": (None, [HANDLE]),
    "heddle_cost_features": (STATUS, [c_char_p, c_char_p, c_int, POINTER(HANDLE)]),
    "heddle_compiled_destroy": (None, [HANDLE]),
    "heddle_compiled_write": (STATUS, [HANDLE, c_char_p, c_char_p]),
    "heddle_compiled_kept": (STATUS, [HANDLE, POINTER(HANDLE)]),
    "heddle_compiled_module": (STATUS, [HANDLE, POINTER(HANDLE)]),
    "heddle_compiled_plan": (c_char_p, [HANDLE]),
    "heddle_compiled_report": (c_char_p, [HANDLE]),
    "heddle_compiled_explain": (STATUS, [HANDLE, POINTER(c_char_p)]),
    "heddle_reference_run_with": (
        STATUS,
        [c_char_p, POINTER(CompileOptions), TENSORS, c_size_t, Each, c_void_p],
    ),
}


HERE = Path(__file__).resolve().parent
FOLDERS = (HERE / "lib", HERE.parents[1] / "build" / "release" / "lib")


WHOLE, LIGHT = "libheddle.so", "libheddle_runtime.so"
# Prefixes of functions that WHOLE alone has.
COMPILER = ("heddle_compile", "heddle_text", "heddle_cost", "heddle_reference")


def get_include():
    """The folder of the headers, for compilers: include/heddle of the wheel or of the checkout."""
    for folder in (HERE / "include", HERE.parents[1] / "include"):
        if (folder / "heddle" / "runtime.h").exists():
            return str(folder)
    raise Error(f"there are no headers in '{HERE / 'include'}'; './dev wheel' makes a package "
                "that has them")


def candidates(name=WHOLE):
    """Possible paths of a library, best first. The last one is left to the system's loader."""
    chosen = os.environ.get("HEDDLE_LIBRARY")
    return [chosen] if chosen else [*(folder / name for folder in FOLDERS), name]


def _load_extension():
    for folder in FOLDERS:
        path = folder / "extension.abi3.so"
        if path.exists():
            loader = importlib.machinery.ExtensionFileLoader("heddle.extension", str(path))
            spec = importlib.util.spec_from_file_location("heddle.extension", path, loader=loader)
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
            return module
    raise ImportError(f"there is no extension.abi3.so in '{FOLDERS[0]}' or '{FOLDERS[1]}'; "
                      "'./dev build' makes it")


extension = _load_extension()


_lock = threading.RLock()
_loaded = {}  # by name; the first one loads and runs modules
_everywhere = []


def _load(name):
    if name in _loaded:
        return _loaded[name]
    reasons = []
    for path in candidates(name):
        if isinstance(path, Path) and not path.exists():
            reasons.append(f"{path}: no such file")
            continue
        try:
            from . import arrays

            found = ctypes.CDLL(str(path))
            if not _loaded:
                extension.open(str(path), arrays, ERRORS)
        except OSError as error:
            reasons.append(str(error))
            continue
        for function_name, arguments in _everywhere:
            _checked(found, function_name, arguments)
        _loaded[name] = found
        return found
    raise Error(
        f"cannot load {name}: "
        + "; ".join(reasons)
        + "; build it with './dev build', or name it in HEDDLE_LIBRARY"
    )


def compiler():
    """The library with the compiler. CDLL lets go of Python's lock while a function runs."""
    with _lock:
        return _load(WHOLE)


def library():
    """The library that loads and runs modules: that of the compiler if it was there before."""
    with _lock:
        if _loaded:
            return next(iter(_loaded.values()))
        is_beside = any(isinstance(path, Path) and path.exists() for path in candidates(LIGHT))
        return _load(LIGHT if is_beside else WHOLE)


@functools.lru_cache(maxsize=None)
def _function(found, name):
    try:
        function = getattr(found, name)
    except AttributeError:
        raise Error(f"'{found._name}' has no {name}: it is a runtime without the "
                    "compiler") from None
    function.restype, function.argtypes = PROTOTYPES[name]
    return function


def _library_of(name):
    return compiler() if name.startswith(COMPILER) else library()


def function(name):
    return _function(_library_of(name), name)


raised = {}  # by thread: what an op in Python has raised there


def explained(error):
    """The error that a call has ended with, as caused by what an op in Python has raised; that
    itself where nothing else is said, or where it is to pass, as KeyboardInterrupt is."""
    cause = raised.pop(threading.get_ident(), None)
    if cause is None:
        return error
    if cause.__traceback__:
        cause.__traceback__.tb_frame.clear()  # of custom.py, with arrays over the run's memory
    if error is None or not isinstance(cause, Exception):
        return cause
    error.__cause__ = cause
    return error


def check_file(path, what, most=64 << 30):
    """Refuses what is no regular file, before anything waits for a pipe or reads a device, and one
    of more than `most` bytes. That there is no such file the one who opens it says."""
    try:
        about = os.stat(path)
    except OSError:
        return
    if not stat.S_ISREG(about.st_mode):
        kind = ("a folder" if stat.S_ISDIR(about.st_mode) else
                "a pipe" if stat.S_ISFIFO(about.st_mode) else "a device or a socket")
        raise UsageError(f"cannot read {what} '{os.fspath(path)}': it is {kind}, but a regular "
                         "file is needed")
    if about.st_size > most:
        raise LimitError(f"cannot read {what} '{os.fspath(path)}': it has {about.st_size} bytes, "
                         f"but at most {most} are allowed")


class Held:
    """Something of C that only this object gives back: its copy is the object itself."""

    def __copy__(self):
        return self

    def __reduce_ex__(self, protocol):
        raise TypeError(f"a heddle.{type(self).__name__} belongs to its process, and cannot be "
                        "pickled or copied deeply: write an artefact (compile's `output`), and "
                        "load that elsewhere")


def call(name, *arguments):
    """Calls a function of the C API; a status becomes an exception."""
    return _checked(_library_of(name), name, arguments)


def call_everywhere(name, *arguments):
    """Calls a function in each library that is or will be loaded: each has ops of its own."""
    with _lock:
        library()
        for found in _loaded.values():
            _checked(found, name, arguments)
        _everywhere.append((name, arguments))


def has_own_ops():
    """Tells whether models may mean by a name what only this process knows."""
    return bool(_everywhere)


def _checked(found, name, arguments):
    result = _function(found, name)(*arguments)
    if PROTOTYPES[name][0] is not STATUS:
        return result
    if result:
        code = _function(found, "heddle_status_code")(result)
        message = _function(found, "heddle_status_message")(result).decode(errors="replace")
        _function(found, "heddle_status_destroy")(result)
        raise explained(ERRORS.get(code, InternalError)(message))
    raised.pop(threading.get_ident(), None)
    return None
