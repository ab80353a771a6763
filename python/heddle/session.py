"""session: modules and sessions, with ONNX Runtime's run, get_inputs and get_outputs.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import os
import weakref
from dataclasses import dataclass, field

from . import arrays, library
from .library import UsageError, call


@dataclass(frozen=True)
class NodeArg:
    """One input or output. A size that is not fixed is the text of it: 'batch', '(h + 1) * 2'."""

    name: str
    dtype: int
    shape: list
    encoding: int = library.DENSE
    labels: list = field(default_factory=list)
    kind: int = library.TENSOR  # of a list's tensors dtype holds; only a TENSOR's shape is told
    shares: int = -1  # of an output: the number of the input whose memory it may have

    @property
    def rank(self):
        return len(self.shape)

    @property
    def type(self):
        """As ONNX Runtime spells it: 'tensor(float)'."""
        if self.encoding in (library.MAP, library.INT_MAP):
            key = "string" if self.encoding == library.MAP else "int64"
            return f"seq(map({key},tensor({arrays.DTYPES[self.dtype][0]})))"
        text = f"tensor({arrays.DTYPES[self.dtype][0]})"
        if self.kind in (library.SEQUENCE, library.OPTIONAL_SEQUENCE):
            text = f"seq({text})"
        if self.kind in (library.OPTIONAL, library.OPTIONAL_SEQUENCE):
            text = f"optional({text})"
        return text

    @property
    def numpy_dtype(self):
        """The dtype of arrays of it; of ml_dtypes where NumPy has none."""
        return arrays.numpy_dtype(self.dtype)

    @property
    def keys(self):
        """The keys of a map."""
        if self.encoding == library.INT_MAP:
            return [int(label) for label in self.labels]
        return self.labels


def _describe(value):
    is_tensor = value.kind == library.TENSOR
    dims = [value.dims[i] for i in range(value.rank)] if is_tensor else []
    return NodeArg(
        os.fsdecode(value.name),
        value.dtype,
        [os.fsdecode(dim.text) if dim.value == library.UNKNOWN else dim.value for dim in dims],
        value.encoding,
        [os.fsdecode(value.labels[i]) for i in range(value.label_count)]
        if value.encoding != library.DENSE
        else [],
        value.kind,
        value.shares,
    )


def _shape_of(tensor, info):
    is_known = info.kind in (library.TENSOR, library.ANY_RANK) and tensor.rank >= 0
    shape = tuple(tensor.dims[:tensor.rank]) if is_known else (library.UNKNOWN,)
    return None if library.UNKNOWN in shape else shape


def _bindable(value, info):
    """The value as a heddle.Tensor that the input takes."""
    if info.kind != library.TENSOR or info.dtype == arrays.STRING or info.encoding != library.DENSE:
        raise UsageError(f"input '{info.name}' is {info.type}: tensors of numbers may be bound")
    if info.shares >= 0:
        raise UsageError(f"input '{info.name}' is a buffer that a run writes: feed it to each run")
    tensor = library.extension.Tensor(value, info.name, info.dtype, info.kind)
    if tensor.number != info.dtype:
        raise UsageError(f"input '{info.name}': its elements are {tensor.dtype}, but "
                         f"{arrays.DTYPES[info.dtype][1]} is allowed")
    if len(tensor.shape) != info.rank or any(
            isinstance(want, int) and want != size for size, want in zip(tensor.shape, info.shape)):
        raise UsageError(f"input '{info.name}': its shape is {list(tensor.shape)}, but "
                         f"{info.shape} is allowed")
    return tensor


class Module(library.Held):
    """A compiled model. Sessions run it; `module.run` does so with a session of its own, which
    has `threads` threads (None: all that the process may use)."""

    def __init__(self, handle, compiled=None, threads=None):
        self._handle = handle
        self._finalizer = weakref.finalize(self, call, "heddle_module_destroy", handle)
        self._session = None
        self.threads = threads
        self.compiled = compiled
        self.inputs, self.outputs = (
            [
                _describe(call(f"heddle_module_{side}", handle, i).contents)
                for i in range(call(f"heddle_module_{side}_count", handle))
            ]
            for side in ("input", "output")
        )

    @property
    def info(self):
        """model, producer, target, features, weights_bytes, flops."""
        info = call("heddle_module_info", self._handle)
        values = {name: getattr(info, name) for name, _ in info._fields_}
        return {k: os.fsdecode(v) if isinstance(v, bytes) else v for k, v in values.items()}

    def run(self, output_names, feeds):
        if self._session is None:
            self._session = Session(self, self.threads)
        return self._session.run(output_names, feeds)

    def __call__(self, *inputs, **named):
        """module(x) or module(x=x): all outputs, or the only one as itself."""
        if len(inputs) > len(self.inputs):
            raise UsageError(f"{len(inputs)} inputs given, but it takes {len(self.inputs)}")
        feeds = {info.name: value for info, value in zip(self.inputs, inputs)}
        results = self.run(None, {**feeds, **named})
        return results[0] if len(results) == 1 else results

    def __repr__(self):
        def sides(values):
            return ", ".join(f"{v.name}: {v.type}{v.shape}" for v in values)

        return f"<heddle.Module ({sides(self.inputs)}) -> ({sides(self.outputs)})>"


def load(path, verify=False, threads=None):
    """Loads an artefact that `heddle compile` wrote; with `verify` only if its digest says that it
    is, byte for byte, what was compiled. `threads` are those of `Module.run`."""
    handle = ctypes.c_void_p()
    if verify:
        call("heddle_module_verify", os.fsencode(path))
    call("heddle_module_load", os.fsencode(path), ctypes.byref(handle))
    return Module(handle, threads=threads)


class Session(library.Held, library.extension.Session):
    """A module with threads and memory. Any number of threads may run one session at once.

    `threads`: None, or 0, for all that the process may use. `profile(group, nanoseconds)` is called
    after each group of a run of a module that was compiled with `profile`.
    """

    def __init__(self, module, threads=None, profile=None):
        module = module if isinstance(module, Module) else load(module)
        called = profile and library.Profile(library.extension.guarded(
            lambda _, *measured: profile(*measured), library.raised))
        super().__init__(
            module._handle.value, threads or 0, module.inputs, module.outputs,
            ctypes.cast(called, ctypes.c_void_p).value if profile else 0,
        )
        # Held as long as the session: the runtime calls it.
        self._module, self._profile = module, called

    def output_shapes(self, feeds):
        """{name: shape} of the results for these feeds, whose elements are not looked at. None for
        a shape known only at run time, a list, or an optional result."""
        inputs, outputs = self.get_inputs(), self.get_outputs()
        bound = self.bound
        feeds = {**bound, **arrays.complete(feeds, inputs, bound)}
        fed = [arrays.feed(feeds[info.name], info) for info in inputs]
        given = (library.Tensor * len(inputs))(*(tensor for tensor, _ in fed))
        found = (library.Tensor * len(outputs))()
        call("heddle_session_output_shapes", self._handle, given, len(inputs), found, len(outputs))
        return {info.name: _shape_of(tensor, info) for tensor, info in zip(found, outputs)}

    def bind(self, tensors):
        """Feeds these to each run from now on, {name: array}, unless a run is given others; None
        ends it. The type and the sizes are checked now, and memory that is dense is read where it
        lies, so a change of it is seen; the rest is copied."""
        places = {info.name: (i, info) for i, info in enumerate(self.get_inputs())}
        made = {}
        for name, value in tensors.items():
            if name not in places:
                raise UsageError(f"no input is called '{name}'; there are {[*places]}")
            number, info = places[name]
            made[number] = value if value is None else _bindable(value, info)
        for number, tensor in made.items():
            self._bind(number, tensor)

    def seed(self, number):
        """The next run draws its random numbers from this seed (0 to 2^64 - 1), those after it from
        the numbers that follow. A new session begins with 0."""
        call("heddle_session_seed", self._handle, number)

    @property
    def threads(self):
        return call("heddle_session_threads", self._handle)

    @property
    def memory(self):
        """arena_bytes and scratch_bytes of the last run, held_bytes, kept_bytes (of results that
        were released) and device_bytes (of GPUs, without weights) now, peak_bytes ever."""
        memory = call("heddle_session_memory", self._handle)
        return {name: getattr(memory, name) for name, _ in memory._fields_}


InferenceSession = Session
