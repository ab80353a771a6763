"""A transformer's encoder layer over batches of texts of different lengths, without padding.

    ./dev bench ragged [--sets RACE CoLA] [--batch 32 64 128] [--threads 1 2] [--note]

The layer is CoRa's (Fegade et al., MLSys 2022): 512 wide, 8 heads, 2048 between. Lengths are drawn
from the 64-quantiles of eight data sets (lengths.json), the seed fixed. Beside the ragged artefact,
by turns: the padded one, the padded one over micro-batches (the batch sorted by length and cut into
2 to 16 parts; the best counts), ONNX Runtime. `bound` is by how much padding multiplies the
arithmetic; `of bound` is the share of it that the ragged artefact gains over the padded one. Every
row's result is compared with the padded one's.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from bench.kernels import report, turns
from bench.models import tool

WIDE, HEADS, INNER = 512, 8, 2048
PARTS = (2, 4, 8, 16)
GOAL_BOUND, GOAL_MICRO = 0.92, 1.10


class Layer:
    """The network, node by node."""

    def __init__(self):
        self.random = np.random.default_rng(7)
        self.nodes, self.constants = [], []

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape):
        return self.constant((self.random.standard_normal(shape) / 20).astype(np.float32))

    def node(self, op, *inputs, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name, **attributes))
        return name

    def linear(self, x, rows, columns):
        product = self.node("MatMul", x, self.weight(rows, columns))
        return self.node("Add", product, self.weight(columns))

    def normalized(self, x):
        return self.node("LayerNormalization", x, self.weight(WIDE), self.weight(WIDE), axis=-1)

    def attention(self, x, bias):
        split = self.constant(np.int64([0, 0, HEADS, WIDE // HEADS]))
        q, k, v = (self.node("Transpose", self.node("Reshape", self.linear(x, WIDE, WIDE), split),
                             perm=perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scale = self.constant(np.float32((WIDE / HEADS) ** -0.5))
        scores = self.node("Add", self.node("Mul", self.node("MatMul", q, k), scale), bias)
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        joined = self.node("Reshape", self.node("Transpose", mixed, perm=[0, 2, 1, 3]),
                           self.constant(np.int64([0, 0, WIDE])))
        return self.linear(joined, WIDE, WIDE)

    def model(self):
        """x [batch, seq, 512] and its mask [batch, seq] -> y."""
        kept = self.node("Unsqueeze", self.node("Cast", "mask", to=TensorProto.FLOAT),
                         self.constant(np.int64([1, 2])))
        bias = self.node("Mul", self.node("Sub", self.constant(np.float32(1)), kept),
                         self.constant(np.float32(-1e4)))
        x = self.normalized(self.node("Add", self.attention("x", bias), "x"))
        inner = self.linear(self.node("Relu", self.linear(x, WIDE, INNER)), INNER, WIDE)
        y = self.normalized(self.node("Add", inner, x))
        self.nodes.append(helper.make_node("Identity", [y], ["y"]))
        place = ["batch", "seq", WIDE]
        graph = helper.make_graph(
            self.nodes, "encoder",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, place),
             helper.make_tensor_value_info("mask", TensorProto.INT64, place[:2])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, place)], self.constants)
        return helper.make_model(graph, ir_version=8,
                                 opset_imports=[helper.make_opsetid("", 17)])


def quantiles():
    """{data set: lengths of its texts at 0/64, 1/64 ... 64/64}."""
    return json.loads((Path(__file__).parent / "lengths.json").read_text(encoding="utf-8"))


def drawn(name, batch):
    """Lengths of a batch, the same at every call."""
    known = quantiles()[name]
    places = np.random.default_rng(11).uniform(0, len(known) - 1, batch)
    return np.interp(places, range(len(known)), known).round().astype(int).clip(1)


def flops(lengths):
    """Multiplications and additions of the layer: products of tokens, and attention."""
    tokens, squares = sum(lengths), sum(length * length for length in lengths)
    return 2 * (4 * WIDE * WIDE + 2 * WIDE * INNER) * tokens + 4 * WIDE * squares


def inputs(lengths):
    """A padded batch and its mask."""
    longest = max(lengths)
    x = np.random.default_rng(5).standard_normal((len(lengths), longest, WIDE))
    return {"x": x.astype(np.float32),
            "mask": (np.arange(longest) < np.array(lengths)[:, None]).astype(np.int64)}


def cut(feeds, rows, lengths):
    """Some rows of a batch, padded to the longest of them."""
    longest = max(lengths[row] for row in rows)
    return {name: np.ascontiguousarray(value[rows, :longest]) for name, value in feeds.items()}


class Engines:
    """What is compared, for one number of threads."""

    def __init__(self, threads):
        sys.path.insert(0, str(tool.ROOT / "python"))
        import heddle
        import onnxruntime
        model = Layer().model()
        self.ragged, self.padded = (
            heddle.Session(heddle.compile(model, threads=threads, ragged=rows), threads=threads)
            for rows in ("batch:seq=mask", None))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.peer = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                 providers=["CPUExecutionProvider"])

    def check(self, feeds, lengths):
        """Each row of the ragged artefact's result against the padded one's."""
        (found,), (wanted,) = (engine.run(None, feeds) for engine in (self.ragged, self.padded))
        for row, length in enumerate(lengths):
            np.testing.assert_allclose(found[row, :length], wanted[row, :length], rtol=1e-3,
                                       atol=1e-4, err_msg=f"row {row}")
            assert not found[row, length:].any(), f"row {row} is not 0 beyond its length"

    def calls(self, feeds, lengths):
        """{name: one run of the batch}."""
        order = np.argsort(lengths)[::-1]
        made = {"ragged": lambda: self.ragged.run(None, feeds),
                "padded": lambda: self.padded.run(None, feeds),
                "onnxruntime": lambda: self.peer.run(None, feeds)}
        for parts in PARTS:
            if parts <= len(lengths):
                pieces = [cut(feeds, rows, lengths) for rows in np.array_split(order, parts)]
                made[f"micro {parts}"] = lambda pieces=pieces: [
                    self.padded.run(None, piece) for piece in pieces]
        return made

    def compare(self, name, batch, threads, given):
        """What was found of one batch."""
        lengths = drawn(name, batch)
        feeds = inputs(lengths)
        self.check(feeds, lengths)
        calls = self.calls(feeds, lengths)
        times = turns.by_turns({key: wall(call) for key, call in calls.items()}, given.rounds,
                               given.turn / 1000)
        best = min((key for key in times if key.startswith("micro")),
                   key=lambda key: statistics.median(times[key]), default="padded")
        bound = flops([max(lengths)] * batch) / flops(lengths)
        gained = turns.ratio(times, "padded", "ragged")
        return {"set": name, "batch": batch, "threads": threads, "bound": bound, "turns": times,
                "padded": gained["ratio"], "of_bound": gained["ratio"] / bound, "micro": best,
                "peer": turns.ratio(times, "onnxruntime", "ragged"),
                **turns.ratio(times, best, "ragged")}


def wall(call):
    """A timed thing of a function that may have several threads."""
    def run(runs):
        found = []
        for _ in range(runs):
            begin = time.perf_counter()
            call()
            found.append(time.perf_counter() - begin)
        return found
    return run


def rows(found):
    """Lines of the table."""
    for each in found:
        yield (each["set"], each["batch"], each["threads"],
               f"{1e3 * statistics.median(each['turns']['ragged']):.1f}", f"{each['bound']:.2f}",
               f"{each['padded']:.2f}", f"{each['of_bound']:.2f}",
               f"{report.spread(each)} ({each['micro']})", report.spread(each["peer"]))


def main():
    options = report.arguments(__doc__, rounds=7, turn_ms=100)
    options.add_argument("--sets", nargs="+", default=list(quantiles()), choices=quantiles())
    options.add_argument("--batch", nargs="+", type=int, default=[32, 64, 128])
    options.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    given = options.parse_args()
    found = report.last("ragged") if given.last else []
    for threads in () if given.last else given.threads:
        engines = Engines(threads)
        for batch in given.batch:
            for name in given.sets:
                if given.only in name:
                    found.append(engines.compare(name, batch, threads, given))
                    print(".", end="", file=sys.stderr, flush=True)
    means = {key: report.geometric_mean(each[key] for each in found)
             for key in ("of_bound", "ratio")}
    lines = report.table(["set", "batch", "threads", "ragged, ms", "bound", "padded / ragged",
                          "of bound", "micro-batched / ragged", "ONNX Runtime / ragged"],
                         rows(found))
    report.publish("ragged", [
        *lines, "", f"Geometric means: of the bound {means['of_bound']:.3f} (goal {GOAL_BOUND}), "
        f"micro-batched / ragged {means['ratio']:.3f} (goal {GOAL_MICRO})."], found, given)


if __name__ == "__main__":
    main()
