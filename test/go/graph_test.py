"""Graphs: their order, what is refused, the generators, and models read from ONNX."""

import numpy as np
import pytest
from heddle import RefusedError, UsageError
from heddle.onnx_graph import make_model, make_node
from heddle_lab.go import FAMILIES, Builder, from_onnx, generate
from heddle_lab.go.graph import KIND_NAMES


def test_nodes_are_sorted_topologically():
    builder = Builder("late")
    reader = builder.node("elementwise", (), 1, 1, name="reader")
    builder.inputs[reader] = [builder.node("matmul", (), 1, 1, name="producer")]
    graph = builder.graph()
    assert graph.names == ["producer", "reader"]
    assert graph.edges[0].tolist() == [0] and graph.edges[1].tolist() == [1]


def test_a_cycle_is_named():
    builder = Builder("looped")
    a = builder.node("matmul", (), 1, 1, name="a")
    b = builder.node("matmul", [a], 1, 1, name="b")
    c = builder.node("matmul", [b], 1, 1, name="c")
    builder.inputs[a].append(b)
    builder.node("matmul", [c], 1, 1, name="after")
    with pytest.raises(UsageError, match="graph 'looped' has a cycle: '[ab]' -> '[ab]' -> '[ab]'"):
        builder.graph()


@pytest.mark.parametrize(("node", "message"), [
    (("mystery", (), 1, 1), "unknown kind of node 'mystery'; known: variable, "),
    (("matmul", (), -1, 1), "node 'matmul': 'flops' is -1, but must be a finite number"),
    (("matmul", (), 1, float("nan")), "node 'matmul': 'bytes' is nan"),
    (("variable", (0,), 0, 1), "node 'variable' is of kind 'variable', which reads nothing, but "
                               "has 1 inputs"),
])
def test_nodes_that_are_refused(node, message):
    builder = Builder("bad")
    with pytest.raises(UsageError, match=message):
        builder.node(*node)


def test_graphs_that_are_refused():
    with pytest.raises(UsageError, match="graph 'empty' has no nodes"):
        Builder("empty").graph()
    builder = Builder("short")
    builder.node("matmul", [3], 1, 1, name="reader")
    with pytest.raises(UsageError, match="node 'reader' reads node 3, but there are only 1"):
        builder.graph()


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_steps_of_training(family):
    graph = generate(family)
    producers, readers = graph.edges
    assert (producers < readers).all()
    kinds = np.bincount(graph.kind, minlength=len(KIND_NAMES))
    count = dict(zip(KIND_NAMES, kinds))
    assert count["update"] == count["variable"] > 0  # every weight has a gradient
    forward = generate(family, training=False)
    assert 2 * len(forward) < len(graph) < 4 * len(forward)
    flops = graph.flops[np.isin(graph.kind, [2, 3])].sum()
    forward_flops = forward.flops[np.isin(forward.kind, [2, 3])].sum()
    assert 2.5 < flops / forward_flops <= 3  # two products in the backward pass for one


@pytest.mark.parametrize(("family", "small", "large"), [
    ("rnnlm", {"layers": 2}, {"layers": 8}), ("gnmt", {"layers": 2}, {"layers": 6}),
    ("transformer_xl", {"layers": 2}, {"layers": 8}), ("inception", {"modules": 3},
                                                       {"modules": 9}),
    ("amoebanet", {"cells": 3}, {"cells": 9}), ("wavenet", {"stacks": 1}, {"stacks": 4})])
def test_depth_and_width_are_knobs(family, small, large):
    small, large = generate(family, **small), generate(family, **large)
    assert len(large) > 1.8 * len(small) and large.flops.sum() > small.flops.sum()


def test_unknown_families_and_knobs():
    with pytest.raises(UsageError, match="unknown family 'vgg'; known: rnnlm, gnmt"):
        generate("vgg")
    with pytest.raises(UsageError, match="family 'rnnlm': .*'depth'.*its knobs: layers, steps"):
        generate("rnnlm", depth=2)


def onnx_model(dims=("batch", 6)):
    nodes = [make_node("MatMul", "x w", "m", "product"), make_node("Relu", "m", "y", "relu"),
             make_node("Conv", "image f", "z", "conv")]
    return make_model(nodes, {"x": dims, "image": [1, 2, 5, 5]}, {"y": None, "z": None},
                      {"w": np.zeros((6, 8), np.float32), "f": np.zeros((4, 2, 3, 3), np.float32)})


def test_an_onnx_model(tmp_path):
    (tmp_path / "model.onnx").write_bytes(onnx_model().SerializeToString())
    for model in (onnx_model(), tmp_path / "model.onnx"):
        graph = from_onnx(model, {"batch": 10})
        at = {name: node for node, name in enumerate(graph.names)}
        assert graph.flops[at["product"]] == 2 * 10 * 6 * 8
        assert graph.flops[at["conv"]] == 2 * (4 * 3 * 3) * (2 * 3 * 3)
        assert graph.bytes[at["relu"]] == 10 * 8 * 4
        assert graph.held_bytes[at["w"]] == 6 * 8 * 4
        assert graph.colocate[at["w"]] == at["product"]
        assert KIND_NAMES[graph.kind[at["relu"]]] == "elementwise"


def test_onnx_models_that_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"the shape of 'x' is \['batch', 6\], but all sizes have "
                                         r"to be numbers; give it: sizes={'batch': 1}"):
        from_onnx(onnx_model())
    with pytest.raises(UsageError, match="there is no 'nowhere.onnx'"):
        from_onnx("nowhere.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    with pytest.raises(RefusedError, match="is no ONNX model"):
        from_onnx(tmp_path / "broken.onnx")
    looped = onnx_model(("batch", 6))
    looped.graph.node[0].input[0] = "y"
    with pytest.raises((UsageError, RefusedError)):
        from_onnx(looped, {"batch": 1})
