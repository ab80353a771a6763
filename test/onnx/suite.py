"""suite: ONNX's own backend tests through Heddle, in three modes.

    python test/onnx/suite.py --mode dynamic --match softmax --json results.json

Modes: `static` runs each model as it is; `dynamic` makes every size of its inputs a symbol;
`constant` makes its inputs constants, so that folding has to give what running gives.
With --device groups are on the device of the emulated CUDA driver, however small they are.
Every worker process runs many tests; one that dies costs the test that it ran, nothing else.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import time
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import onnx.backend.test.runner
from onnx import numpy_helper

os.environ["HEDDLE_CACHE"] = ""  # the tests are of the compiler, not of what it once made
MODES = ("static", "dynamic", "constant")
LIMIT_S = 600  # a test that takes longer hangs, and is killed
DATA = Path(__file__).resolve().parents[2] / "build" / "onnx-models"  # of the nine light models
EXPECTED = Path(__file__).with_name("expected_failures.tsv")


def expected_failures():
    """{(mode, test): reason} of the list; the mode * stands for all."""
    found = {}
    for line in EXPECTED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            modes, name, reason = line.split("\t")
            for mode in MODES if modes == "*" else modes.split(","):
                found[mode, name] = reason
    return found


def made_dynamic(model):
    """The model with a symbol of its own for every size of its inputs."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    counter = iter(range(1 << 30))

    def loosen(type_proto, fresh):
        kind = type_proto.WhichOneof("value")
        if kind == "tensor_type":
            for dim in type_proto.tensor_type.shape.dim:
                dim.Clear()
                if fresh:
                    dim.dim_param = f"d{next(counter)}"
        elif kind in ("sequence_type", "optional_type"):
            loosen(getattr(type_proto, kind).elem_type, fresh)

    initialized = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in initialized:
            loosen(value.type, True)
    for value in model.graph.output:
        loosen(value.type, False)
    del model.graph.value_info[:]
    return model


def made_constant(model, inputs):
    """The model with its inputs as constants."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    kept = []
    for value, array in zip(model.graph.input, inputs):
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type" or array is None:
            kept.append((value, array))
            continue
        tensor = numpy_helper.from_array(np.asarray(array), value.name)
        model.graph.initializer.append(tensor)
    del model.graph.input[:]
    model.graph.input.extend(value for value, _ in kept)
    return model, [array for _, array in kept]


def backend_of(mode, options):
    """A backend, as BackendTest wants it, that rewrites models as the mode says."""
    from heddle.onnx_backend import HeddleBackend

    options = dict(options)
    base = HeddleBackend
    if options.pop("emulated", False):
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "targets"))
        from emulator import EmulatedBackend as base
    if options.pop("device", False):
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "targets"))
        import gpu

        os.environ["HEDDLE_CUDA_DRIVER"] = str(gpu.DRIVER)
        options |= {"target": "cuda", "plan": gpu.ALL_GROUPS}

    class Constant:
        def __init__(self, model):
            self.model = model

        def run(self, inputs):
            model, rest = made_constant(self.model, inputs)
            return base.prepare(model, **options).run(rest)

    class ModeBackend(base):
        @classmethod
        def prepare(cls, model, device="CPU", **kwargs):
            del kwargs
            if mode == "constant":
                return Constant(model)
            if mode == "dynamic":
                model = made_dynamic(model)
            return super().prepare(model, device, **options)

    return ModeBackend


def ulps(found, expected):
    """The largest difference in units of the last place of what is expected. Elements below a
    thousandth of the largest count as that large: what cancels there is no error of the op."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape or found.dtype != expected.dtype or found.size == 0:
        return 0.0
    try:
        digits = np.finfo(expected.dtype).nmant
    except ValueError:
        return 0.0
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(found) & np.isfinite(expected)
    if not finite.any():
        return 0.0
    size = np.abs(expected[finite])
    size = np.maximum(np.maximum(size, size.max() / 1000), np.finfo(np.float32).tiny)
    unit = np.exp2(np.floor(np.log2(size)) - digits)
    return float((np.abs(found[finite] - expected[finite]) / unit).max())


class Measured:
    """Notes the largest error of each comparison that BackendTest makes."""

    largest = 0.0

    def __init__(self):
        runner = onnx.backend.test.runner.Runner
        compare = runner.assert_similar_outputs.__func__

        def measured(cls, expected, found, *rest, **named):
            for x, y in zip(found, expected):
                if isinstance(x, np.ndarray):
                    Measured.largest = max(Measured.largest, ulps(x, y))
            compare(cls, expected, found, *rest, **named)

        runner.assert_similar_outputs = classmethod(measured)


class Stream(unittest.TestResult):
    """Prints one line of JSON when a test begins and one when it ends."""

    def __init__(self):
        super().__init__()
        self.outcome = None

    def startTest(self, test):
        self.outcome, self.began = ("passed", ""), time.monotonic()
        Measured.largest = 0.0
        tell({"begin": name_of(test)})

    def stopTest(self, test):
        status, text = self.outcome
        tell(
            {
                "name": name_of(test),
                "kind": kind_of(test),
                "status": status,
                "text": text,
                "seconds": round(time.monotonic() - self.began, 4),
                "ulps": Measured.largest,
            }
        )

    def addError(self, test, err):
        self.outcome = ("failed", f"{err[0].__name__}: {err[1]}")

    addFailure = addError

    def addSkip(self, test, reason):
        self.outcome = ("skipped", reason)


def name_of(test):
    return test.id().rsplit(".", 1)[-1].removesuffix("_cpu")


def kind_of(test):
    """Node, Simple, PyTorchOperator, PyTorchConverted or Real: whole networks."""
    return type(test).__name__.removeprefix("OnnxBackend").removesuffix("ModelTest")


def tell(record):
    sys.__stdout__.write(json.dumps(record) + "\n")
    sys.__stdout__.flush()


class Suite(onnx.backend.test.BackendTest):
    """ONNX's tests, which cannot compare the scalars of a sequence: they ask for their length."""

    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        both = (ref_outputs, outputs)
        if all(isinstance(value, np.ndarray) and value.ndim == 0 for value in both):
            ref_outputs, outputs = [ref_outputs], [outputs]
        super().assert_similar_outputs(ref_outputs, outputs, rtol, atol, model_dir=model_dir)


def tests_of(backend, mode):
    """Every CPU test by its name; whole networks are run as they are only."""
    tests = (test for test in flat(Suite(backend).test_suite) if test.id().endswith("_cpu"))
    return {name_of(test): test for test in tests if mode == "static" or kind_of(test) != "Real"}


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def work(mode, options):
    """A worker: runs the tests whose names come in, one a line."""
    os.environ["ONNX_MODELS"] = str(DATA)
    tests = tests_of(backend_of(mode, options), mode)
    sys.stdout = sys.stderr  # tests print
    np.seterr(all="ignore")
    result = Stream()
    Measured()
    tell({"ready": True})
    for line in sys.stdin:
        tests[line.strip()].run(result)


class Worker:
    def __init__(self, mode, options):
        command = [sys.executable, __file__, "--worker", "--mode", mode]
        command += ["--options", json.dumps(options)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.read()

    def read(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None


def run_slice(mode, options, queue, kinds, results, log):
    """One worker after the other until the queue is empty."""
    import threading

    worker = None
    while True:
        try:
            name = queue.popleft()
        except IndexError:
            break
        if worker is None:
            worker = Worker(mode, options)
            tail = collections.deque(maxlen=12)

            def drain(stream=worker.process.stderr, tail=tail):
                for line in stream:
                    tail.append(line)

            drainer = threading.Thread(target=drain, daemon=True)
            drainer.start()
        began = time.monotonic()
        killer = threading.Timer(LIMIT_S, worker.process.kill)
        killer.start()
        try:
            worker.process.stdin.write(name + "\n")
            worker.process.stdin.flush()
            record = worker.read()
            while record is not None and "begin" in record:
                record = worker.read()
        except BrokenPipeError:
            record = None
        killer.cancel()
        if record is None:
            worker.process.wait()
            drainer.join(1)
            late = time.monotonic() - began >= LIMIT_S
            text = f"took more than {LIMIT_S} s" if late else "".join(tail)
            record = {"name": name, "kind": kinds[name], "status": "died", "text": text}
            record |= {"seconds": LIMIT_S, "ulps": 0.0}
            worker = None
        results[name] = record
        log(record)
    if worker is not None:
        worker.process.stdin.close()
        worker.process.wait()


def run(mode, options=None, match="", jobs=None, log=lambda record: None):
    """{name: {"status", "text", "seconds"}} of every test whose name matches."""
    import threading
    from heddle.onnx_backend import HeddleBackend

    tests = tests_of(HeddleBackend, mode)
    kinds = {name: kind_of(test) for name, test in tests.items() if re.search(match, name)}
    if {"emulated", "device"} & set(options or {}):  # whole networks would take minutes
        kinds = {name: kind for name, kind in kinds.items() if kind != "Real"}
    queue, results = collections.deque(sorted(kinds)), {}
    workers = [
        threading.Thread(target=run_slice, args=(mode, options or {}, queue, kinds, results, log))
        for _ in range(jobs or os.cpu_count() or 1)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=MODES, default="static")
    parser.add_argument("--match", default="", help="a regular expression that names must match")
    parser.add_argument("--target", default="host")
    parser.add_argument("--qemu", nargs="?", const="max", metavar="CPU",
                        help="run what is compiled for aarch64 on this CPU of qemu-aarch64")
    parser.add_argument("--device", action="store_true", help="run all groups that a device takes "
                        "on that of the emulated CUDA driver")
    parser.add_argument("--opt-level", type=int, help="of LLVM; 0 makes the least effort")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--json", help="where the results go")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--options", default="{}", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.mode, json.loads(arguments.options))
        return 0
    options = {"target": arguments.target, "threads": 1}
    if arguments.qemu:
        options |= {"emulated": True, "cpu": arguments.qemu}
    if arguments.device:
        options["device"] = True
    if arguments.opt_level is not None:
        options["opt_level"] = arguments.opt_level

    def log(record):
        if record["status"] in ("failed", "died"):
            first = next((line for line in record["text"].splitlines() if line.strip()), "")
            print(f"{record['status']} {record['name']}: {first[:240]}", flush=True)

    began = time.monotonic()
    results = run(arguments.mode, options, arguments.match, arguments.jobs, log)
    counts = collections.Counter(record["status"] for record in results.values())
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1, sort_keys=True)
    print(f"{arguments.mode}: {dict(counts)}, {time.monotonic() - began:.0f} s")
    return 0 if counts["failed"] + counts["died"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
