"""Attention of 12 heads of 64 with a mask, as exporters write it, against ONNX Runtime's.

    ./dev bench attention

One thread. The network is that of a transformer between its projections: reshapes, transposes,
MatMul, a scale, an additive mask, Softmax, MatMul. ONNX Runtime has the same network, and as a
second form its own op MultiHeadAttention, which a model has only after ONNX Runtime's tool rewrote
it. Masks hide one key in eight of each row, or what follows it (causal).
"""

import statistics

import numpy as np
from heddle.onnx_graph import make_model, make_node
from onnx import TensorProto

from bench.kernels import engines, report, turns
from bench.kernels.layers import model, node, normal
from bench.kernels.turns import timed_calls

HEADS, SIZE = 12, 64
HIDDEN = -1e4
SHAPES = [(batch, length, causal) for batch in (1, 16) for length in (128, 384, 1024)
          for causal in (False, True)]
GOAL = 1.5


def heads(name, perm):
    """Nodes that split x into heads."""
    return [node("Reshape", [name, "split"], f"{name}_split"),
            node("Transpose", [f"{name}_split"], f"{name}_heads", perm=perm)]


def plain(batch, length, causal):
    """As exporters write it."""
    places = {name: [batch, length, HEADS * SIZE] for name in "qkv"}
    constants = {"split": np.array([batch, length, HEADS, SIZE]),
                 "join": np.array([batch, length, HEADS * SIZE]),
                 "scale": np.float32(SIZE ** -0.5)}
    if causal:
        constants["mask"] = np.triu(np.full((1, 1, length, length), HIDDEN, np.float32), 1)
    else:
        places["mask"] = [batch, 1, 1, length]
    nodes = [*heads("q", [0, 2, 1, 3]), *heads("k", [0, 2, 3, 1]), *heads("v", [0, 2, 1, 3]),
             node("MatMul", ["q_heads", "k_heads"], "scores"),
             node("Mul", ["scores", "scale"], "scaled"), node("Add", ["scaled", "mask"], "masked"),
             node("Softmax", ["masked"], "weights", axis=-1),
             node("MatMul", ["weights", "v_heads"], "context"),
             node("Transpose", ["context"], "turned", perm=[0, 2, 1, 3]),
             node("Reshape", ["turned", "join"], "y")]
    return model(nodes, places, [batch, length, HEADS * SIZE], constants)


def fused(batch, length, causal):
    """As ONNX Runtime's own op."""
    place = [batch, length, HEADS * SIZE]
    inputs = {name: place for name in "qkv"}
    words = ["q", "k", "v"]
    if not causal:
        inputs["keys"] = [batch, length], TensorProto.INT32
        words += ["", "keys"]
    op = make_node("MultiHeadAttention", words, "y", domain="com.microsoft", num_heads=HEADS,
                   unidirectional=int(causal), mask_filter_value=HIDDEN)
    return make_model([op], inputs, {"y": place}, domains={"com.microsoft": 1})


def compare(batch, length, causal, given):
    """Times of one size, after all have given the same."""
    keys = (np.arange(length) < length * 7 // 8).astype(np.int32)
    feeds = {name: normal(batch, length, HEADS * SIZE) * 8 for name in "qkv"}
    feeds["keys"] = np.repeat(keys[None], batch, 0)
    feeds["mask"] = ((1 - feeds["keys"]) * np.float32(HIDDEN))[:, None, None].astype(np.float32)
    network = plain(batch, length, causal)
    ours = engines.Heddle(network, {place.name: feeds[place.name] for place in network.graph.input})
    ours.call()
    calls = {"heddle": ours.call}
    for name, each in (("plain", network), ("fused", fused(batch, length, causal))):
        calls[name], (result,) = engines.onnxruntime_call(each, feeds)
        np.testing.assert_allclose(ours.results[0], result, rtol=1e-3, atol=1e-3, err_msg=name)
    times = turns.by_turns({name: timed_calls(call) for name, call in calls.items()},
                           given.rounds, given.turn / 1000)
    cards = [group["card"] for group in ours.plan["groups"]]
    return {"batch": batch, "length": length, "causal": causal, "turns": times, "cards": cards,
            "fused": turns.ratio(times, "fused", "heddle"), **turns.ratio(times, "plain", "heddle")}


def rows(found):
    """Lines of the table."""
    for each in found:
        medians = [1e3 * statistics.median(each["turns"][name])
                   for name in ("heddle", "plain", "fused")]
        work = 4e-6 * each["batch"] * HEADS * SIZE * each["length"] ** 2
        yield (f"{each['batch']} x {each['length']}{' causal' if each['causal'] else ''}",
               *(f"{value:.2f}" for value in medians), report.spread(each),
               report.spread(each["fused"]), f"{work / medians[0]:.0f}", ", ".join(each["cards"]))


def lines(found):
    """The table and the means."""
    return [*report.table(["batch x length", "heddle, ms", "ONNX Runtime, ms",
                           "its MultiHeadAttention, ms", "ONNX Runtime / heddle",
                           "MultiHeadAttention / heddle", "GFLOP/s", "cards"], rows(found)), "",
            f"Same network: {report.summary(found)} (goal: {GOAL}). MultiHeadAttention: "
            f"{report.summary([each['fused'] for each in found])}."]


def measure(given):
    """Times of all sizes that are asked for."""
    return (compare(*shape, given) for shape in SHAPES if given.only in "x".join(map(str, shape)))


def main():
    given = report.arguments(__doc__, rounds=9, turn_ms=10).parse_args()
    report.tell("attention", given, measure, lines)


if __name__ == "__main__":
    main()
