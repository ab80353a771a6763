"""Weights alone as integers: methods beside references in NumPy, and models beside ONNX Runtime."""

import small
import numpy as np
import onnx
import pytest
from heddle.quantize import observe
from heddle.quantize.weightonly import awq, gptq, lowbit
from small import samples

import heddle

pytestmark = pytest.mark.usefixtures("compiler")
GRID = lowbit.Grid(4, True)


def inputs(columns, seed=0):
    """Correlated inputs, one of which is never there."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((400, columns)) @ random.standard_normal((columns, columns))
    x[:, 5] = 0
    return x.astype(np.float32)


def weights(rows, columns, seed=1):
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


def error(x, rows, coded):
    return float(((x @ (coded.values() - rows).T) ** 2).sum())


def textbook(rows, products, block):
    """GPTQ column by column: the inverse of what is left of H each time."""
    rows, values = rows.astype(np.float64), np.zeros(rows.shape)
    products = products + 0.01 * np.diag(products).mean() * np.eye(len(products))
    products[5, 5] += 1
    for at in range(rows.shape[1]):
        if at % block == 0:
            scale, zero = GRID.parameters(rows[:, at:at + block])
        code = GRID.codes(rows[:, at], scale, zero)
        values[:, at] = lowbit.values(code, scale, zero)
        inverse = np.linalg.inv(products[at:, at:])
        rows[:, at:] -= np.outer((rows[:, at] - values[:, at]) / inverse[0, 0], inverse[0])
    return values


@pytest.mark.parametrize("columns, block", [(64, 16), (200, 32), (160, 160)])
def test_gptq_is_the_textbooks(columns, block):
    x, rows = inputs(columns), weights(9, columns)
    products = (x.T @ x / len(x)).astype(np.float64)
    found = gptq.rounded(rows, gptq.factor(products, 0.01, False), GRID, block)
    assert (np.abs(found.values() - textbook(rows, products, block)) < 1e-5).mean() > 0.99
    plain = lowbit.nearest(rows, GRID, block)
    assert error(x, rows, found) < error(x, rows, plain)
    ordered = gptq.rounded(rows, gptq.factor(products, 0.01, True), GRID, block)
    assert error(x, rows, ordered) < error(x, rows, plain)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_rounding_is_that_of_onnxruntime(bits, symmetric):
    state = pytest.importorskip("onnxruntime.capi._pybind_state")
    rows = weights(7, 80)
    found = lowbit.nearest(rows, lowbit.Grid(bits, symmetric), 32)
    packed = np.zeros((7, 3, 32 * bits // 8), np.uint8)
    scale, zero = np.zeros((7, 3), np.float32), np.zeros((7, -(-3 * bits // 8)), np.uint8)
    padded = np.ascontiguousarray(np.pad(rows, ((0, 0), (0, 16))).T)
    getattr(state, f"quantize_matmul_{bits}bits")(packed, padded, scale, zero, 32, 7, 80, symmetric)
    flat = packed.reshape(7, -1)
    codes = flat if bits == 8 else np.stack([flat & 15, flat >> 4], -1).reshape(7, -1)
    np.testing.assert_allclose(found.scale, scale, rtol=1e-6)
    assert (codes[:, :80] != found.codes).mean() < 0.005


def test_factors_of_hard_products():
    assert gptq.factor(np.full((4, 4), np.nan), 0.01, False) is None
    for products in (np.zeros((8, 8)), np.ones((8, 8))):
        assert np.isfinite(gptq.factor(products, 0.0, False).upper).all()


def test_awq_is_no_worse_where_channels_are_outliers():
    x, rows = inputs(64), weights(16, 64)
    x[:, ::9] *= 30
    moments = observe.Moments()
    moments.add(x)
    scale = awq.best_scale([rows], moments, lambda each: lowbit.nearest(each, GRID, 32))
    off = lowbit.nearest(rows * scale, GRID, 32).values() / scale - rows
    assert ((x @ off.T) ** 2).sum() < 0.8 * error(x, rows, lowbit.nearest(rows, GRID, 32))


def test_tables_that_stay_are_named():
    """Until --ops asks for them."""
    feeds, reports = samples(small.embedded(), 4), []
    for options in ({}, {"weights": "int8"}, {"weights": "int8", "ops": ["MatMul", "Gather"]}):
        heddle.quantize(small.embedded(), feeds, report=reports.append, threads=1, **options)
    said = "it chooses from a table of 2560 bytes; "
    assert [[each["why"] for each in report.facts["left"]] for report in reports] == [
        [said + "--weights rounds tables"],
        [said + "--ops Gather --ops MatMul --ops Gemm rounds it, too"], []]


@pytest.mark.parametrize("options", [
    {"form": "matmulnbits"}, {"form": "dequantize"}, {"form": "matmulnbits", "symmetric": False},
    {"form": "dequantize", "symmetric": False}, {"weights": "int8", "ops": ["MatMul", "Gather"]},
    {"form": "dequantize", "block": 0, "weights": "int8"}, {"method": "gptq"}, {"method": "awq"}],
    ids=str)
@pytest.mark.parametrize("name", ["transformer", "gemm", "shared_weights", "embedded"])
def test_onnxruntime_has_the_same_numbers(name, options):
    onnxruntime = pytest.importorskip("onnxruntime")
    if name == "gemm" and "ops" in options:
        options = {**options, "ops": ["Gemm"]}
    model = small.NETWORKS[name]()
    feeds = samples(model, 6)
    made = heddle.quantize(model, feeds, threads=1, **{"weights": "int4", "block": 16, **options})
    onnx.checker.check_model(made)
    given = onnxruntime.SessionOptions()
    given.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), given,
                                           providers=["CPUExecutionProvider"])
    for ours, theirs in zip(heddle.compile(made).run(None, feeds[0]), session.run(None, feeds[0])):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())


def test_mixed_bits():
    model, reports = small.transformer(), []
    heddle.quantize(model, samples(model, 12), weights="int4", block=16, mixed=True, tolerance=0.05,
                    report=reports.append, threads=1)
    facts = reports[0].facts
    assert facts["outputs"][0]["error"] <= 0.05 and 8 in {each["bits"] for each in facts["layers"]}


@pytest.mark.parametrize("options, message", [
    ({"weights": "int4", "block": 24}, "--block 24: must be 0, 16"),
    ({"weights": "int4", "block": 0}, "--block 0: MatMulNBits has blocks"),
    ({"weights": "int4", "smooth": 0.5}, "--smooth: is an option of products of integers"),
    ({"method": "gptq"}, "--method: is an option of weights alone"),
    ({"weights": "int4", "act_order": True}, "--act-order: is an option of --method gptq")])
def test_options_that_contradict_each_other(options, message):
    with pytest.raises(heddle.UsageError, match=message):
        heddle.quantize(small.gemm(), samples(small.gemm(), 2), **options)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_weights_that_are_no_numbers(number):
    net = small.Net(0)
    array = np.ones((32, 32), np.float32)
    array[3, 4] = number
    net.op("MatMul", net.input("x", ["batch", 32]), net.constant(array, "w"), name="y")
    net.output("y", ["batch", 32])
    with pytest.raises(heddle.RefusedError, match=r"weight 'w' of 'y' has (nan|inf) at \[3, 4\]"):
        heddle.quantize(net.model(), weights="int4")
