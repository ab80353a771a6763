"""Operators on matrices that are no rectangles of constants, as CoRa times them.

    ./dev bench variable [--only trmm] [--batch 8 32] [--sizes 512 1024] [--note]

`vgemm` is a batch of products whose sizes are random multiples of 128 in [512, 1408], `trmm` a
triangular matrix times a square one, `tradd` and `trmul` sums and products of triangular matrices
element by element (Fegade et al., MLSys 2022, section 7.1), all as ops of the domain `heddle`
(python/heddle/ops.py). `causal` is attention (8 heads of 64) under a causal mask at the lengths of
texts, without padding, beside the same without the mask; ONNX Runtime has the padded batch.

Peers, all with one thread and by turns: oneDNN's product of each matrix alone, OpenBLAS' trmm (the
one that SciPy carries) on matrices in its own column order, our own artefact of the whole padded or
square matrices, and ONNX Runtime with the function that the op means. Results are held against
NumPy's or ONNX Runtime's first.
"""

import statistics
import sys

import heddle.ops
import numpy as np
from heddle.onnx_graph import make_model, make_node
from onnx import TensorProto

from bench.kernels import engines, onednn, report, turns
from bench.kernels.layers import model, node, normal
from bench.kernels.turns import timed_calls
from bench.ragged.bench import drawn
from bench.ragged.encoders import WIDE

SQUARES, BATCHES = (512, 1024, 2048, 4096), (8, 32)
LEAST, MOST, STEP = 512, 1408, 128  # of vgemm
HEADS = 8
# op: {peer: goal}, geometric means
GOALS = {"vgemm": {"oneDNN": 0.9}, "trmm": {"OpenBLAS": 0.85, "whole": 1.5},
         "causal RACE": {"whole": 1.56}, "causal MNLI": {"whole": 1.29}}
PEERS = ("whole", "oneDNN", "OpenBLAS", "ONNX Runtime")


def of_ours(op, inputs, output, functions):
    """A model of one op of the domain `heddle`."""
    attributes = {"upper": 0} if op.startswith("Tr") else {}
    return make_model([make_node(op, list(inputs), "y", op, domain="heddle", **attributes)],
                      {name: (shape, kind) for name, (kind, shape) in inputs.items()},
                      {"y": output}, domains={"heddle": 1}, functions=functions)


def ours(network, feeds, **options):
    """A call of a compiled model, and what it gives."""
    session = heddle.Session(heddle.compile(network, threads=1, **options), threads=1)
    return lambda: session.run(None, feeds)[0]


def onnxruntime_call(network, feeds):
    """The same of ONNX Runtime."""
    call, _ = engines.onnxruntime_call(network, feeds)
    return call


def vgemm(given):
    """For each case its size, its work in FLOP, and what is timed."""
    for batch in given.batch:
        yield vgemm_of(batch)


def vgemm_of(batch):
    """The same of a batch of so many products."""
    random = np.random.default_rng(3)
    sizes = random.integers(LEAST // STEP, MOST // STEP + 1, (batch, 3)) * STEP
    m, k, n = sizes.max(0).tolist()
    a, b = normal(batch, m, k), normal(batch, k, n)
    feeds = {"A": a, "B": b, **{key: sizes[:, i].copy() for i, key in enumerate("mkn")}}
    inputs = {"A": (TensorProto.FLOAT, list(a.shape)), "B": (TensorProto.FLOAT, list(b.shape)),
              **{key: (TensorProto.INT64, [batch]) for key in "mkn"}}
    network = of_ours("Vgemm", inputs, [batch, m, n], [heddle.ops.vgemm()])
    call = ours(network, feeds)
    found = call()
    layers = []
    for i, (rows, depth, columns) in enumerate(sizes.tolist()):
        layer = onednn.product(rows, depth, columns)
        layer.copy(0, np.ascontiguousarray(a[i, :rows, :depth]))
        layer.copy(1, np.ascontiguousarray(b[i, :depth, :columns]))
        layers.append(layer)
        np.testing.assert_allclose(found[i, :rows, :columns],
                                   a[i, :rows, :depth] @ b[i, :depth, :columns],
                                   rtol=1e-3, atol=1e-3)
    whole = ours(model([node("MatMul", ["A", "B"], "y")], {"A": list(a.shape), "B": list(b.shape)},
                       [batch, m, n], {}), {"A": a, "B": b})
    return f"batch {batch}", 2.0 * sizes.prod(1).sum(), {
        "heddle": timed_calls(call), "whole": timed_calls(whole),
        "oneDNN": lambda runs: [sum(layer.run(1)[0] for layer in layers) for _ in range(runs)],
        "ONNX Runtime": timed_calls(onnxruntime_call(network, feeds))}


def squares(op, plain, flops, blas=None):
    """The same of an op of triangular matrices, for each size."""
    def cases(given):
        for size in given.sizes:
            shape = [size, size]
            inputs = {"A": (TensorProto.FLOAT, shape), "B": (TensorProto.FLOAT, shape)}
            feeds = {"A": normal(*shape), "B": normal(*shape)}
            function = getattr(heddle.ops, op.lower())()
            network = of_ours(op, inputs, shape, [function])
            call = ours(network, feeds)
            theirs, (wanted,) = engines.onnxruntime_call(network, feeds)
            np.testing.assert_allclose(call(), wanted, rtol=1e-3, atol=1e-3)
            whole = ours(model([node(plain, ["A", "B"], "y")], {"A": shape, "B": shape}, shape, {}),
                         feeds)
            yield f"{size} x {size}", flops(size), {
                "heddle": timed_calls(call), "whole": timed_calls(whole),
                "ONNX Runtime": timed_calls(theirs), **(blas(feeds, wanted) if blas else {})}
    return cases


def openblas(feeds, wanted):
    """trmm, which overwrites its right operand: in turns of one matrix times what came of the last
    turn, which a unit diagonal keeps finite."""
    try:
        from scipy.linalg.blas import strmm
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        print(f"OpenBLAS: {error}", file=sys.stderr)
        return {}
    a, b = (np.asfortranarray(feeds[name]) for name in "AB")
    np.testing.assert_allclose(strmm(1.0, a, b, lower=1), wanted, rtol=1e-3, atol=1e-3)
    held = np.asfortranarray(np.zeros_like(b))

    def call():
        strmm(1.0, a, held, lower=1, overwrite_b=1)
    threadpool_limits(1, "blas")
    return {"OpenBLAS": timed_calls(call)}


def attention(is_causal):
    """Of heads that lie one after the other: scores, a mask perhaps, softmax, values."""
    size = WIDE // HEADS
    places = {"q": ["batch", HEADS, "seq", size], "k": ["batch", HEADS, size, "seq"],
              "v": ["batch", HEADS, "seq", size]}
    nodes = [node("MatMul", ["q", "k"], "scores")]
    if is_causal:
        nodes += [node("Shape", ["q"], "size", start=2, end=3), node("Squeeze", ["size"], "count"),
                  node("Range", ["zero", "count", "one"], "keys"),
                  node("Unsqueeze", ["keys", "ones"], "queries"),
                  node("LessOrEqual", ["keys", "queries"], "seen"),
                  node("Where", ["seen", "scores", "hidden"], "logits")]
    nodes += [node("Softmax", ["logits" if is_causal else "scores"], "weights", axis=-1),
              node("MatMul", ["weights", "v"], "mixed"),
              node("Transpose", ["mixed"], "turned", perm=[0, 2, 1, 3]),
              node("Reshape", ["turned", "joined"], "y")]
    constants = {"zero": np.int64(0), "one": np.int64(1), "ones": np.int64([1]),
                 "hidden": np.float32(-1e4), "joined": np.int64([0, 0, WIDE])}
    return model(nodes, places, ["batch", "seq", WIDE], constants)


def causal(name):
    """Attention at the lengths of a batch of texts, as one ragged batch with packed results."""
    def case(batch):
        lengths = drawn(name, batch)
        sizes = {"batch": batch, "seq": int(lengths.max())}
        networks = {"heddle": attention(True), "whole": attention(False)}
        feeds = {place.name: normal(*(dim.dim_value or sizes[dim.dim_param]
                                      for dim in place.type.tensor_type.shape.dim))
                 for place in networks["heddle"].graph.input}
        feeds["lengths"] = lengths.astype(np.int64)
        options = {"ragged": "batch:seq=lengths", "ragged_outputs": "packed"}
        calls = {key: ours(network, feeds, **options) for key, network in networks.items()}
        call, (wanted,) = engines.onnxruntime_call(
            networks["heddle"], {key: feeds[key] for key in "qkv"})
        np.testing.assert_allclose(
            calls["heddle"](), np.concatenate([row[:n] for row, n in zip(wanted, lengths)]),
            rtol=1e-3, atol=1e-3)
        work = 2.0 * WIDE * float((lengths * (lengths + 1)).sum())
        return f"batch {batch}", work, {"ONNX Runtime": timed_calls(call), **{
            key: timed_calls(each) for key, each in calls.items()}}
    return lambda given: map(case, given.batch)


OPERATORS = {
    "vgemm": vgemm,
    "trmm": squares("Trmm", "MatMul", lambda n: 1.0 * n * n * (n + 1), openblas),
    "tradd": squares("Tradd", "Add", lambda n: n * (n + 1) / 2),
    "trmul": squares("Trmul", "Mul", lambda n: n * (n + 1) / 2),
    "causal RACE": causal("RACE"), "causal MNLI": causal("MNLI")}


def compare(given):
    """What was found of each case."""
    for name, cases in OPERATORS.items():
        if given.only in name:
            for size, flops, timed in cases(given):
                times = turns.by_turns(timed, given.rounds, given.turn / 1000)
                yield {"operator": name, "size": size, "flops": flops, "turns": times,
                       "peers": {peer: turns.ratio(times, peer, "heddle") for peer in timed
                                 if peer != "heddle"}}


def rows(found):
    """Lines of the table."""
    for each in found:
        seconds = statistics.median(each["turns"]["heddle"])
        yield (each["operator"], each["size"], f"{1e3 * seconds:.3f}",
               f"{1e-9 * each['flops'] / seconds:.0f}",
               *(report.spread(each["peers"][peer]) if peer in each["peers"] else ""
                 for peer in PEERS))


def goals(found):
    """A line for each goal."""
    for operator, peers in GOALS.items():
        for peer, goal in peers.items():
            ratios = [each["peers"][peer] for each in found
                      if each["operator"] == operator and peer in each["peers"]]
            if ratios:
                yield f"- {operator}, {peer}: {report.summary(ratios)} (goal: mean {goal})."


def main():
    options = report.arguments(__doc__, rounds=9, turn_ms=50)
    options.add_argument("--batch", type=int, nargs="+", default=BATCHES)
    options.add_argument("--sizes", type=int, nargs="+", default=SQUARES)
    given = options.parse_args()
    found = report.last("variable") if given.last else list(compare(given))
    lines = report.table(["operator", "size", "heddle, ms", "GFLOP/s",
                          *(f"{peer} / heddle" for peer in PEERS)], rows(found))
    report.publish("variable", [*lines, "", *goals(found)], found, given)


if __name__ == "__main__":
    main()
