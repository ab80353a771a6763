"""heddle.onnxruntime: the interface of ONNX Runtime, for programs that were written for it.

    import heddle.onnxruntime as ort

    session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    y, = session.run(None, {"x": x})

Differences are in docs/guide/onnxruntime.md, which is made from `differences.py`.
SPDX-License-Identifier: Apache-2.0
"""

import importlib.util
import os
import sys

from ..library import call
from ..session import NodeArg
from . import capi
from .binding import IOBinding, SessionIOBinding
from .capi import onnxruntime_pybind11_state
from .metadata import ModelMetadata
from .options import (DifferenceWarning, ExecutionMode, ExecutionOrder, GraphOptimizationLevel,
                      RunOptions, SessionOptions)
from .session import PROVIDER, InferenceSession
from .value import OrtDevice, OrtValue

# Version of the interface; programs compare it.
__version__ = version = "1.32.0+heddle.0.1.0"
package_name = "heddle.onnxruntime"


def get_version_string():
    return __version__


def get_build_info():
    return f"heddle {call('heddle_version').decode()}"


def get_available_providers():
    return [PROVIDER]


def get_all_providers():
    return [PROVIDER]


def get_device():
    return "CPU"


def has_collective_ops():
    return False


def set_default_logger_severity(severity):
    """Nothing: Heddle writes no log. What is wrong is an exception."""


def set_default_logger_verbosity(verbosity):
    """Nothing, as set_default_logger_severity."""


def disable_telemetry_events():
    """Nothing: there is no telemetry."""


def enable_telemetry_events():
    """Nothing: there is no telemetry."""


def preload_dlls(cuda=True, cudnn=True, msvc=True, directory=None):  # noqa: ARG001
    """Nothing: runs are on the CPU, and need no library."""


def install():
    """Makes `import onnxruntime` give this module, for a program that is not to be changed. Call it
    before anything imports onnxruntime. What is not of this module, such as
    `onnxruntime.quantization` and `onnxruntime.transformers`, comes from the installed onnxruntime,
    if there is one."""
    here = sys.modules[__name__]
    known = sys.modules.get("onnxruntime")
    if known is here:
        return
    if known is not None:
        raise ImportError("onnxruntime has been imported already; call install() before that")
    installed = importlib.util.find_spec("onnxruntime")
    for folder in (installed and installed.submodule_search_locations) or ():
        __path__.append(folder)
        capi.__path__.append(os.path.join(folder, "capi"))
    sys.modules["onnxruntime"] = here
    sys.modules["onnxruntime.capi"] = capi
    sys.modules["onnxruntime.capi.onnxruntime_pybind11_state"] = onnxruntime_pybind11_state


__all__ = [
    "DifferenceWarning", "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding",
    "InferenceSession", "ModelMetadata", "NodeArg", "OrtDevice", "OrtValue", "RunOptions",
    "SessionIOBinding", "SessionOptions", "disable_telemetry_events", "enable_telemetry_events",
    "get_all_providers", "get_available_providers", "get_build_info", "get_device",
    "get_version_string", "has_collective_ops", "install", "preload_dlls",
    "set_default_logger_severity", "set_default_logger_verbosity",
]
