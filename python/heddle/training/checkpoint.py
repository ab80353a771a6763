"""checkpoint: weights and an optimiser's state as safetensors, and trained models as ONNX.

A file appears whole or not at all: it is written beside its place, and renamed when all of it is on
the disk. So whatever ends a process leaves the last whole checkpoint.
SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import errno
import hashlib
import os
import tempfile

import numpy

from ..library import Error, LimitError, RefusedError, UsageError, check_file


def need(module, what):
    try:
        return __import__(module, fromlist=["_"])
    except ImportError as error:
        raise UsageError(f"{what} needs the Python package '{module.split('.')[0]}': {error}; "
                         f"'pip install {module.split('.')[0]}' installs it") from error


@contextlib.contextmanager
def _replacing(path):
    """A path beside `path` to write to; it takes the place of `path` at the end."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        with tempfile.TemporaryDirectory(prefix=".heddle-", dir=folder) as place:
            written = os.path.join(place, os.path.basename(path))
            yield written
            with open(written, "rb") as file:
                os.fsync(file.fileno())
            os.replace(written, path)
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        kind = LimitError if is_full else UsageError
        raise kind(f"'{path}': cannot be written: {error.strerror or error}; what was there before "
                   "is as it was") from error


def write_state(path, arrays, notes):
    """`arrays` by name, and `notes`, texts by name."""
    safetensors = need("safetensors.numpy", "writing a checkpoint")
    with _replacing(path) as written, open(written, "wb") as file:
        file.write(safetensors.save(arrays, metadata=notes))


def read_state(path):
    """(arrays, notes) of a file of `write_state`."""
    need("safetensors", "reading a checkpoint")
    from safetensors import SafetensorError, safe_open

    check_file(path, "checkpoint")
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except FileNotFoundError as error:
        raise UsageError(f"'{path}': there is no such checkpoint") from error
    except (SafetensorError, OSError) as error:
        raise RefusedError(f"'{path}': is no whole checkpoint: {error}") from error


def read_model(model):
    """A ModelProto with all of its data in it, of a path, bytes or itself."""
    onnx = need("onnx", "training")
    if isinstance(model, onnx.ModelProto):
        return model
    try:
        if isinstance(model, (bytes, bytearray, memoryview)):
            return onnx.load_from_string(bytes(model))
        check_file(model, "model", 2 << 30)
        return onnx.load(os.fspath(model))
    except FileNotFoundError as error:
        raise UsageError(f"'{model}': there is no such model") from error
    except Error:
        raise
    except Exception as error:  # protobuf's and onnx's own, of many kinds
        raise RefusedError(f"'{model}': is no ONNX model: {error}") from error


def initializers(model):
    """name -> array, which can be written to, of a ModelProto's dense initializers."""
    onnx = need("onnx", "training")
    return {tensor.name: numpy.array(onnx.numpy_helper.to_array(tensor), order="C")
            for tensor in model.graph.initializer}


def fingerprint(model):
    """Of what a checkpoint has to fit: the nodes, and the types of the initializers."""
    digest = hashlib.sha256()
    for node in model.graph.node:
        digest.update(node.SerializeToString())
    for tensor in sorted(model.graph.initializer, key=lambda tensor: tensor.name):
        digest.update(f"{tensor.name} {tensor.data_type} {list(tensor.dims)}".encode())
    return digest.hexdigest()


def without_data(model):
    """The model with names and types of its initializers, which `write_model` fills in. The one
    given is of no use any more."""
    onnx = need("onnx", "training")
    for tensor in model.graph.initializer:
        for field in ("raw_data", "float_data", "double_data", "int32_data", "int64_data",
                      "uint64_data"):
            tensor.ClearField(field)
    return onnx.load_from_string(model.SerializeToString())  # memory is freed with a message only


LARGEST_PROTO = 2**31 - 1  # bytes that a protobuf file can have


def with_arrays(model, arrays):
    """The model with these initializers."""
    onnx = need("onnx", "saving a model")
    trained = onnx.ModelProto()
    trained.CopyFrom(model)
    for tensor in trained.graph.initializer:
        if tensor.name in arrays:
            tensor.CopyFrom(onnx.numpy_helper.from_array(arrays[tensor.name], tensor.name))
    return trained


def write_model(path, model, arrays):
    """The model with these initializers; what is too large for one file has its data in PATH.data,
    which is replaced just before."""
    onnx, trained = need("onnx", "saving a model"), with_arrays(model, arrays)
    if trained.ByteSize() < LARGEST_PROTO:
        with _replacing(path) as written, open(written, "wb") as file:
            file.write(trained.SerializeToString())
        return
    data = os.path.basename(path) + ".data"
    with _replacing(path) as written:
        onnx.save_model(trained, written, save_as_external_data=True, location=data,
                        size_threshold=0)
        os.replace(os.path.join(os.path.dirname(written), data), os.fspath(path) + ".data")


