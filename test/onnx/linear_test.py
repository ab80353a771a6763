"""Ops of models whose attention is a recurrence, held against ONNX Runtime's CPU kernels."""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node, make_value
from heddle_lab.fuzz.check import run_onnxruntime

BATCH, LENGTH = 2, 5


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def check(op, inputs, attributes, outputs=1, open_axis=None):
    """`inputs`: arrays, or None. `open_axis`: where the length is a symbol."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    feeds = {name: x for name, x in zip(names, inputs) if name}
    results = [f"y{i}" for i in range(outputs)]

    def shape(array):
        return ["length" if i == open_axis and size == LENGTH else size
                for i, size in enumerate(array.shape)]

    node = make_node(op, names, results, domain="com.microsoft", **attributes)
    model = make_model(
        [node], {name: (shape(x), x.dtype) for name, x in feeds.items()},
        [make_value(name, None, inputs[0].dtype) for name in results], opset=21,
        domains={"com.microsoft": 1})
    data = model.SerializeToString()
    found = heddle.Session(heddle.compile(data, cache=False)).run(None, feeds)
    theirs = run_onnxruntime(data, results, feeds)
    assert theirs is not None, "ONNX Runtime does not run it"
    for mine, name in zip(found, results):
        assert mine.dtype == theirs[name].dtype
        wide = 2e-2 if mine.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(mine.astype(np.float64), theirs[name].astype(np.float64),
                                   rtol=wide, atol=wide)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("queries, heads", [(2, 2), (4, 2), (2, 4)])
@pytest.mark.parametrize("has_past, per_key", [(False, False), (True, True)])
def test_linear_attention(rule, queries, heads, has_past, per_key):
    size, width = 3, 4
    key = drawn(BATCH, LENGTH, heads * size, seed=1)
    inputs = [drawn(BATCH, LENGTH, queries * size), key / 3,
              drawn(BATCH, LENGTH, heads * width, seed=2),
              drawn(BATCH, heads, size, width, seed=3) if has_past else None]
    if rule != "linear":
        decay = -np.abs(drawn(BATCH, LENGTH, heads * (size if per_key else 1), seed=4))
        inputs += [decay if rule.startswith("gated") else None]
    if rule.endswith("delta"):
        inputs += [np.abs(drawn(BATCH, LENGTH, heads if has_past else 1, seed=5)) / 3]
    check("LinearAttention", inputs,
          {"q_num_heads": queries, "kv_num_heads": heads, "update_rule": rule,
           **({"scale": 0.7} if has_past else {})}, 2, open_axis=1)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_gates_of_linear_attention(kind):
    check("LinearAttentionGate",
          [drawn(BATCH, LENGTH, 3).astype(kind), drawn(3, seed=1), -np.abs(drawn(3, seed=2)),
           drawn(BATCH, LENGTH, 3, seed=3).astype(kind)], {}, 2, open_axis=1)


@pytest.mark.parametrize("taps, dilation", [(4, 1), (3, 2), (1, 1)])
@pytest.mark.parametrize("has_past", [False, True])
@pytest.mark.parametrize("is_last", [0, 1])
def test_a_causal_convolution_with_state(taps, dilation, has_past, is_last):
    channels, reach = 6, (taps - 1) * dilation

    def turned(x):
        return np.ascontiguousarray(x.transpose(0, 2, 1)) if is_last else x

    past = turned(drawn(BATCH, channels, reach, seed=1)) if has_past else None
    check("CausalConvWithState",
          [turned(drawn(BATCH, channels, LENGTH)), drawn(channels, 1, taps, seed=2),
           drawn(channels, seed=3) if has_past else None, past],
          {"dilation": dilation, "channels_last": is_last,
           "activation": "silu" if has_past else "none"}, 2, open_axis=1 if is_last else 2)


@pytest.mark.parametrize("activation", ["silu", "sigmoid"])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_a_gated_normalisation(activation, kind):
    check("GatedRMSNorm", [x.astype(kind) for x in (drawn(BATCH, LENGTH, 12), drawn(4, seed=1),
                                                    drawn(BATCH, LENGTH, 12, seed=2))],
          {"activation": activation, "epsilon": 1e-5}, open_axis=1)


def test_a_gated_sum():
    check("GatedAdd", [drawn(BATCH, LENGTH, 4), drawn(BATCH, LENGTH, 4, seed=1),
                       drawn(BATCH, LENGTH, 1, seed=2)], {}, open_axis=1)


@pytest.mark.parametrize("layout, sections", [(0, [2, 1, 1]), (1, [2, 1, 1]), (1, [4, 0, 0]),
                                              (0, [0, 4, 0])])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rank", [3, 4])
def test_rotations_by_three_positions(layout, sections, interleaved, rank):
    heads, size = 2, 8
    x = drawn(BATCH, LENGTH, heads * size) if rank == 3 else drawn(BATCH, heads, LENGTH, size)
    places = np.random.default_rng(1).integers(0, 10, (3, BATCH, LENGTH))
    angles = np.outer(np.arange(10), [1, 0.3, 0.1, 0.03]).astype(np.float32)
    check("MRotaryEmbedding", [x, places, np.cos(angles), np.sin(angles)],
          {"mrope_section": sections, "mrope_layout": layout, "interleaved": interleaved,
           **({"num_heads": heads} if rank == 3 else {})})


@pytest.mark.parametrize("op, attributes, message", [
    ("LinearAttention", {"q_num_heads": 2, "kv_num_heads": 3}, "one must divide the other"),
    ("LinearAttention", {"q_num_heads": 1, "kv_num_heads": 1, "update_rule": "x"}, "is 'x'"),
    ("CausalConvWithState", {"state_window": 2}, "'state_window' is 2, but only 0 is supported"),
    ("GatedRMSNorm", {"activation": "tanh"}, "'activation' is 'tanh'")])
def test_what_is_not_supported_is_refused(op, attributes, message):
    with pytest.raises(heddle.RefusedError, match=message):
        check(op, [drawn(1, 2, 6), drawn(6, 1, 3) if op[0] == "C" else drawn(1, 2, 6),
                   drawn(1, 2, 6)], attributes, 2 if op != "GatedRMSNorm" else 1)
