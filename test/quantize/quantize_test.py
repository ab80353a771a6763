"""Whole quantisations: what is on integers, and the same numbers in ONNX Runtime."""

from collections import Counter

import small
import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_graph, make_node, make_value
from small import NETWORKS, Net, samples

import heddle

pytestmark = pytest.mark.usefixtures("compiler")


def quantised(model, count=12, **options):
    """(model, facts of the report)."""
    reports = []
    feeds = samples(model, count)
    made = heddle.quantize(model, feeds, report=reports.append, threads=1, **options)
    onnx.checker.check_model(made, full_check=True)
    return made, reports[0].facts


def same_in_onnxruntime(model, feeds, fused=False):
    """Each output of both engines is the same, but for one of 255 steps of its range. If `fused`,
    ONNX Runtime takes its own kernels of integers, some of which round sums otherwise."""
    onnxruntime = pytest.importorskip("onnxruntime")
    levels = onnxruntime.GraphOptimizationLevel
    module = heddle.compile(model, threads=1)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if fused else levels.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    for feed in feeds:
        for ours, theirs in zip(module.run(None, feed), session.run(None, feed)):
            step = (theirs.max() - theirs.min()) / 255
            assert np.abs(ours - theirs).max() <= step * (4 if fused else 1)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_keep_their_numbers(name):
    model = NETWORKS[name]()
    made, facts = quantised(model, count=40)
    assert all(each["error"] < 0.08 and each["decibels"] > 25 for each in facts["outputs"]), facts
    assert facts["data"] == {"random": False, "calibration": 32, "held_out": 8}
    left = {"transformer": None, "embedded": ["gather_0"]}.get(name, [])
    assert facts["bytes_after"] == made.ByteSize()
    assert left is None or [each["name"] for each in facts["left"]] == left
    same_in_onnxruntime(made, samples(model, 3, seed=5))


@pytest.mark.parametrize("name", ["residual", "gemm", "transformer"])
def test_integers_of_onnxruntime(name):
    """Without VNNI its sums of 16 bits saturate, but for weights of 7 bits."""
    model = NETWORKS[name]()
    made, _ = quantised(model, reduce_range=True)
    same_in_onnxruntime(made, samples(model, 3, seed=5), fused=True)


@pytest.mark.parametrize("opset", [13, 19, 21])  # of each definition of QuantizeLinear
def test_opsets(opset):
    model = small.residual(opset)
    made, _ = quantised(model, count=4)
    assert [each.version for each in made.opset_import] == [opset]
    same_in_onnxruntime(made, samples(model, 2, seed=5))


def test_older_opsets_become_the_first_that_has_scales_for_channels():
    made, _ = quantised(small.residual(11, ir_version=6), count=4)
    assert [each.version for each in made.opset_import] == [13]


def kinds(model):
    return Counter(node.op_type for node in model.graph.node)


def read_by(model, kind):
    """Types of the nodes that make what nodes of this type read."""
    made = {name: node.op_type for node in model.graph.node for name in node.output}
    return {made.get(node.input[0]) for node in model.graph.node if node.op_type == kind}


@pytest.mark.parametrize("name, options", [
    ("residual", {"activations": "s8"}), ("residual", {"per_channel": False}),
    ("residual", {"equalise": True}), ("depthwise", {"even_depthwise": True}),
    ("gemm", {"weight_scale": "mse"}), ("gemm", {"calibration": "minmax"}),
    ("gemm", {"calibration": "percentile"}), ("gemm", {"calibration": "entropy"}),
    ("gemm", {"bias_correction": False})], ids=str)
def test_options(name, options):
    model = NETWORKS[name]()
    made, facts = quantised(model, **options)
    assert facts["outputs"][0]["decibels"] > 15
    same_in_onnxruntime(made, samples(model, 2, seed=5))


def test_integers_are_carried_from_layer_to_layer():
    made, _ = quantised(small.residual())
    assert kinds(made)["BatchNormalization"] == 0
    for kind in ("Conv", "MaxPool", "Add", "GlobalAveragePool", "Flatten", "Gemm"):
        assert read_by(made, kind) == {"DequantizeLinear"}, kind
    assert read_by(made, "Relu") == {"Conv", "Add"}  # part of what is before them
    made, _ = quantised(small.concatenated())
    for kind in ("Concat", "AveragePool", "Pad"):
        assert read_by(made, kind) == {"DequantizeLinear"}, kind
    concat = next(node for node in made.graph.node if node.op_type == "Concat")
    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    pairs = {node.output[0]: values[node.input[1]] for node in made.graph.node
             if node.op_type == "DequantizeLinear" and node.input[0] not in values}
    assert len({float(pairs[name]) for name in concat.input}) == 1


def test_a_transformer_keeps_sums_and_normalisations_in_f32():
    made, facts = quantised(small.transformer())
    assert len(facts["layers"]) == 6
    assert len(facts["left"]) == 2 and "--products" in facts["left"][0]["why"]
    assert "DequantizeLinear" not in read_by(made, "Add") | read_by(made, "LayerNormalization")
    made, facts = quantised(small.transformer(), products=True)
    assert len(facts["layers"]) == 8 and facts["left"] == []
    same_in_onnxruntime(made, samples(small.transformer(), 2, seed=5))


def test_operands_of_other_ranks():
    """A weight of one dimension stays in f32, and a constant that does not lie along the channels
    is no bias."""
    net = Net(3)
    x = net.op("Add", net.op("MatMul", net.input("x", [8, 8]), net.weight(8, 8)), net.weight(8, 1))
    net.op("MatMul", x, net.weight(8), name="y")
    net.output("y", [8])
    made, facts = quantised(net.model())
    assert "has less than two dimensions" in facts["left"][0]["why"] and len(facts["left"]) == 1
    assert facts["outputs"][0]["decibels"] > 30


def test_smoothing_helps_against_outliers():
    net = Net(4)
    n = net.norm(net.input("x", ["batch", 16]), 16)
    net.dense(n, 16, 16, name="y")
    net.output("y", ["batch", 16])
    net.arrays["constant_0"][3] *= 100  # one channel, which the weight makes small again
    net.arrays["constant_2"][3] /= 100
    plain, smooth = (quantised(net.model(), smooth=alpha)[1]["outputs"][0]["decibels"]
                     for alpha in (0.0, 0.5))
    assert smooth > plain + 10


def test_bias_correction_takes_mean_errors_out():
    net = Net(3)
    x = net.relu(net.image(channels=8))
    net.output(net.conv(x, 8, 6, name="y"), ["batch", 6, 12, 12])
    model = net.model()
    feeds = samples(model, 20)
    module = heddle.compile(model)

    def mean(**options):
        made = heddle.compile(heddle.quantize(model, feeds, weight_scale="mse", per_channel=False,
                                              calibration="mse", threads=1, **options))
        errors = [made.run(None, feed)[0] - module.run(None, feed)[0] for feed in feeds]
        return np.abs(np.mean(errors, axis=(0, 1, 3, 4))).max()

    assert mean(bias_correction=True) < 0.4 * mean(bias_correction=False)


def test_names_and_types_choose_layers():
    model = small.residual()
    names = [node.name for node in model.graph.node if node.op_type == "Conv"]
    made, facts = quantised(model, keep=[names[0]])
    assert names[0] not in [each["name"] for each in facts["layers"]]
    assert {"name": names[0], "why": "--keep says so"} in facts["left"]
    _, facts = quantised(model, only=names[2])
    assert [each["name"] for each in facts["layers"]] == [names[2]]
    made, facts = quantised(model, ops=["Gemm"])
    assert [each["type"] for each in facts["layers"]] == ["Gemm"] and len(facts["left"]) == 4
    assert kinds(made)["QuantizeLinear"] == 1


def test_graphs_within_nodes_stay_in_f32():
    net = Net(3)
    x, weight = net.input("x", ["batch", 8]), net.weight(8, 8, scale=0.3)
    x = net.dense(x, 8, 8)
    branches = [make_graph([make_node("MatMul", [x, weight], [name], f"inner_{name}")], [],
                           [make_value(name, None)], name=name) for name in ("one", "other")]
    net.op("If", net.input("which", [], onnx.TensorProto.BOOL), name="y", then_branch=branches[0],
           else_branch=branches[1])
    net.output("y", ["batch", 8])
    model = net.model()
    random = np.random.default_rng(0)
    feeds = [{"x": random.standard_normal((2, 8)).astype(np.float32), "which": np.array(i % 2 == 0)}
             for i in range(4)]
    reports = []
    made = heddle.quantize(model, feeds, report=reports.append)
    assert {each["name"] for each in reports[0].facts["left"]} == {"inner_one", "inner_other"}
    same_in_onnxruntime(made, feeds)


def test_a_model_as_bytes_and_as_itself_is_left_as_it_is():
    model = small.gemm()
    before = model.SerializeToString()
    feeds = samples(model, 6)
    made = heddle.quantize(model, feeds)
    assert model.SerializeToString() == before
    assert heddle.quantize(before, iter(feeds)).SerializeToString() == made.SerializeToString()


def test_numbers_that_are_none_within_the_model_are_told():
    net = Net(3)
    x = net.op("Log", net.input("x", ["batch", 8]))
    net.output(net.dense(x, 8, 8, name="y"), ["batch", 8])
    with pytest.raises(heddle.Error, match="has numbers that are not finite for sample 0"):
        heddle.quantize(net.model(), samples(net.model(), 2))
