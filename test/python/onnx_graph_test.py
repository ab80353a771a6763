"""heddle.onnx_graph: graphs that are built are those that were meant."""

import numpy as np
import onnx

import heddle
from heddle.onnx_graph import INT64, Graph, nodes_of


def grown():
    graph = Graph(seed=3)
    x = graph.input("x", ["batch", 8])
    index = graph.input("index", ["count"], INT64)
    left, right = graph.op("Split", x, outputs=2, axis=1, num_outputs=2)
    y = graph.op("MatMul", graph.op("Add", left, right), graph.weight(4, 3, scale=0.5))
    graph.output(graph.op("Gather", y, index, name="y"), ["count", 3])
    return graph


def test_a_graph_is_one_model_that_runs():
    graph = grown()
    model = graph.model(opset=18)
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in nodes_of(model.graph)] == ["Split", "Add", "MatMul", "Gather"]
    x, index = np.random.default_rng(0).random((5, 8), np.float32), np.array([4, 0])
    (y,) = heddle.compile(model, cache=False).run(None, {"x": x, "index": index})
    (weight,) = graph.arrays.values()
    np.testing.assert_allclose(y, ((x[:, :4] + x[:, 4:]) @ weight)[index], rtol=1e-5)


def test_equal_seeds_draw_equal_weights():
    assert grown().model().SerializeToString() == grown().model().SerializeToString()
