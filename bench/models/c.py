"""Models as C files, compiled by C compilers, beside Heddle's own machine code.

    ./dev bench c

`heddle compile --target c` writes a model as one file of C99, for any machine; Heddle's own code is
made for this one. Each C compiler takes the file with each list of flags; all run in one process by
turns, one thread, with inputs and outputs in place. ONNX Runtime has a turn as well.
"""

import ctypes
import re
import resource
import shutil
import statistics
import subprocess
import sys

import numpy as np

from bench.kernels import engines, report, turns
from bench.models import catalogue, tool

MODELS = ("kws_fp32", "silero_vad_v5", "light_squeezenet", "ultraface")
COMPILERS = ("gcc", "clang-" + (tool.ROOT / "cmake/llvm-version").read_text().strip())
FLAGS = ("-O2", "-O3", "-O3 -march=native")
BUILT = report.STORE / "c"
DTYPES = {"float32": 1, "int64": 7}
HEADS = ["model", "C compiler", "native, us", "C, us", "native / C [quartiles]",
         "ONNX Runtime / C", "cc, CPU s", "object, KB"]


class File:
    """A C file as a library, its inputs, outputs and arena in place."""

    def __init__(self, source, command, feeds):
        base = BUILT / re.sub(r"\W+", "-", f"{source.stem} {command}")
        begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([*command.split(), "-std=c99", "-fPIC", "-c", source, "-o", f"{base}.o"],
                       check=True)
        self.compile_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin
        self.object_bytes = base.with_suffix(".o").stat().st_size
        subprocess.run(["cc", "-shared", f"{base}.o", "-lm", "-o", f"{base}.so"], check=True)
        library = ctypes.CDLL(f"{base}.so")
        text = source.read_text(encoding="utf-8", errors="replace")
        prefix, outputs, rank = re.search(r"(\w+)_OUTPUTS = (\d+), \w+_MAX_RANK = (\d+)",
                                          text).groups()

        class Tensor(ctypes.Structure):
            """The file's own."""
            _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_int64),
                        ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                        ("dims", ctypes.c_int64 * int(rank)), ("result", ctypes.c_void_p)]

        self._message, size = ctypes.create_string_buffer(512), ctypes.c_int64()
        self._inputs, self._alive = (Tensor * len(feeds))(), []
        for tensor, value in zip(self._inputs, feeds.values()):
            place = engines.aligned(value.shape, value.dtype)
            place[...] = value
            self._alive.append(place)
            tensor.data, tensor.bytes = place.ctypes.data, place.nbytes
            tensor.dtype, tensor.rank = DTYPES[value.dtype.name], value.ndim
            tensor.dims[:value.ndim] = value.shape
        self._outputs = (Tensor * int(outputs))()
        self._run = library[f"{prefix}_run"]
        self._check(library[f"{prefix}_arena_bytes"](self._inputs, self._outputs,
                                                     ctypes.byref(size), self._message))
        self._arena, self._bytes = engines.aligned((size.value,), np.uint8), size
        self._place = ctypes.c_void_p(self._arena.ctypes.data)
        self.call()

    def _check(self, status):
        if status:
            raise RuntimeError(self._message.value.decode())

    def result(self, like):
        """The first output."""
        return np.frombuffer(ctypes.string_at(self._outputs[0].result, like.nbytes),
                             like.dtype).reshape(like.shape)

    def call(self):
        """One run."""
        self._check(self._run(self._inputs, self._outputs, self._place, self._bytes, self._message))


def commands(flags):
    """Those of the compilers that this machine has."""
    return [f"{name} {each}" for name in COMPILERS if shutil.which(name) for each in flags]


def compare(model, given):
    """Times of one model, a row for each command."""
    feeds, path = model.make_feeds()[0], str(model.path())
    source = BUILT / f"{model.name}.c"
    tool.checked("compile", path, "--target", "c", "--no-cache", "-o", source)
    native = engines.Heddle(path, feeds)
    native.call()
    runtime, _ = engines.onnxruntime_call(path, feeds)
    calls, files = {"native": native.call, "onnxruntime": runtime}, {}
    for command in commands(given.flags or FLAGS):
        print(f"\r{model.name}: {command}".ljust(60), end="", file=sys.stderr, flush=True)
        files[command] = File(source, command, feeds)
        calls[command] = files[command].call
        np.testing.assert_allclose(files[command].result(native.results[0]), native.results[0],
                                   rtol=1e-3, atol=2e-5, err_msg=f"{model.name} by {command}")
    times = turns.by_turns({name: turns.timed_calls(call) for name, call in calls.items()},
                           given.rounds, given.turn / 1000)
    return [{"model": model.name, "command": command, "source_bytes": source.stat().st_size,
             "compile_s": file.compile_s, "object_bytes": file.object_bytes,
             "turns": {name: times[name] for name in ("native", "onnxruntime", command)},
             "of_onnxruntime": turns.ratio(times, "onnxruntime", command)["ratio"],
             **turns.ratio(times, "native", command)} for command, file in files.items()]


def rows(found):
    """Lines of a table."""
    for each in found:
        native, ours = (statistics.median(each["turns"][name]) * 1e6
                        for name in ("native", each["command"]))
        yield (f"{each['model']}, {each['source_bytes'] / 1e6:.1f} MB of C", each["command"],
               f"{native:.0f}", f"{ours:.0f}", report.spread(each),
               f"{each['of_onnxruntime']:.2f}", f"{each['compile_s']:.1f}",
               f"{each['object_bytes'] / 1000:.0f}")


def figures(found):
    """Lines of the note."""
    lines = []
    for command in dict.fromkeys(each["command"] for each in found):
        part = [each for each in found if each["command"] == command]
        mean = report.geometric_mean(each["of_onnxruntime"] for each in part)
        lines += [f"- `{command}`: {report.summary(part)}; ONNX Runtime / C {mean:.2f}"]
    return [*lines, "", *report.table(HEADS, rows(found))]


def measure(given):
    """Times of all models that are asked for and there."""
    BUILT.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        try:
            yield from compare(catalogue.find(name), given) if given.only in name else []
        except catalogue.Missing as reason:
            print(f"{name} left out: {reason}", flush=True)


def main():
    options = report.arguments(__doc__, rounds=9, turn_ms=30)
    options.add_argument("--flags", action="append", help=f"instead of {', '.join(FLAGS)}")
    report.tell("c", options.parse_args(), measure, figures)


if __name__ == "__main__":
    main()
