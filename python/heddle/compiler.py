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

from . import arrays, library, options, starts, workplace
from .library import Tensor, UsageError, call
from .session import Module, NodeArg, load

KINDS = {".so": "so", ".o": "o", ".h": "h", ".ll": "ll", ".s": "asm", ".ptx": "ptx", ".c": "c",
         ".plan": "plan"}


class Compiled(library.Held):
    """The result of one compilation: write it to files, ask it for its plan and report."""

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
        """Writes "so", "o", "h", "ll", "asm", "ptx", "c", "plan", "graph" or "loops", by default
        what the ending of the path says."""
        kind = kind or KINDS.get(os.path.splitext(os.fspath(path))[1])
        if kind is None:
            raise UsageError(f"'{path}': its ending says no kind; known: {', '.join(KINDS)}")
        call("heddle_compiled_write", self._handle, kind.encode(), os.fsencode(path))

    def text(self, kind):
        """The text of the file that `write` would write."""
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
    def explanation(self):
        """All that was decided about each group, as `heddle explain --json` has it."""
        text = ctypes.c_char_p()
        call("heddle_compiled_explain", self._handle, ctypes.byref(text))
        return json.loads(os.fsdecode(text.value))

    @property
    def kept(self):
        """The artefact's path in the cache, and the files of its external data; or None."""
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


def shape_texts(shapes):
    """{"x": (1, 3, None, None), "batch": 4} as ["x=1x3x?x?", "batch=4"]; texts stay as they are."""
    if not isinstance(shapes, dict):
        return list(shapes or ())
    return [
        f"{name}={size}"
        if isinstance(size, int)
        else f"{name}=" + "x".join("?" if dim is None else str(dim) for dim in size)
        for name, size in shapes.items()
    ]


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
TYPES = {  # of options that are not None, by their kind
    "Text": (str,), "Choice": (str,), "Words": (str,), "Path": PATH, "List": (dict, list, tuple)}
OWN_TYPES = {"plan": (dict, *PATH), "cache": (bool, *PATH), "training": (dict,),
             "in_place": (dict,), "functions": (list, tuple), "ragged": (str, list, tuple)}


def _checked(given):
    """Options of the right types: ctypes would wrap integers that are too large."""
    checked = dict(given)
    kinds = {name: OWN_TYPES.get(name, TYPES.get(kind, ()))
             for name, (_, kind, _) in options.ROWS.items()}
    for name, types in {**kinds, "output": PATH}.items():
        value = given[name]
        if value is not None and types and not isinstance(value, types):
            raise UsageError(f"`{name}` is of type {type(value).__name__}, but must be of "
                             f"{' or '.join(kind.__name__ for kind in types)}")
    for name, (_, kind, most) in options.ROWS.items():
        if kind in ("Number", "Bytes"):
            value = given[name]
            checked[name] = value if value is None else integer(f"`{name}`", value, most)
    return checked


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
        given |= {
            "plan": plan, "functions": functions, "training": _recipe(given["training"]),
            "opt_level": -1 if level == 0 else level, "cache": b"" if cache is False else cache,
            "shapes": shape_texts(given["shapes"]), "typical": shape_texts(given["typical"]),
            "in_place": [f"{to}={place}" for to, place in (given["in_place"] or {}).items()],
            "ragged": [ragged] if isinstance(ragged, str) else ragged or []}
        made = options.CompileOptions(ctypes.sizeof(options.CompileOptions))
        made.progress = given["progress"]
        for name, (field, kind, count) in options.ROWS.items():
            value = given[name]
            if kind == "List":
                texts = (ctypes.c_char_p * len(value))(*(os.fsencode(text) for text in value))
                setattr(made, field, ctypes.cast(texts, ctypes.POINTER(ctypes.c_char_p)))
                setattr(made, count, len(value))
            elif value is not None:
                setattr(made, field, os.fsencode(value) if kind in TYPES
                        else bool(value) if kind == "Flag" else value)
        yield made


def check(among=(), **given):
    """Refuses options of `compile` that no model can be compiled with. `among` are names of others,
    one of which may have been meant."""
    known = inspect.signature(compile)
    for name in given:
        if name not in known.parameters:
            near = difflib.get_close_matches(name, {*known.parameters, *among}, 1)
            raise TypeError(f"there is no option '{name}'"
                            + (f"; did you mean '{near[0]}'?" if near else ""))
    bound = known.bind(None, **given)
    bound.apply_defaults()
    bound.arguments["progress"], _ = _progress(None)
    with _options(bound.arguments) as made:
        call("heddle_compile_options_check", made)


@contextlib.contextmanager
def _plan_path(plan):
    """A plan may be a path or the value of an earlier compilation's `plan`."""
    if not isinstance(plan, dict):
        yield plan
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


def _compile(model, given, handle):
    """A path, bytes or a ModelProto, into the handle."""
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        data = bytes(model)
        call("heddle_compile_bytes", data, len(data), b"<bytes>", given, ctypes.byref(handle))
    else:
        call("heddle_compile", os.fsencode(model), given, ctypes.byref(handle))


def _progress(told):
    """A callback for C, and the exceptions that it has raised."""
    failures = {}
    function = told and (lambda _, stage, fraction: told(stage.decode(), fraction))
    return options.Progress(library.extension.guarded(function, failures) if told else 0), failures


def _pass_on(failures):
    for failure in failures.values():
        raise failure


def compile(  # noqa: A001: the package's own word
    model, target="host", threads=None, shapes=None, plan=None, output=None, *, opt_level=None,
    schedules=None, fold_limit_bytes=0, progress=None, without=None, profile=False, records=None,
    math=None, jobs=0, cache=None, functions=None, typical=None, in_place=None, ragged=None,
    ragged_outputs="padded", training=None, memory=0, cost_model=None, chooser=None,
    subnormals=None, verify_stages=False, exact_plan=False, kv_cache=0, kv_cache_type=None,
    load=True,
):
    """Compiles an ONNX model and returns a Module ready to run.

    model      A path, the bytes of a model, or an onnx.ModelProto.
    target     'host' (default), 'c' (a C99 file), x86-64-v2, x86-64-v3, x86-64-v4, x86-64-vnni,
               x86-64-bf16, aarch64, aarch64-dotprod, aarch64-i8mm, aarch64-bf16, or a CPU name of
               LLVM; several in one artefact: x86-64-v2+v3+v4+vnni; 'help' lists all.
    threads    Threads of a run; 0 (default): as many as the machine has.
    shapes     Fix the sizes of an input, x=1x3x?x?, or a size by its name, batch=4. As {'x': (1, 3,
               None, None)} or {'batch': 4} or ['x=1x3x?x?'].
    plan       Carry out this plan. A path, or the `plan` of an earlier compilation.
    output     Path of an artefact to write, which is then loaded; None compiles into this process.
    opt_level  Optimisation level of LLVM, 0 to 3 (default 3).
    schedules  A folder of cards beside the built-in ones. HEDDLE_SCHEDULES names more of them, by
               colons.
    fold_limit_bytes  Do not compute larger constants at compile time (default 64 MiB).
    progress   Called with a stage and 0..1 of the whole.
    without    Leave out layers of the partitioner, to compare: cards (what cards claim as a whole),
               fusion (of the rest), stitch (products and the reductions over their rows), siblings
               (groups that walk the same elements become one), regions (groups that are launched at
               once), feedback (groups that are split again since their kernel does not pay),
               recomputation (of what steps of training need not keep), short-results (results that
               only products of bf16 read, as bf16).
    profile    Make code that can tell how long each group of ops took. A Session's `profile` is
               told.
    records    Use what 'heddle tune' has found where the plan says nothing (default:
               HEDDLE_RECORDS, or none).
    math       'fast' (default), or 'strict': no algorithms that round sums otherwise than by their
               order (Winograd's convolutions), and floats of 16 bits are rounded after each op, not
               only where they leave the model; or 'bf16': as fast, and factors of products are
               rounded to bf16 where that saves time, while their sums are float32 (targets without
               such products are refused); or 'bf16-emulated': the same numbers on any target, in
               more time than 'fast' takes; or 'int8': as fast, and products with constant weights
               are those of 8-bit integers, weights scaled by columns and activations by rows, in
               each run.
    jobs       Threads that compile; 0 (default): as many as the cores that the process may use.
    cache      Folder of what was compiled before (default: HEDDLE_CACHE, or heddle/compiled in the
               user's folder for caches). docs/guide/cache.md says more. False is none: everything
               is compiled anew.
    functions  An ONNX file, a model or a FunctionProto, with functions that the model's nodes may
               call by domain and name (docs/guide/custom-ops.md). Paths, or such protos themselves.
    typical    What a size usually is, which decides how work and memory are laid out; it stays
               open: seq=128. As {'seq': 128}.
    in_place   An output that a run may write where an input lies: new_state=state. As {'new_state':
               'state'}, as `Session.run(..., out={'new_state': state})` gives it.
    ragged     Rows of a batch have lengths of their own, which an input says, and only they are
               computed: batch:seq=lengths (integers [batch], a new input) or
               batch:seq=attention_mask (a mask [batch, seq] of the model). Outputs are 0 beyond
               (docs/guide/ragged.md).
    ragged_outputs  Outputs with rows: 'padded' with zeros (default), or 'packed': [batch, seq, ...]
               becomes [sum of the lengths, ...], row after row, and a last output `row_offsets`,
               i64 [batch + 1], says where each begins.
    training   A recipe: compile a step of the model's training, its evaluation or a derivative
               (docs/spec/training.md). As {'loss': 'mse', 'optimizer': 'adam'}.
    memory     What a run may take (docs/guide/memory.md): where it is too little, results are
               computed twice. It counts inputs, outputs that have no input's buffer, weights and
               what lies between kernels, for typical sizes; 0: no limit.
    cost_model  Let a cost model, an artefact of what 'heddle cost train' wrote, choose where plan
               and records do not (docs/guide/cost.md; default: HEDDLE_COST_MODEL, or none). A file
               of another version is not used, which the report tells.
    chooser    Who chooses where the plan does not: 'learned', the cost model without any records,
               or 'rules', which ask neither (default: records, cost model, rules).
    subnormals  Results below the normal numbers (1.2e-38 in float32): 'keep' (default where math is
               strict), or 'flush' them to 0, since arithmetic on such numbers is up to 100 times
               slower.
    verify_stages  Verify what each stage has made, not only the stage lower: for who changes the
               compiler.
    exact_plan  The plan says which ops of the model's nodes are in each group, and for which
               mechanism, so that it gives the same groups to a compiler that would fuse otherwise
               (docs/spec/plan.md).
    kv_cache   Keep the keys and values of past tokens where they lie, in buffers for N tokens: past
               inputs are such buffers, which a run extends, and present outputs are none
               (docs/guide/kv-cache.md).
    kv_cache_type  Numbers of these buffers: f32, bf16, f16, or int8 with a scale for each head and
               token (default: those of the model).
    load       False returns what was compiled instead, which this machine need not be able to run.

    The result's `compiled` has `write`, `plan`, `report` and `explanation`.
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
    with _options({**given, "progress": progress}) as made:
        _compile(model, made, handle)
    failures |= raised
    return handle


def _finished(compiled, output, threads, load):
    """The result of `compile`: the module in this process, or the one in the file `output`."""
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

    recipe = options.CompileOptions(ctypes.sizeof(options.CompileOptions),
                                    training=_recipe(training))
    call(
        "heddle_reference_run_with",
        os.fsencode(model_path),
        recipe,
        tensors,
        len(tensors),
        library.Each(library.extension.guarded(each, failures)),
        None,
    )
    _pass_on(failures)
    return results
