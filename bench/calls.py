"""The cost of a call from Python, beside ONNX Runtime: `./dev bench calls [--write]`.

Models that do next to nothing, so that nearly all of a run is the call: feeds by name, checks,
results. Both engines run by turns in one process with one thread, and give equal outputs before
anything is timed.
"""

import argparse
import time

import numpy as np
from heddle.onnx_graph import make_model, make_node

import heddle
from bench.kernels import report, turns
from bench.kernels.engines import runtime_session
from bench.models import tool

PAGE = tool.ROOT / "docs" / "generated" / "call-overhead.md"
BATCH = 20  # calls between two looks at the clock, which cost as much as a call's tenth

HEAD = """# What does a call from Python cost?

Written by `./dev bench calls --write`: runs of models that do next to nothing, one thread,
median microseconds of a call, by turns in one process; {machine}.
A ratio is ONNX Runtime's time over Heddle's: above 1, Heddle is faster.

"""


def model(nodes, inputs, outputs, constants=()):
    return make_model(nodes, inputs, outputs, constants, opset=20)


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def relus(count):
    """count inputs of 4 floats, and as many outputs."""
    nodes = [make_node("Relu", f"x{i}", f"y{i}") for i in range(count)]
    return (model(nodes, {f"x{i}": [4] for i in range(count)},
                  {f"y{i}": [4] for i in range(count)}),
            {f"x{i}": numbers(4) for i in range(count)})


def many_inputs(count):
    names = [f"x{i}" for i in range(count)]
    return (model([make_node("Sum", names, "y")], {name: [4] for name in names}, {"y": [4]}),
            {name: numbers(4) for name in names})


def many_outputs(count):
    names = [f"y{i}" for i in range(count)]
    return (model([make_node("Split", "x", names, axis=0, num_outputs=count)], {"x": [4 * count]},
                  {name: [4] for name in names}), {"x": numbers(4 * count)})


def symbolic():
    """Sizes that each run tells."""
    sizes = ["batch", "length"]
    return model([make_node("Relu", "x", "y")], {"x": sizes}, {"y": sizes}), {"x": numbers(2, 3)}


def image():
    """150,000 floats in, which are not copied, and a few out."""
    return (model([make_node("Slice", "x s e", "y")], {"x": [1, 3, 224, 224]}, {"y": [1, 1, 1, 4]},
                  {"s": [0, 0, 0, 0], "e": [1, 1, 1, 4]}), {"x": numbers(1, 3, 224, 224)})


def strings(count):
    texts = np.array([f"word {i}" for i in range(count)], object)
    return (model([make_node("StringConcat", "x z", "y")], {"x": texts, "z": texts}, {"y": texts}),
            {"x": texts, "z": texts})


CASES = {
    "1 input, 1 output": relus(1),
    "1 input of symbolic sizes, 1 output": symbolic(),
    "10 inputs, 10 outputs": relus(10),
    "201 inputs, 1 output": many_inputs(201),
    "1 input, 200 outputs": many_outputs(200),
    "1 input of 600 KB, 1 output": image(),
    "2 inputs of 10 strings, 1 output": strings(10),
    "2 inputs of 1,000 strings, 1 output": strings(1000),
}


def engines(proto):
    """{name: session} of one thread each."""
    return {"heddle": heddle.Session(heddle.compile(proto, threads=1, cache=False), threads=1),
            "onnxruntime": runtime_session(proto)}


def timed(session, feeds):
    def run(runs):
        found = []
        for _ in range(runs):
            begin = time.thread_time()
            for _ in range(BATCH):
                session.run(None, feeds)
            found.append((time.thread_time() - begin) / BATCH)
        return found
    return run


def measure(proto, feeds, given):
    sessions = engines(proto)
    results = {name: session.run(None, feeds) for name, session in sessions.items()}
    for ours, theirs in zip(results["heddle"], results["onnxruntime"]):
        if ours.dtype == object:
            np.testing.assert_array_equal(ours, theirs)
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    return turns.by_turns({name: timed(session, feeds) for name, session in sessions.items()},
                          given.rounds, given.turn / 1000)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--match", default="", help="those whose name has this in it")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--turn", type=float, default=10, help="milliseconds of a turn")
    options.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    given = options.parse_args()
    rows = []
    for name, (proto, feeds) in CASES.items():
        if given.match not in name:
            continue
        times = measure(proto, feeds, given)
        micros = [f"{1e6 * np.median(times[engine]):.1f}" for engine in ("heddle", "onnxruntime")]
        rows.append((name, *micros, report.spread(turns.ratio(times, "onnxruntime", "heddle"))))
        print(*rows[-1], sep="  ", flush=True)
    if given.write:
        table = report.table(["model", "Heddle us", "ONNX Runtime us", "ratio"], rows)
        PAGE.write_text(HEAD.format(machine=report.machine()) + "\n".join(table) + "\n",
                        encoding="utf-8")


if __name__ == "__main__":
    main()
