"""compiler: heddle.compile and the reference interpreter.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import ctypes
import difflib
import functools
import inspect
import json
import operator
import os
import reprlib
import tempfile
import weakref

import numpy as np

from . import arrays, library, starts, workplace
from .library import Tensor, UsageError, call
from .session import Module, NodeArg, load

KINDS = {".so": "so", ".o": "o", ".h": "h", ".ll": "ll", ".s": "asm", ".c": "c",
         ".plan": "plan"}


class Compiled(library.Held):
    """What one compilation made: write it to files, ask it for its plan and report."""

    def __init__(self, make, threads=None):
        """`make()`: the handle of C, when it is first asked for."""
        self._make, self._threads = make, threads

    @functools.cached_property
    def _handle(self):
        handle = self._make()
        self._make = None  # with the model's bytes
        weakref.finalize(self, call, "heddle_compiled_destroy", handle)
        return handle

    def write(self, path, kind=None):
        """Writes "so", "o", "h", "ll", "asm", "c", "plan", "graph" or "loops", by default what the
        ending of the path says."""
        kind = kind or KINDS.get(os.path.splitext(os.fspath(path))[1])
        if kind is None:
            raise UsageError(f"'{path}': its ending says no kind; known: {', '.join(KINDS)}")
        call("heddle_compiled_write", self._handle, kind.encode(), os.fsencode(path))

    def text(self, kind):
        """What `write` would write, as text."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "text")
            self.write(path, kind)
            with open(path, encoding="utf-8") as file:
                return file.read()

    @property
    def plan(self):
        return json.loads(os.fsdecode(call("heddle_compiled_plan", self._handle)))

    @property
    def report(self):
        """Seconds a stage, groups, arena."""
        return json.loads(os.fsdecode(call("heddle_compiled_report", self._handle)))

    @property
    def kept(self):
        """Where the artefact is in the cache, and the files of its external data; or None."""
        text = ctypes.c_void_p()
        call("heddle_compiled_kept", self._handle, ctypes.byref(text))
        try:
            return json.loads(os.fsdecode(call("heddle_text_str", text)))
        finally:
            call("heddle_text_destroy", text)

    def module(self):
        handle = ctypes.c_void_p()
        if library.library() is library.compiler():
            call("heddle_compiled_module", self._handle, ctypes.byref(handle))
            return Module(handle, compiled=self, threads=self._threads)
        # The runtime that was there before the compiler has structures of its own.
        if kept := self.kept:
            module = load(kept["path"], threads=self._threads)
        else:
            with workplace.folder() as folder:
                try:
                    self.write(os.path.join(folder, "model.so"))
                except UsageError:  # of a target that has none, as who loads it says
                    call("heddle_compiled_module", self._handle, ctypes.byref(handle))
                    raise
                module = load(os.path.join(folder, "model.so"), threads=self._threads)
        module.compiled = self
        return module


def _shape_texts(shapes):
    """{"x": (1, 3, None, None), "batch": 4} as ["x=1x3x?x?", "batch=4"]; texts stay as they are."""
    if not isinstance(shapes, dict):
        return list(shapes or ())
    return [
        f"{name}={size}"
        if isinstance(size, int)
        else f"{name}=" + "x".join("?" if dim is None else str(dim) for dim in size)
        for name, size in shapes.items()
    ]


def _texts(texts):
    """An array of C strings."""
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


def _list(name, texts):
    """The two options that hand over a list of texts."""
    held = _texts(texts)
    return {name: ctypes.cast(held, ctypes.POINTER(ctypes.c_char_p)), f"{name}_count": len(texts)}


def _encoded(path):
    return None if path is None else os.fsencode(path)


def _plain(value):
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"JSON has no {type(value).__name__}")


def _recipe(training):
    """The recipe as JSON."""
    if training is None:
        return None
    fields = []
    for name, value in training.items():
        try:
            text = json.dumps(value, allow_nan=False, default=_plain)
            fields.append(f"{json.dumps(name)}: {text}")
        except (TypeError, ValueError) as error:
            raise UsageError(f"recipe: '{name}' is {reprlib.repr(value)}: {error}") from error
    return f"{{{', '.join(fields)}}}".encode()


PATH = (str, bytes, os.PathLike)
TYPES = {  # of options that are not None
    **dict.fromkeys(("target", "without", "math", "ragged_outputs", "chooser",
                    "subnormals"), (str,)),
    **dict.fromkeys(("schedules", "records", "cost_model", "output"), PATH),
    **dict.fromkeys(("shapes", "typical"), (dict, list, tuple)),
    **dict.fromkeys(("training", "in_place"), (dict,)),
    "plan": (dict, *PATH), "cache": (bool, *PATH), "functions": (list, tuple),
    "ragged": (str, list, tuple)}
MOST = {"threads": 2**31 - 1, "jobs": 2**31 - 1, "opt_level": 3, "memory": 2**63 - 1,
        "fold_limit_bytes": 2**63 - 1}


def _checked(given):
    """Options of the right types: ctypes would wrap integers that are too large."""
    for name, types in TYPES.items():
        value = given[name]
        if value is not None and not isinstance(value, types):
            raise UsageError(f"`{name}` is of type {type(value).__name__}, but must be of "
                             f"{' or '.join(kind.__name__ for kind in types)}")
    return {**given, **{name: integer(f"`{name}`", given[name], most)
                        for name, most in MOST.items() if given[name] is not None}}


def integer(what, value, most):
    """The value as an int, which is from 0 to `most`."""
    if not hasattr(value, "__index__") or not 0 <= operator.index(value) <= most:
        raise UsageError(f"{what} is {reprlib.repr(value)}, but must be an integer from 0 to "
                         f"{most}")
    return operator.index(value)


@contextlib.contextmanager
def _options(given):
    """The structure of the C API for arguments of `compile`."""
    given = _checked(given)
    level, cache, ragged = given["opt_level"], given["cache"], given["ragged"]
    with _plan_path(given["plan"]) as plan, _function_paths(given["functions"]) as functions:
        yield library.CompileOptions(
            ctypes.sizeof(library.CompileOptions),
            given["target"].encode(),
            -1 if level == 0 else level or 0,
            *_list("shape", _shape_texts(given["shapes"])).values(),
            plan,
            _encoded(given["schedules"]),
            given["threads"] or 0,
            given["fold_limit_bytes"],
            given["progress"],
            None,
            given["without"].encode() if given["without"] else None,
            int(bool(given["profile"])),
            _encoded(given["records"]),
            given["math"].encode() if given["math"] else None,
            given["jobs"],
            b"" if cache is False else _encoded(cache),
            **_functions(functions),
            **_list("typical", _shape_texts(given["typical"])),
            **_list("in_place", [f"{to}={place}"
                                 for to, place in (given["in_place"] or {}).items()]),
            **_list("ragged", [ragged] if isinstance(ragged, str) else ragged or []),
            ragged_outputs=given["ragged_outputs"].encode(),
            memory_limit_bytes=given["memory"],
            training=_recipe(given["training"]),
            cost_model=_encoded(given["cost_model"]),
            chooser=_encoded(given["chooser"]),
            subnormals=_encoded(given["subnormals"]),
            verify_stages=int(bool(given["verify_stages"])),
        )


def check(among=(), **options):
    """Refuses options of `compile` that no model can be compiled with. `among` are names of others,
    one of which may have been meant."""
    known = inspect.signature(compile)
    for name in options:
        if name not in known.parameters:
            near = difflib.get_close_matches(name, {*known.parameters, *among}, 1)
            raise TypeError(f"there is no option '{name}'"
                            + (f"; did you mean '{near[0]}'?" if near else ""))
    bound = known.bind(None, **options)
    bound.apply_defaults()
    bound.arguments["progress"], _ = _progress(None)
    with _options(bound.arguments) as given:
        call("heddle_compile_options_check", given)


@contextlib.contextmanager
def _plan_path(plan):
    """A plan may be a path or the value of an earlier compilation's `plan`."""
    if not isinstance(plan, dict):
        yield _encoded(plan)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".plan", encoding="utf-8") as file:
        json.dump(plan, file)
        file.flush()
        yield os.fsencode(file.name)


@contextlib.contextmanager
def _function_paths(functions):
    """Files of what may be paths and protos."""
    protos = any(hasattr(given, "SerializeToString") for given in functions or ())
    with workplace.folder() if protos else contextlib.nullcontext() as folder:
        paths = []
        for i, given in enumerate(functions or ()):
            if hasattr(given, "SerializeToString"):
                path = os.path.join(folder, f"function_{i}.onnx")
                with open(path, "wb") as file:
                    file.write(given.SerializeToString())
                given = path
            paths.append(os.fsencode(given))
        yield paths


def _functions(paths):
    """The two options that hand them over."""
    held = (ctypes.c_char_p * len(paths))(*paths)
    return {"functions": ctypes.cast(held, ctypes.POINTER(ctypes.c_char_p)),
            "function_count": len(paths)}


def _compile(model, options, handle):
    """A path, bytes or a ModelProto, into the handle."""
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        data = bytes(model)
        call("heddle_compile_bytes", data, len(data), b"<bytes>", options, ctypes.byref(handle))
    else:
        call("heddle_compile", os.fsencode(model), options, ctypes.byref(handle))


def _progress(told):
    """A callback for C, and the exceptions that it has raised."""
    failures = {}
    function = told and (lambda _, stage, fraction: told(stage.decode(), fraction))
    return library.Progress(library.extension.guarded(function, failures) if told else 0), failures


def _pass_on(failures):
    for failure in failures.values():
        raise failure


def compile(  # noqa: A001: the package's own word
    model,
    target="host",
    threads=None,
    shapes=None,
    plan=None,
    output=None,
    *,
    opt_level=None,
    schedules=None,
    fold_limit_bytes=0,
    progress=None,
    without=None,
    records=None,
    math=None,
    jobs=0,
    cache=None,
    load=True,
    functions=None,
    profile=False,
    typical=None,
    in_place=None,
    ragged=None,
    ragged_outputs="padded",
    training=None,
    memory=0,
    cost_model=None,
    chooser=None,
    subnormals=None,
    verify_stages=False,
):
    """Compiles an ONNX model and returns a Module ready to run.

    model      a path, the bytes of a model, or an onnx.ModelProto
    target     "host", "x86-64-v3", "aarch64", a CPU name of LLVM, or several of them in one
               artefact: "x86-64-v2+v3+v4+vnni"
    shapes     {"x": (1, 3, None, None)} or {"batch": 4} or ["x=1x3x?x?"]
    typical    {"seq": 128}: what sizes usually are, which decides how work and memory are laid
               out; they stay open
    in_place   {"new_state": "state"}: outputs whose memory in a run may be that of an input, as
               `Session.run(..., out={"new_state": state})` gives it
    ragged     "batch:seq=lengths": each row along `batch` has a length of its own along `seq`,
               and only that is computed (docs/guide/ragged.md)
    ragged_outputs  "padded", or "packed": row after row, and a last output `row_offsets`
    training   a recipe, {"loss": "mse", "optimizer": "adam"}: a step of the model's training, its
               evaluation or a derivative (docs/spec/training.md)
    memory     bytes that a run may take; 0: no limit (docs/guide/memory.md)
    opt_level  0 to 3, of LLVM
    plan       a path, or the `plan` of an earlier compilation
    output     path of an artefact to write, which is then loaded; None compiles into this process
    progress   called with (stage, fraction)
    without    layers of the partitioner to leave out, to compare:
               "cards,fusion,stitch,siblings,regions,feedback,recomputation"
    records    a path of what `heddle tune` has found; None: HEDDLE_RECORDS
    cost_model  an artefact that chooses where plan and records do not; None: HEDDLE_COST_MODEL
    chooser    "learned", by the cost model and no records, or "rules" (docs/guide/cost.md)
    math       "fast" (default), or "strict": no algorithms that round sums otherwise than by
               their order, and floats of 16 bits are rounded after each op
    subnormals  results below the normal numbers: "keep" (the default where math is strict), or
               "flush" them to 0
    jobs       threads that compile; 0: all cores
    cache      a folder of what was compiled before; None: HEDDLE_CACHE, or the user's folder for
               caches; False: everything is compiled anew
    functions  paths of ONNX models or FunctionProtos, or such protos themselves, whose functions
               the model's nodes may call by domain and name (docs/guide/custom-ops.md)
    profile    code that can tell a Session's `profile` how long each group of ops took
    verify_stages  what each stage has made is verified, not only the stage lower
    load       False returns what was compiled instead, which this machine need not be able to run

    The result's `compiled` has `write`, `plan` and `report`.
    """
    given = dict(locals())
    start = starts.Start(model, given)
    compiled, failures = Compiled(lambda: _made(model, given, failures), threads), {}
    if module := start.find():
        module.threads, module.compiled = threads, compiled
        return module
    compiled._handle  # noqa: B018: compiled now
    _pass_on(failures)
    result = _finished(compiled, output, threads, load)
    start.keep(compiled)
    return result


def _made(model, given, failures):
    handle = ctypes.c_void_p()
    progress, raised = _progress(given["progress"])
    with _options({**given, "progress": progress}) as options:
        _compile(model, options, handle)
    failures |= raised
    return handle


def _finished(compiled, output, threads, load):
    """What `compile` returns: the module in this process, or the one in the file `output`."""
    if output is not None:
        compiled.write(output)
    if not load:
        return compiled
    if output is None:
        return compiled.module()
    from . import session

    module = session.load(output, threads=threads)
    module.compiled = compiled
    return module


def reference(model_path, inputs, training=None):
    """Every node's results in the reference interpreter: a list of (node, op, value, array) in the
    order of computation. `inputs` are in the model's order; with the recipe `training`, in that of
    what `compile` makes of it."""
    tensors, alive = (Tensor * len(inputs))(), []
    for i, value in enumerate(inputs):
        tensors[i], held = arrays.feed(value, NodeArg(f"#{i}", 0, []))
        alive.append(held)
    results, failures = [], {}

    def each(_, node, op, value, tensor):
        names = (os.fsdecode(text) for text in (node, op, value))
        results.append((*names, arrays.copied(tensor.contents)))

    options = library.CompileOptions(ctypes.sizeof(library.CompileOptions),
                                     training=_recipe(training))
    call(
        "heddle_reference_run_with",
        os.fsencode(model_path),
        options,
        tensors,
        len(tensors),
        library.Each(library.extension.guarded(each, failures)),
        None,
    )
    _pass_on(failures)
    return results
