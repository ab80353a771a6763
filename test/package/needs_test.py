"""Needs of artefacts and libraries on the machine that they run on."""

import re
import subprocess

import onnx
import pytest
from heddle.onnx_graph import make_model, make_node
from sources import LLVM

from bench.models import tool

LIBRARY = tool.ROOT / "build" / "release" / "lib" / "libheddle_runtime.so"


def needs(path):
    """Names of the shared libraries that a file asks for."""
    listed = subprocess.run([f"/usr/lib/llvm-{LLVM}/bin/llvm-readelf", "-d", path],
                            capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"Shared library: \[(.*?)\]", listed))


@pytest.mark.parametrize("threads", ["0", "1"])
@pytest.mark.parametrize("target", ["host", "aarch64"])
def test_artefacts_need_the_c_library_alone(target, threads, tmp_path):
    sizes = [4, 8]
    model, made = tmp_path / "m.onnx", tmp_path / "m.so"
    onnx.save(make_model([make_node("Softmax", "x", "p"), make_node("Tan", "p", "y")], {"x": sizes},
                         {"y": sizes}, opset=21),
              model)
    done = tool.run_heddle("compile", model, "-o", made, "--threads", threads, "--target", target)
    if "libc6-dev-arm64-cross" in done.errors:
        pytest.skip("the runtime for AArch64 was not built: there is no libc6-dev-arm64-cross")
    assert done.status == 0, done.errors
    assert needs(made) <= {"libc.so.6", "libm.so.6"}


def test_the_runtime_needs_the_c_library_alone():
    assert needs(LIBRARY) <= {"libc.so.6", "libm.so.6"}


def test_a_pthreadpool_without_its_library_is_refused():
    script = f"""
import ctypes
library = ctypes.CDLL("{LIBRARY}")
make = library.heddle_pool_from_pthreadpool
make.restype, made = ctypes.c_void_p, ctypes.c_void_p()
status = make(ctypes.c_void_p(8), ctypes.byref(made))
text = library.heddle_status_message
text.restype, text.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
print(text(status).decode(), made.value)
"""
    done = subprocess.run(["python3", "-c", script], capture_output=True, text=True, check=True)
    assert "this process has not loaded libpthreadpool.so.0" in done.stdout
    assert done.stdout.strip().endswith("None")
