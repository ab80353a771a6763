"""Pure functions of the kernels' benchmarks: what is extracted from models, and what is told."""

import pytest
from heddle.onnx_graph import make_model, make_value
from onnx import TensorProto, helper

from bench.kernels import convolutions, report, turns
from bench.kernels.layers import node, normal
from bench.models import peak
from bench.ragged import bench as ragged
from bench.ragged import encoders


def network(nodes, constants):
    image = make_value("x", ["n", 3, "h", "w"])
    result = make_value("y", None)
    return make_model(nodes, [image], [result],
                      [helper.make_tensor(name, TensorProto.FLOAT, value.shape, value.tobytes(),
                                          raw=True) for name, value in constants.items()])


def test_convolutions_have_sizes_strides_and_groups():
    nodes = [node("Conv", ["x", "a"], "p", strides=[2, 2], pads=[1, 1, 1, 1]),
             node("Conv", ["p", "b"], "q", group=8, pads=[1, 1, 1, 1]),
             node("Conv", ["q", "b"], "y", group=8, pads=[1, 1, 1, 1])]
    model = network(nodes, {"a": normal(8, 3, 3, 3), "b": normal(8, 1, 3, 3)})
    found = convolutions.convolutions(convolutions.sized(model, 32))
    (dense, once), (depthwise, twice) = found.items()
    assert (once, twice) == (1, 2)
    assert (dense.channels, dense.image, dense.filters) == (3, (32, 32), (8, 3, 3, 3))
    assert dense.result == (1, 8, 16, 16) and not dense.is_depthwise
    assert depthwise.is_depthwise and depthwise.image == (16, 16)
    assert dense.flops == 2 * 16 * 16 * 8 * 27
    assert str(depthwise) == "8->8 3^2 of 16^2 depthwise"


def test_sizes_that_the_model_computes_come_from_a_run():
    nodes = [node("Shape", ["x"], "s"), node("Expand", ["x", "s"], "t"),
             node("Squeeze", ["t"], "u"), node("Unsqueeze", ["u", "zero"], "v"),
             node("Conv", ["v", "a"], "y")]
    model = network(nodes, {"a": normal(4, 3, 1, 1)})
    model.graph.initializer.append(helper.make_tensor("zero", TensorProto.INT64, [1], [0]))
    (found,) = convolutions.convolutions(convolutions.sized(model, 8))
    assert (found.channels, found.image) == (3, (8, 8))


def test_pads_that_are_not_told_are_refused():
    model = network([node("Conv", ["x", "a"], "y", auto_pad="SAME_UPPER")],
                    {"a": normal(4, 3, 3, 3)})
    with pytest.raises(ValueError, match="'auto_pad' is"):
        convolutions.convolutions(convolutions.sized(model, 8))


def test_geometric_mean_is_that_of_ratios():
    assert report.geometric_mean([1, 4]) == pytest.approx(2)
    assert report.geometric_mean([]) == 1


def test_summary_counts_what_is_slower():
    line = report.summary([{"ratio": value} for value in (0.8, 0.92, 0.99, 1.5)])
    assert "below 0.9: 1, below 0.95: 2, below 1: 3" in line
    assert report.summary([]) == "none"


def test_a_ratio_is_of_medians_with_quartiles_of_rounds():
    found = turns.ratio({"a": [2.0, 4.0, 6.0], "b": [1.0, 2.0, 2.0]}, "a", "b")
    assert (found["ratio"], found["q1"], found["q3"]) == (2.0, 2.0, 2.5)


def test_everything_has_a_turn_a_round():
    asked = []

    def run(runs):
        asked.append(runs)
        return [0.001] * runs

    times = turns.by_turns({"a": run}, rounds=4, turn_s=0.01)
    assert times == {"a": [0.001] * 4}
    assert asked[2:] == [turns.WARM, 10] * 4


def group(seconds, of_bound, card="conv"):
    return {"card": card, "knobs": {"m": 8}, "key": "p*", "seconds": seconds,
            "of_bound": of_bound, "inputs": [{"type": "4 x f32", "bytes": 16}],
            "outputs": [{"type": "4 x f32"}], "ops": [{"graph_ops": ["conv"]}]}


def test_equal_kernels_are_one_and_models_count_alike():
    large = [group(3.0, 0.5), group(1.0, 0.9, "pool")]
    small = [group(0.001, 1.0)]
    conv, pool = peak.merged({"large": large, "small": small})
    assert conv.weight == pytest.approx(1.75) and conv.models == {"large", "small"}
    assert conv.of_bound == pytest.approx((0.75 * 0.5 + 1.0) / 1.75)
    assert pool.lost == pytest.approx(0.25 * 0.1)


def test_weights_come_in_the_order_of_the_nodes():
    layer = encoders.layer()
    found = encoders.Weights(layer.model)
    assert [weight.shape for weight, _ in found.linears] == [(512, 512)] * 4 + [
        (512, 2048), (2048, 512)]
    assert all(bias.shape == weight.shape[1:] for weight, bias in found.linears)
    assert len(found.norms) == 2 and found.table("word_embeddings.weight") is None


def test_batches_are_cut_to_the_longest_of_their_rows():
    layer = encoders.layer()
    feeds = ragged.cut(layer.inputs([3, 1, 2]), [1, 2], [3, 1, 2])
    assert feeds["x"].shape == (2, 2, 512)
    assert feeds["mask"].tolist() == [[1, 0], [1, 1]]
    assert layer.flops([2, 2]) == 2 * layer.flops([2])


def test_the_best_peer_is_the_fastest():
    row = {"network": "layer", "set": "CoLA", "of_bound": 1.0, "prelude": 0.01,
           "memory": {"padded": 4, "ragged": 2},
           "peers": {"OpenVINO": {"ratio": 1.5}, "PyTorch": {"ratio": 2.0}}}
    (line,) = ragged.goals([row])
    assert "best peer / ragged 1.500" in line and "memory padded / ragged 2.00" in line
    assert "CoLA 1.00%" in line and "RACE" not in line
