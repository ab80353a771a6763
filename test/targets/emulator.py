"""emulator: artefacts for AArch64 on this machine, under qemu's emulation of a user program.

Needs Debian's qemu-user, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross, and a build that found
the latter; `missing` says what is not there.
"""

import ctypes
import functools
import os
import shutil
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
from heddle import arrays
from heddle import compile as compile_model
from heddle.onnx_backend import HeddleBackend
from heddle.session import NodeArg
from onnx.backend.base import BackendRep

ROOT = Path(__file__).resolve().parents[2]
ARCHIVES = [ROOT / "build" / "release" / "lib" / "aarch64" / f"libheddle_{name}.a"
            for name in ("pool", "runtime")]
SOURCE = Path(__file__).with_name("run_artefact.c")
RUNNER = ROOT / "build" / "aarch64" / "run_artefact"
SYSROOT = "/usr/aarch64-linux-gnu"


class Failure(Exception):
    """Output of the emulated program before it ended."""


def missing():
    """Why nothing can be emulated here, or ""."""
    for program in ("qemu-aarch64", "aarch64-linux-gnu-gcc"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    for archive in ARCHIVES:
        if not archive.exists():
            return f"there is no {archive}: libc6-dev-arm64-cross was not there when it was built"
    return ""


@functools.lru_cache(maxsize=None)
def runner():
    """The path of run_artefact, built where that was not done."""
    newest = max(path.stat().st_mtime for path in [SOURCE, *ARCHIVES])
    if not RUNNER.exists() or RUNNER.stat().st_mtime <= newest:
        RUNNER.parent.mkdir(parents=True, exist_ok=True)
        fresh = RUNNER.with_suffix(f".{os.getpid()}")
        subprocess.run(["aarch64-linux-gnu-gcc", "-std=gnu11", "-O1", f"-I{ROOT / 'include'}",
                        str(SOURCE), "-Wl,-u,heddle_pool_create", *map(str, ARCHIVES), "-lm",
                        "-lpthread", "-o", str(fresh)], check=True)
        fresh.replace(RUNNER)
    return RUNNER


def encode(value, info):
    tensor, _held = arrays.feed(value, info)
    dims = tensor.dims[: tensor.rank]
    head = struct.pack(f"<ii{tensor.rank}qq", tensor.dtype, tensor.rank, *dims, tensor.bytes)
    return head + ctypes.string_at(tensor.data, tensor.bytes)


def decode(stream):
    """The tensors of a stream, one after the other."""
    at, found = 0, []
    while at < len(stream):
        dtype, rank = struct.unpack_from("<ii", stream, at)
        *dims, size = struct.unpack_from(f"<{rank + 1}q", stream, at + 8)
        at += 8 + 8 * (rank + 1)
        flat = np.frombuffer(stream[at : at + size], np.uint8)
        if dtype in arrays.PACKED:
            found.append(arrays.unpack(flat, dtype, dims))
        else:
            found.append(flat.view(arrays.numpy_dtype(dtype)).reshape(dims))
        at += size
    return found


def run_artefact(path, inputs, cpu="max", threads=1, variant=None):
    """(the outputs, the target that ran) for bytes of `encode`, on a CPU that qemu knows."""
    environment = {**os.environ, **({"HEDDLE_CPU": variant} if variant else {})}
    done = subprocess.run(["qemu-aarch64", "-L", SYSROOT, "-cpu", cpu, str(runner()), str(path),
                           str(threads)], input=b"".join(inputs), capture_output=True,
                          env=environment, timeout=900, check=False)
    errors = done.stderr.decode(errors="replace").strip()
    if done.returncode != 0:
        raise Failure(f"exit {done.returncode}: {errors}")
    return decode(done.stdout), errors.removeprefix("target ").split("\n")[0]


def tensor_types(model):
    """NodeArg of each input that is no initializer; None where it is no tensor of numbers."""
    initialized = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in initialized:
            continue
        tensor = value.type.tensor_type
        is_plain = value.type.WhichOneof("value") == "tensor_type" and tensor.elem_type != 8
        yield NodeArg(value.name, tensor.elem_type, []) if is_plain else None


class Emulated(BackendRep):
    """A model as an artefact for AArch64, run under qemu."""

    def __init__(self, model, cpu="max", target="aarch64", **options):
        self.cpu, self.infos = cpu, list(tensor_types(model))
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "model.so"
        compile_model(model, target=target, output=self.path, load=False, **options)

    def run(self, inputs, **kwargs):
        del kwargs
        encoded = [encode(value, info) for value, info in zip(inputs, self.infos)]
        return tuple(run_artefact(self.path, encoded, self.cpu)[0])


def is_plain(model):
    """Tells whether tensors of numbers alone go in and come out."""
    outputs = all(value.type.WhichOneof("value") == "tensor_type"
                  and value.type.tensor_type.elem_type != 8 for value in model.graph.output)
    return outputs and all(info is not None for info in tensor_types(model))


class EmulatedBackend(HeddleBackend):
    """As HeddleBackend, on the emulated machine; strings and lists are not carried there."""

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        if not is_plain(model):
            raise unittest.SkipTest("strings and lists are not carried to the emulator")
        if any(node.op_type == "ImageDecoder" for node in model.graph.node):
            raise unittest.SkipTest("no library of images for the emulated machine is here")
        return Emulated(model, **options)
