"""Nodes whose numbers or types were once wrong, judged by ONNX Runtime and ONNX's evaluator."""

import heddle
import numpy as np
import pytest
from heddle.fuzz.check import run_onnxruntime
from heddle.fuzz.nodes.case import ML, Case
from heddle.fuzz.nodes.judge import judge
from onnx import helper

MS = "com.microsoft"
X = np.arange(35, dtype=np.float32).reshape(1, 1, 5, 7)


def agrees(op, inputs, attributes=None, domain="", opset=21, outputs=1, forms=("fixed", "symbols")):
    for form in forms:
        case = Case(op, domain, opset,
                    [helper.make_attribute(*item) for item in (attributes or {}).items()],
                    inputs, outputs, [form] * len(inputs))
        model, feeds = case.model()
        outcome = judge(model, [feeds])
        assert outcome.kind == "agrees", f"{outcome.message} of {case}"


def i64(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("coordinates", ["tf_half_pixel_for_nn", "half_pixel", "asymmetric",
                                         "align_corners", "pytorch_half_pixel"])
@pytest.mark.parametrize("rule", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_nearest_places(coordinates, rule):
    empty = np.zeros(0, np.float32)
    for size in ((3, 6), (8, 11), (10, 14)):
        agrees("Resize", [X, empty, empty, i64(1, 1, *size)],
               {"coordinate_transformation_mode": coordinates, "nearest_mode": rule,
                "mode": "nearest"}, opset=13, forms=("constant",))


@pytest.mark.parametrize("base, exponent", [
    (np.array([4, 7, 9], np.int64), np.array([0.5, 2.5, 1.5], np.float32)),
    (np.array([4, -7, 9], np.int32), np.array([2.0, 3.0, 0.0], np.float64)),
    (np.array([1.5, 2.0, 0.1], np.float32), np.array([0.1, 1 / 3, 7.7])),
    (np.array([2, 3, 1], np.int32), np.array([5, 7, -2], np.int64)),
    (np.array([2.0, -3.0, 0.5], np.float32), np.array([5, 3, -2], np.int64))])
def test_powers_of_two_types(base, exponent):
    agrees("Pow", [base, exponent], opset=15)


def test_integers_times_a_fraction():
    a, b, c = [np.arange(size, size + 6, dtype=np.int32).reshape(shape)
               for size, shape in ((1, (2, 3)), (-4, (3, 2)), (7, (6,)))]
    agrees("Gemm", [a, b, c[:2]], {"alpha": 0.5, "beta": 1.5}, opset=13)


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.int64, np.uint8])
@pytest.mark.parametrize("lambd, bias", [(-5.0, 1.0), (1.5, 0.5), (0.0, 1.5)])
def test_shrink(kind, lambd, bias):
    values = np.arange(1 if kind == np.uint8 else -6, 7).astype(kind)
    agrees("Shrink", [values], {"lambd": lambd, "bias": bias})


@pytest.mark.parametrize("op", ["BlackmanWindow", "HannWindow", "HammingWindow"])
@pytest.mark.parametrize("to", [1, 10, 11])
def test_windows(op, to):
    for size in (2, 7, 10, 33):
        agrees(op, [np.array(size, np.int64)], {"output_datatype": to}, opset=17,
               forms=("fixed", "constant"))


def test_types_of_a_skipped_normalisation():
    generator = np.random.default_rng(1)
    rows, vector = [generator.standard_normal(shape).astype(np.float16)
                    for shape in ((2, 5, 16), (16,))]
    agrees("SkipLayerNormalization", [rows, rows, vector, vector, vector], {"epsilon": 1e-5},
           domain=MS, opset=1, outputs=4)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("places, length, past", [(9, 1, 4), (9, 3, 0), (5, 1, 4), (4, 1, 4)])
@pytest.mark.parametrize("form", ["fixed", "symbols"])
def test_a_past_of_the_largest_length(batch, places, length, past, form):
    """The buffer keeps its length; it grows only where there are more keys than places."""
    generator = np.random.default_rng(2)

    def draw(*shape):
        return generator.standard_normal(shape).astype(np.float32)

    total = past + length
    case = Case("GroupQueryAttention", MS, 1,
                [helper.make_attribute("num_heads", 4), helper.make_attribute("kv_num_heads", 2)],
                [draw(batch, length, 64), draw(batch, length, 32), draw(batch, length, 32),
                 draw(batch, 2, places, 16), draw(batch, 2, places, 16),
                 np.full(batch, total - 1, np.int32), np.array(total, np.int32)], 3, [form] * 7)
    model, feeds = case.model()
    wanted = run_onnxruntime(model.SerializeToString(), ["y0", "y1", "y2"], feeds)
    found = heddle.compile(model, cache=False).run(None, feeds)
    np.testing.assert_allclose(found[0], wanted["y0"], 1e-4, 1e-4)
    for name, mine in zip(("y1", "y2"), found[1:]):
        assert mine.shape == (batch, 2, max(places, total), 16) == wanted[name].shape
        np.testing.assert_array_equal(mine[:, :, :total], wanted[name][:, :, :total])


def test_logistic_scores_of_two_targets():
    """Leaves of one target leave the other one at 0, which becomes 0.5."""
    agrees("TreeEnsembleRegressor", [np.array([[-1.0], [2.0]], np.float32)],
           {"n_targets": 2, "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2],
            "nodes_featureids": [0, 0, 0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
            "nodes_values": [0.0, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
            "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0], "target_nodeids": [1, 2],
            "target_ids": [0, 0], "target_weights": [5.0, -12.0], "post_transform": "LOGISTIC"},
           domain=ML, opset=3)
