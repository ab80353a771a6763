"""heddle.onnx_graph: graphs that are built are those that were meant."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import heddle
from heddle.onnx_graph import INT64, Graph, make_graph, make_model, make_node, nodes_of


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


TEXTS = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.STRING, None))


@pytest.mark.parametrize("given, kind, dims", [
    ({"x": ["n", 3]}, TensorProto.FLOAT, ["n", 3]), ({"x": (2, 3)}, TensorProto.FLOAT, [2, 3]),
    ({"x": (["n"], INT64)}, INT64, ["n"]), ({"x": ([], np.dtype("?"))}, TensorProto.BOOL, []),
    ({"x": None}, TensorProto.FLOAT, None), ({"x": np.float16([1, 2])}, TensorProto.FLOAT16, [2]),
    ({"x": np.array(["a"], object)}, TensorProto.STRING, [1]), ("x", 0, None), (["x"], 0, None),
    ({"x": helper.make_tensor_type_proto(INT64, [4])}, INT64, [4]),
    ([helper.make_tensor_value_info("x", INT64, ["k"])], INT64, ["k"])])
def test_what_is_said_of_a_value(given, kind, dims):
    (value,) = make_graph([], given, "").input
    tensor = value.type.tensor_type
    assert value.name == "x" and tensor.elem_type == kind
    assert tensor.HasField("shape") == (dims is not None)
    assert [dim.dim_param or dim.dim_value for dim in tensor.shape.dim] == (dims or [])


def test_other_types_are_kept():
    assert make_graph([], {"x": TEXTS}, "").input[0].type == TEXTS


def test_a_model_has_what_was_named():
    model = make_model([make_node("MatMul", "x w", "h", "product"), make_node("Relu", "h", ["y"])],
                       {"x": ["n", 2]}, "y", {"w": np.ones((2, 3), np.float32)}, opset=20,
                       domains={"mine": 3}, producer_name="a test")
    first, second = model.graph.node
    assert first.name == "product" and list(first.input) == ["x", "w"] and second.name == ""
    assert {each.domain: each.version for each in model.opset_import} == {"": 20, "mine": 3}
    assert model.producer_name == "a test"
    (y,) = heddle.compile(model, cache=False).run(None, {"x": np.float32([[1, 2], [-3, 1]])})
    assert y.tolist() == [[3, 3, 3], [0, 0, 0]]
