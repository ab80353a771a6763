"""heddle: compile ONNX models to native code, and run them.

    module = heddle.compile("model.onnx")
    y, = module.run(None, {"x": x})

    session = heddle.Session("model.so", threads=4)   # as onnxruntime.InferenceSession

Python's half of the C API in include/heddle, and nothing more. SPDX-License-Identifier: Apache-2.0
"""

from .compiler import Compiled, compile, reference
from .library import (
    DiffersError,
    Error,
    InternalError,
    LimitError,
    RefusedError,
    UsageError,
)
from .session import InferenceSession, Module, NodeArg, Session, load

__version__ = "0.1.0"
__all__ = [
    "Compiled",
    "DiffersError",
    "Error",
    "InferenceSession",
    "InternalError",
    "LimitError",
    "Module",
    "NodeArg",
    "RefusedError",
    "Session",
    "UsageError",
    "compile",
    "load",
    "reference",
]
