"""session: InferenceSession over a model that is compiled when the session is made.

SPDX-License-Identifier: Apache-2.0
"""

import concurrent.futures
import mmap
import os
import threading
import warnings

from .. import compiler
from .. import session as sessions
from . import metadata
from .binding import IOBinding
from .capi.onnxruntime_pybind11_state import (Fail, InvalidArgument, InvalidProtobuf, NoSuchFile,
                                              named, renamed)
from .options import GraphOptimizationLevel, SessionOptions
from .trace import Trace
from .value import OrtValue, unwrap

PROVIDER = "CPUExecutionProvider"
PLAINLY = "cards,fusion,stitch,siblings,regions,feedback"  # layers that ORT_DISABLE_ALL leaves out


def _check_providers(providers):
    wanted = [each[0] if isinstance(each, (tuple, list)) else each for each in providers or ()]
    missing = [name for name in wanted if name != PROVIDER]
    if missing:
        warnings.warn(f"providers {missing} are not available; the model runs with {PROVIDER}",
                      UserWarning, stacklevel=4)


def _bytes_of(model):
    """(the model's bytes, which are mapped where they are a file's, and its path or None)"""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model), None
    if not isinstance(model, (str, os.PathLike)):
        raise TypeError(f"the model is a {type(model).__name__}, but a path or bytes are allowed")
    with named():
        sessions.library.check_file(model, "model")
    try:
        with open(model, "rb") as file:
            is_empty = os.fstat(file.fileno()).st_size == 0
            data = b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return data, os.fspath(model)
    except OSError as error:
        raise NoSuchFile(f"cannot read '{os.fspath(model)}': {error.strerror}") from None


def _read_metadata(data, path):
    if not data:
        raise InvalidArgument("the model is empty")
    if data[:4] == b"\x7fELF":
        return metadata.ModelMetadata()  # an artefact
    try:
        return metadata.read(data)
    except ValueError as error:
        raise InvalidProtobuf(f"'{path or '<bytes>'}' is no ONNX model: {error}") from None


class InferenceSession(sessions.Session):
    """A session on the path or the bytes of an ONNX model, or on the path of an artefact."""

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None,
                 **options):
        options.pop("disabled_optimizers", None)
        if options:
            raise TypeError(f"unknown options {list(options)}")
        del provider_options  # those of the CPU have no counterpart
        _check_providers(providers)
        self._options = sess_options if sess_options is not None else SessionOptions()
        data, path = _bytes_of(path_or_bytes)
        self._model_path = path  # optimum reads it
        self._metadata = _read_metadata(data, path)
        self._pool, self._pool_lock = None, threading.Lock()
        profiles = self._options.enable_profiling
        self._trace = Trace(self._options.profile_file_prefix) if profiles else None
        with named():
            module = self._compile(data, path)
            super().__init__(module, self._options.intra_op_num_threads,
                             self._trace and self._trace.group)
            if self._trace:
                self._trace.made(module)

    def _compile(self, data, path):
        given = self._options
        if data[:4] == b"\x7fELF":
            if path is None:
                raise InvalidArgument("an artefact is loaded by its path, not from bytes")
            return sessions.load(path)
        plainly = given.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL
        return compiler.compile(
            path if path is not None else data, threads=given.intra_op_num_threads,
            shapes=given._sizes, without=PLAINLY if plainly else None,
            profile=given.enable_profiling)

    # ---- What it is.

    def get_modelmeta(self):
        return self._metadata

    def get_session_options(self):
        return self._options

    def get_providers(self):
        return [PROVIDER]

    def get_provider_options(self):
        return {PROVIDER: {}}

    def set_providers(self, providers=None, provider_options=None):
        del provider_options
        _check_providers(providers)

    def get_overridable_initializers(self):
        return []

    def disable_fallback(self):
        """Nothing: there is one provider."""

    def enable_fallback(self):
        """Nothing: there is one provider."""

    # ---- Runs.

    def _values(self, output_names, feeds, run_options, out=None, tensors=False):
        if run_options is not None and run_options.terminate:
            raise Fail("the run was not begun: run_options.terminate is set")
        begin = self._trace and self._trace.now()
        try:
            return super().run(output_names, feeds, out=out, tensors=tensors)
        except sessions.library.Error as error:
            raise renamed(error) from error.__cause__
        finally:
            if self._trace:
                self._trace.run(begin)

    def run(self, output_names, input_feed, run_options=None):
        return self._values(output_names, input_feed, run_options)

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        feeds = {name: unwrap(value) for name, value in input_dict_ort_values.items()}
        return [OrtValue(value)
                for value in self._values(output_names, feeds, run_options, tensors=True)]

    def io_binding(self):
        return IOBinding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        if iobinding._session is not self:
            raise ValueError("an IOBinding must be used with the session that created it")
        iobinding._run(run_options)

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None):
        """Returns at once; callback(results, user_data, error) is called on another thread, where
        the error is "" after a success."""
        def work():
            results, error = [], ""
            try:
                results = self.run(output_names, input_feed, run_options)
            except Exception as failure:  # noqa: BLE001: the callback is told
                error = str(failure) or type(failure).__name__
            callback(results, user_data, error)

        with self._pool_lock:
            if self._pool is None:
                self._pool = concurrent.futures.ThreadPoolExecutor(2, "heddle-run-async")
            self._pool.submit(work)

    # ---- Profiling.

    def get_profiling_start_time_ns(self):
        return self._trace.start if self._trace else 0

    def end_profiling(self):
        """Writes what was recorded as a Chrome trace, and returns the file's path."""
        if self._trace is None:
            return ""
        trace, self._trace = self._trace, None
        return trace.write()
