"""sizes_test: sizes that the model computes, and sizes that are fed and do not fit: what the run
says of them, beside ONNX Runtime.
SPDX-License-Identifier: Apache-2.0
"""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_graph, make_model, make_node, make_value
from onnx import TensorProto

from bench.kernels.engines import runtime_session

F32 = TensorProto.FLOAT


def ones(*shape):
    return np.ones(shape, np.float32)


def i64(*values):
    return np.array(values, np.int64)


def model_of(nodes, feeds, constants=(), shapes=None, opset=21):
    inputs = {name: ((shapes or {}).get(name, [f"{name}{i}" for i in range(array.ndim)]),
                     array.dtype) for name, array in feeds.items()}
    return make_model(nodes, inputs, "y", dict(constants), opset=opset,
                      domains={"com.microsoft": 1, "ai.onnx.ml": 4})


def of_onnxruntime(model, feeds):
    return runtime_session(model).run(None, feeds)[0]


@pytest.mark.parametrize("op, fed, given, attributes, message", [
    ("MatMul", [ones(4, 5)], [ones(6, 2)], {},
     "the left operand has 5 ('x1') columns, but the right one has 6 rows"),
    ("MatMul", [ones(0, 5)], [ones(6, 2)], {}, "the left operand has 5 ('x1') columns"),
    ("MatMul", [ones(4, 5), ones(6, 2)], [], {},
     "the left operand has 5 ('x1') columns, but the right one has 6 ('z0') rows"),
    ("Gemm", [ones(4, 5)], [ones(2, 6)], {"transB": 1}, "the left operand has 5 ('x1') columns"),
    ("Conv", [ones(1, 4, 5)], [ones(2, 3, 1)], {},
     "the image has 4 ('x1') channels, but the filters take 3"),
    ("LSTM", [ones(3, 1, 4)], [ones(1, 8, 6), ones(1, 8, 2)], {"hidden_size": 2},
     "X has 4 ('x2') features, but W takes 6"),
    ("Add", [ones(4, 5)], [ones(6)], {}, "a size of 5 ('x1') cannot be broadcast to 6"),
    ("Add", [ones(4, 5), ones(6)], [], {}, "a size of 5 ('x1') cannot be broadcast to 6"),
    ("LayerNormalization", [ones(4, 5)], [ones(6)], {}, "a size of 5 ('x1') cannot be broadcast"),
    ("Concat", [ones(4, 5)], [ones(3, 5)], {"axis": 1},
     "sizes 4 ('x0') and 3 to be joined differ"),
    ("Split", [ones(4, 5)], [i64(3, 3)], {"axis": 1},
     "'split' adds up to 6, but the size is 5 ('x1')"),
    ("Reshape", [ones(4, 5)], [i64(3, 6)], {},
     "cannot reshape 20 ('x0*x1') elements to a shape of 18"),
    ("Squeeze", [ones(4, 5)], [i64(1)], {}, "a dimension of 5 ('x1') cannot become one of 1"),
    ("TopK", [ones(4, 5)], [i64(6)], {}, "'k' is 6, but the axis has size 5 ('x1')"),
    ("com.microsoft.FusedMatMul", [ones(4, 5)], [ones(6, 2)], {},
     "the left operand has 5 ('x1') columns"),
    ("ai.onnx.ml.Scaler", [ones(4, 5)], [], {"offset": [1.0] * 6, "scale": [1.0] * 6},
     "the input has 5 ('x1') features, but 'offset' has 6 entries"),
])
def test_sizes_that_do_not_fit_are_told(op, fed, given, attributes, message):
    domain, _, name = op.rpartition(".")
    feeds = dict(zip("xz", fed))
    constants = [(f"c{i}", array) for i, array in enumerate(given)]
    operands = [*feeds, *(name for name, _ in constants)]
    node = make_node(name, operands, ["y", "more"] if name in ("Split", "TopK") else ["y"],
                     name="it", domain=domain, **attributes)
    model = model_of([node], feeds, constants)
    with pytest.raises(heddle.UsageError) as caught:
        heddle.compile(model).run(None, feeds)
    assert f"node 'it' ({name}): {message}" in str(caught.value)
    with pytest.raises(Exception):  # noqa: B017 - of no class of its own
        of_onnxruntime(model, feeds)


def test_reduced_axes_that_the_declared_rank_does_not_allow():
    feeds = {"x": ones(2, 3), "axes": i64(0, 1)}
    model = model_of([make_node("ReduceSum", "x axes", "y", name="it", keepdims=0)], feeds)
    model.graph.output[0].CopyFrom(make_value("y", ["a"]))
    module = heddle.compile(model)
    assert module.run(None, {**feeds, "axes": i64(1)})[0].tolist() == [3, 3]
    with pytest.raises(heddle.UsageError, match="2 axes are reduced, but the declared rank of the "
                                                "output is for 1"):
        module.run(None, feeds)


LATE = {  # how a vector of sizes is hidden from the importer
    "Pad": [make_node("Pad", "s p", "t")],
    "CumSum": [make_node("CumSum", "s zero", "t")],
    "Abs": [make_node("Abs", "s", "r"), make_node("Concat", "r one", "t", axis=0)],
    "Gather": [make_node("Abs", "s", "r"),
               make_node("Gather", "r q", "t")],
    "Slice": [make_node("Pad", "s p", "r"),
              make_node("Slice", "r zero1 two1", "t")],
}
CONSTANTS = [("p", i64(1, 0)), ("zero", np.array(0)), ("one", i64(7)), ("q", i64(1, 1)),
             ("zero1", i64(0)), ("two1", i64(2)), ("minus", i64(-9)), ("five", ones(5))]
WRONG = {  # what cannot be with any of these
    "Reshape": [make_node("Reshape", "x t", "y", name="it")],
    "Expand": [make_node("Add", "t t", "u"),
               make_node("Expand", "x u", "y", name="it")],
    "Tile": [make_node("ReduceMax", "t", "u", keepdims=1),
             make_node("Tile", "five u", "v"),
             make_node("Concat", "v five", "w", axis=0),
             make_node("Add", "w five", "y", name="it")],
    "ConstantOfShape": [make_node("Mul", "t minus", "u"),
                        make_node("ConstantOfShape", "u", "y", name="it")],
    "Range": [make_node("ReduceMax", "t", "u", keepdims=0),
              make_node("Range", "zero u zero", "y", name="it")],
}


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("late", LATE)
def test_computed_sizes_that_cannot_be(late, wrong, is_known):
    """Known when the model is compiled or not, they end the run in words at the node."""
    feeds = {"x": ones(2, 3)}
    nodes = [make_node("Shape", "x", "s"), *LATE[late], *WRONG[wrong]]
    model = model_of(nodes, feeds, CONSTANTS, {"x": [2, 3]} if is_known else None)
    with pytest.raises(Exception):
        of_onnxruntime(model, feeds)
    with pytest.raises((heddle.UsageError, heddle.RefusedError), match="node 'it'"):
        heddle.compile(model).run(None, feeds)


def test_a_branch_that_cannot_be_is_not_taken():
    x = ones(2, 3)
    late = [make_node("Shape", "x", "s"), make_node("Pad", "s p", "t")]
    then = make_graph([*late, make_node("Reshape", "x t", "a", name="it")], [], "a")
    other = make_graph([make_node("Unsqueeze", "x zero1", "b")], [], "b")
    node = make_node("If", "c", "y", then_branch=then, else_branch=other)
    feeds = {"x": x, "c": np.array(False)}
    model = model_of([node], feeds, CONSTANTS, {"x": [2, 3]})
    module = heddle.compile(model)
    np.testing.assert_array_equal(module.run(None, feeds)[0], x[None])
    with pytest.raises(heddle.UsageError, match="node 'it'.* 6 elements"):
        module.run(None, {"x": x, "c": np.array(True)})


@pytest.mark.parametrize("bounds", [(1, 2**62), (0, -1), (1, -1), (-5, 2**62), (-200, 150), (2, 90),
                                    (-3, -1)])
def test_a_chain_of_slices(bounds):
    """The formula of the size does not grow with the chain."""
    names = ["x", *(f"t{i}" for i in range(119)), "y"]
    nodes = [make_node("Slice", [a, "from", "to"], [b]) for a, b in zip(names, names[1:])]
    old = [make_node("Slice", [a], [b], axes=[0], starts=bounds[:1], ends=bounds[1:])
           for a, b in zip(names, names[1:])]
    limits = [("from", i64(bounds[0])), ("to", i64(bounds[1]))]
    for model in (model_of(nodes, {"x": ones(1, 2)}, limits),
                  model_of(old, {"x": ones(1, 2)}, opset=9)):
        module = heddle.compile(model)
        for length in (0, 1, 7, 130, 300):
            feeds = {"x": np.arange(length * 2, dtype=np.float32).reshape(length, 2)}
            np.testing.assert_array_equal(module.run(None, feeds)[0],
                                          of_onnxruntime(model, feeds))
