"""Mixtures of experts, held against NumPy and, where its CPU kernel takes them, ONNX Runtime."""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node, make_value
from heddle_lab.fuzz.check import run_onnxruntime

TOKENS, HIDDEN, EXPERTS, INNER = 7, 32, 5, 64


def model_of(op, names, feeds, attributes, open_sizes):
    def shape(name):
        return ["tokens", *feeds[name].shape[1:]] if open_sizes and name in ("x", "router") \
            else feeds[name].shape

    model = make_model([make_node(op, names, "y", domain="com.microsoft", **attributes)],
                       {name: (shape(name), a.dtype) for name, a in feeds.items()},
                       [make_value("y", None, feeds["x"].dtype)], opset=21,
                       domains={"com.microsoft": 1})
    return model.SerializeToString()


def drawn(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def activated(attributes, x, linear):
    name, fusion = attributes["activation_type"], attributes.get("swiglu_fusion", 0)
    if name == "swiglu":
        if fusion == 1:
            x, linear = x[0::2], x[1::2]
        elif fusion == 2:
            x, linear = np.split(x, 2)
        limit = attributes.get("swiglu_limit", np.inf)
        x, linear = np.minimum(x, limit), np.clip(linear, -limit, limit)
        return x * sigmoid(attributes.get("activation_alpha", 1) * x) * (
            linear + attributes.get("activation_beta", 0))
    y = {"relu": lambda: np.maximum(x, 0), "identity": lambda: x, "silu": lambda: x * sigmoid(x),
         "gelu": lambda: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2}[name]()
    return y if linear is None else y * linear


def mixture(attributes, x, router, layers, mixing=None):
    """By the text of the op: `layers` are three (weights, bias), of which either may be None."""
    def product(layer, expert, v):
        weights, bias = layer
        return weights[expert] @ v + (0 if bias is None else bias[expert])

    y = np.zeros((len(x), layers[1][0].shape[1]))
    for token, (v, logits) in enumerate(zip(x.astype(np.float64), router.astype(np.float64))):
        chosen = np.argsort(-logits, kind="stable")[:attributes.get("k", 1)]
        shares = np.exp(logits - logits.max())
        shares = shares / shares.sum() if mixing is None else mixing[token]
        total = shares[chosen].sum() if attributes.get("normalize_routing_weights") else 1
        for expert in chosen:
            linear = None if layers[2][0] is None else product(layers[2], expert, v)
            h = activated(attributes, product(layers[0], expert, v), linear)
            y[token] += shares[expert] / total * product(layers[1], expert, h)
    return y


def check(op, names, feeds, attributes, wanted, tolerance, is_runtime_sure=True):
    for open_sizes in (False, True):
        data = model_of(op, names, feeds, attributes, open_sizes)
        module = heddle.compile(data, cache=False, opt_level=2 if open_sizes else 0)
        found = heddle.Session(module).run(None, feeds)[0]
        assert found.dtype == feeds["x"].dtype and found.shape == feeds["x"].shape
        scale = np.abs(wanted).max(initial=1e-9)
        assert np.abs(found.astype(np.float64) - wanted.reshape(found.shape)).max(
            initial=0) < tolerance * scale
    theirs = run_onnxruntime(data, ["y"], feeds)
    assert not is_runtime_sure or theirs is not None
    if theirs is not None and theirs["y"].size:
        assert np.abs(found.astype(np.float64) - theirs["y"]).max() < tolerance * scale


@pytest.mark.parametrize("normalize", [0, 1])
@pytest.mark.parametrize("activation, fusion, third", [
    ("relu", 0, False), ("gelu", 0, False), ("silu", 0, False), ("identity", 0, False),
    ("silu", 0, True), ("swiglu", 0, True), ("swiglu", 1, False), ("swiglu", 2, False)])
def test_a_mixture_of_experts(activation, fusion, third, normalize):
    rng = np.random.default_rng(3)
    rows = INNER * (2 if fusion else 1)
    feeds = {"x": drawn(rng, TOKENS, HIDDEN), "router": drawn(rng, TOKENS, EXPERTS),
             "w1": drawn(rng, EXPERTS, rows, HIDDEN), "b1": drawn(rng, EXPERTS, rows),
             "w2": drawn(rng, EXPERTS, HIDDEN, INNER), "b2": drawn(rng, EXPERTS, HIDDEN)}
    if third:
        feeds |= {"w3": drawn(rng, EXPERTS, INNER, HIDDEN), "b3": drawn(rng, EXPERTS, INNER)}
    attributes = {"k": 2, "activation_type": activation, "normalize_routing_weights": normalize}
    if activation == "swiglu":
        attributes |= {"swiglu_fusion": fusion, "swiglu_limit": 7.0, "activation_alpha": 1.702,
                       "activation_beta": 1.0}
    layers = [(feeds.get(f"w{i}"), feeds.get(f"b{i}")) for i in (1, 2, 3)]
    wanted = mixture(attributes, feeds["x"], feeds["router"], layers)
    check("MoE", list(feeds), feeds, attributes, wanted, 1e-5, not third and fusion != 2)


@pytest.mark.parametrize("tokens", [0, 1, 33])
@pytest.mark.parametrize("kind, tolerance", [(np.float32, 1e-5), (np.float16, 1e-2)])
def test_a_batch_of_any_length_without_biases(tokens, kind, tolerance):
    rng = np.random.default_rng(tokens)
    feeds = {"x": drawn(rng, 1, tokens, HIDDEN), "router": drawn(rng, tokens, EXPERTS),
             "w1": drawn(rng, EXPERTS, INNER, HIDDEN), "w2": drawn(rng, EXPERTS, HIDDEN, INNER)}
    feeds = {name: array.astype(kind) for name, array in feeds.items()}
    wanted = mixture({"activation_type": "relu"}, feeds["x"][0], feeds["router"],
                     [(feeds["w1"], None), (feeds["w2"], None), (None, None)])
    names = ["x", "router", "w1", "", "w2", ""]
    data = model_of("MoE", names, feeds, {}, False)
    found = heddle.Session(heddle.compile(data, cache=False)).run(None, feeds)[0]
    assert found.shape == feeds["x"].shape and found.dtype == kind
    scale = np.abs(wanted).max(initial=1e-9)
    assert np.abs(found[0].astype(np.float64) - wanted).max(initial=0) < tolerance * scale


def packed(codes, bits):
    """uint8 with the first number in the lowest bits; the last byte may be half full."""
    count = 8 // bits
    missing = -codes.shape[-1] % count
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, missing)])
    parts = codes.reshape(*codes.shape[:-1], -1, count).astype(np.uint16)
    return (parts << (bits * np.arange(count, dtype=np.uint16))).sum(-1).astype(np.uint8)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("has_zeros, mixes", [(False, False), (True, True)])
@pytest.mark.parametrize("normalize", [0, 1])
def test_a_mixture_of_quantised_experts(bits, block, has_zeros, mixes, normalize):
    rng = np.random.default_rng(bits + block)
    feeds = {"x": drawn(rng, TOKENS, HIDDEN), "router": drawn(rng, TOKENS, EXPERTS)}
    layers, zeros = [], {}
    for i, (rows, columns) in enumerate(((2 * INNER, HIDDEN), (HIDDEN, INNER)), 1):
        scales = (EXPERTS, rows, columns // block) if block else (EXPERTS, rows)
        codes = rng.integers(0, 1 << bits, (EXPERTS, rows, columns))
        scale = rng.uniform(0.05, 0.1, scales).astype(np.float32) * 2.0 ** (4 - bits)
        zero = rng.integers(0, 1 << bits, scales) if has_zeros else \
            np.full(scales, 1 << (bits - 1))
        bias = drawn(rng, EXPERTS, rows)
        feeds |= {f"w{i}": packed(codes, bits), f"s{i}": scale, f"b{i}": bias}
        if has_zeros:
            zeros[f"z{i}"] = packed(zero, bits)
        spread = [np.repeat(a, block, -1) if block else a[..., None] for a in (scale, zero)]
        layers.append(((codes - spread[1]) * spread[0], bias))
    names = [*feeds, "", "", "", *(zeros or ["", ""]), ""]
    feeds |= zeros
    if mixes:
        feeds["mixing"] = np.abs(drawn(rng, TOKENS, EXPERTS))
        names.append("mixing")
    attributes = {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "swiglu_limit": 7.0,
                  "activation_alpha": 1.702, "activation_beta": 1.0, "weights_prepacked": 0,
                  "expert_weight_bits": bits, "normalize_routing_weights": normalize}
    if block:
        attributes["block_size"] = block
    rule = {**attributes, "normalize_routing_weights": normalize or not mixes}
    wanted = mixture(rule, feeds["x"], feeds["router"], [*layers, (None, None)],
                     feeds.get("mixing"))
    # ONNX Runtime rounds activations to 8 bits beside weights of 8 bits in blocks.
    check("QMoE", names, feeds, attributes, wanted, 2e-2 if bits == 8 and block else 1e-4)


@pytest.mark.parametrize("attributes, message", [
    ({"use_sparse_mixer": 1}, "'use_sparse_mixer' is not supported"),
    ({"activation_type": "geglu"}, "'activation_type' is 'geglu', but must be 'relu'"),
    ({"k": 6}, "'k' is 6, but there are 5 experts"), ({"k": 0}, "'k' is 0"),
    ({"activation_type": "swiglu"}, "needs a third layer")])
def test_other_mixtures_are_refused(attributes, message):
    feeds = {"x": np.zeros((2, 3), np.float32), "router": np.zeros((2, 5), np.float32),
             "w1": np.zeros((5, 4, 3), np.float32), "b1": np.zeros((5, 4), np.float32),
             "w2": np.zeros((5, 3, 4), np.float32)}
    with pytest.raises(heddle.RefusedError, match=message):
        heddle.compile(model_of("MoE", list(feeds), feeds, attributes, False), cache=False)


@pytest.mark.parametrize("op, missing", [("MoE", "w1"), ("MoE", "w2"), ("QMoE", "w1"),
                                         ("QMoE", "w2"), ("QMoE", "s2")])
def test_experts_without_weights_are_refused(op, missing):
    names = ["x", "router", "w1", "b1", "w2"] if op == "MoE" else \
        ["x", "router", "w1", "s1", "b1", "w2", "s2"]
    kind = np.float32 if op == "MoE" else np.uint8
    feeds = {"x": np.zeros((2, 8), np.float32), "router": np.zeros((2, 5), np.float32),
             "w1": np.zeros((5, 4, 8), kind), "s1": np.zeros((5, 4), np.float32),
             "b1": np.zeros((5, 4), np.float32), "w2": np.zeros((5, 8, 4), kind),
             "s2": np.zeros((5, 8), np.float32)}
    feeds = {name: feeds[name] for name in names if name != missing}
    names = [name if name != missing else "" for name in names]
    with pytest.raises(heddle.RefusedError, match="missing|need scales"):
        heddle.compile(model_of(op, names, feeds, {}, False), cache=False)
