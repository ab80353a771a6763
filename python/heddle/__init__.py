"""heddle: compile ONNX models to native code, and run them.

    module = heddle.compile("model.onnx")
    y, = module.run(None, {"x": x})

    session = heddle.Session("model.so", threads=4)   # as onnxruntime.InferenceSession

Python's half of the C API in include/heddle, and nothing more. SPDX-License-Identifier: Apache-2.0
"""

from .compiler import Compiled, compile, reference
from .custom import TensorType, custom_op, load_custom_ops
from .library import (DiffersError, Error, InternalError, LimitError, RefusedError, UsageError,
                      check_file, extension, get_include)
from .precision import choose_precision
from .quantize import quantize
from .records import cost_features
from .session import InferenceSession, Module, NodeArg, Session, load

Tensor = extension.Tensor
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
    "Tensor",
    "TensorType",
    "UsageError",
    "check_file",
    "choose_precision",
    "compile",
    "cost_features",
    "custom_op",
    "get_include",
    "load",
    "load_custom_ops",
    "quantize",
    "reference",
]
