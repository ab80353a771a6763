"""checkpoint: weights and an optimiser's state as safetensors, and trained models as ONNX.

A file appears whole or not at all: it is written beside its place, and renamed when all of it is on
the disk. So whatever ends a process leaves the last whole checkpoint.
SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import errno
import hashlib
import os
import re
import shutil
import stat
import tempfile

import numpy

from .. import workplace
from ..library import Error, LimitError, RefusedError, UsageError, check_file
from ..packages import need


@contextlib.contextmanager
def _replacing(path):
    """A path to write to; the file takes the place of `path`, or of what that links to."""
    with _told(path):
        target = _target(path)
        with workplace.folder(os.path.dirname(target)) as place:
            written = os.path.join(place, os.path.basename(target))
            yield written
            with open(written, "rb") as file:
                os.fsync(file.fileno())
            os.replace(written, target)


@contextlib.contextmanager
def _told(path):
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        kind = LimitError if is_full else UsageError
        raise kind(f"'{path}': cannot be written: {error.strerror or error}; what was there before "
                   "is as it was") from error


def _target(path):
    """The place of the file that is replaced: only a regular one is."""
    target = os.path.realpath(path)
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(mode := os.stat(target).st_mode):
            raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL,
                          ("it is a folder" if stat.S_ISDIR(mode) else "it is a device or a pipe")
                          + ", but a regular file is needed")
    return target


def check_place(path):
    """Refuses a path at which nothing can be written, before there is anything to write."""
    with _told(path), tempfile.TemporaryFile(dir=os.path.dirname(_target(path))):
        pass


def write_state(path, arrays, notes):
    """`arrays` by name, and `notes`, texts by name."""
    safetensors = need("safetensors.numpy", "writing a checkpoint", "training")
    with _replacing(path) as written, open(written, "wb") as file:
        file.write(safetensors.save(arrays, metadata=notes))


def read_state(path):
    """(arrays, notes) of a file of `write_state`."""
    need("safetensors", "reading a checkpoint", "training")
    from safetensors import SafetensorError, safe_open

    check_file(path, "checkpoint")
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except FileNotFoundError as error:
        raise UsageError(f"'{path}': there is no such checkpoint") from error
    except (SafetensorError, OSError, TypeError, ValueError) as error:  # of bf16 among others
        raise RefusedError(f"'{path}': is no whole checkpoint: {error}") from error


def read_model(model, what="training", extra="training"):
    """A ModelProto with all of its data in it, of a path, bytes or itself; `what` needs it."""
    onnx = need("onnx", what, extra)
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
    onnx = need("onnx", "training", "training")
    return {tensor.name: numpy.array(onnx.numpy_helper.to_array(tensor), order="C")
            for tensor in model.graph.initializer}


FOLDED = re.compile("batch_?norm", re.IGNORECASE)


def folded(model):
    """A warning for a model in whose layers an exporter has folded normalisations of batches, ""
    for others. PyTorch's exporters show it: in a node's notes, or in names of folded weights."""
    def shows(node):
        notes = [note.value for note in getattr(node, "metadata_props", ())]
        return (any(FOLDED.search(text) for text in (node.name, *node.output, *notes))
                or re.match("onnx::Conv_[0-9]+$", next(iter(node.input[1:]), "")))

    layers = [node for node in model.graph.node
              if node.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul") and shows(node)]
    if not layers:
        return ""
    return (f"{len(layers)} layers, '{layers[0].name}' first, have a batch normalisation folded "
            "into their weights, which is not trained as one: export the model with "
            "torch.onnx.export(model.train(), ..., dynamo=True, optimize=False) to keep it "
            "(docs/guide/training.md)")


def fingerprint(model):
    """Digest of the parts that a checkpoint has to fit: nodes, and types of the initializers."""
    digest = hashlib.sha256()
    for node in model.graph.node:
        digest.update(node.SerializeToString())
    for tensor in sorted(model.graph.initializer, key=lambda tensor: tensor.name):
        digest.update(f"{tensor.name} {tensor.data_type} {list(tensor.dims)}".encode())
    return digest.hexdigest()


def without_data(model):
    """The model with names and types of its initializers, which `write_model` fills in. The one
    given is of no use any more."""
    onnx = need("onnx", "training", "training")
    for tensor in model.graph.initializer:
        for field in ("raw_data", "float_data", "double_data", "int32_data", "int64_data",
                      "uint64_data"):
            tensor.ClearField(field)
    return onnx.load_from_string(model.SerializeToString())  # memory is freed with a message only


LARGEST_PROTO = 2**31 - 1  # bytes that a protobuf file can have


def size_of(model):
    """Bytes of a model; of what is too large for one file, those of its weights."""
    try:
        return model.ByteSize()
    except Exception:  # protobuf's own
        return sum(len(tensor.raw_data) or tensor.ByteSize() for tensor in model.graph.initializer)


def with_arrays(model, arrays):
    """The model with these initializers."""
    onnx = need("onnx", "saving a model", "training")
    trained = onnx.ModelProto()
    trained.CopyFrom(model)
    for tensor in trained.graph.initializer:
        if tensor.name in arrays:
            tensor.CopyFrom(onnx.numpy_helper.from_array(arrays[tensor.name], tensor.name))
    return trained


def write_model(path, model, arrays):
    """The model with these initializers."""
    write_proto(path, with_arrays(model, arrays))


def write_proto(path, model):
    """A model; what is too large for one file has its data in PATH.data, which is replaced just
    before. A model with such data is of no use any more."""
    onnx = need("onnx", "saving a model", "training")
    if size_of(model) < LARGEST_PROTO:
        with _replacing(path) as written, open(written, "wb") as file:
            file.write(model.SerializeToString())
        return
    data = os.path.basename(path) + ".data"
    with _replacing(path) as written:
        for tensor in model.graph.initializer:  # save_model refuses where such data is already
            if tensor.HasField("raw_data"):
                onnx.external_data_helper.set_external_data(tensor, data)
        onnx.save_model(model, written)
        beside = os.path.join(os.path.dirname(written), data)
        shutil.copymode(written, beside)  # onnx makes it for its owner alone
        os.replace(beside, os.fspath(path) + ".data")


