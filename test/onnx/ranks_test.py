"""Ranks that are known only at run time, judged by ONNX Runtime."""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_graph, make_model, make_node, make_value
from onnx import TensorProto

from bench.kernels.engines import runtime_session

pytestmark = pytest.mark.usefixtures("compiler")

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model_of(nodes, inputs, outputs, initializers=(), infos=()):
    model = make_model(nodes, inputs, outputs, dict(initializers), opset=13)
    model.graph.value_info.extend(infos)
    return model


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def agrees(model, *runs):
    """Each run twice, in this order and back, in one session."""
    peer = runtime_session(model)
    session = heddle.compile(model, cache=False, threads=1)
    for feeds in [*runs, *reversed(runs)]:
        for want, got in zip(peer.run(None, feeds), session.run(None, feeds), strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    return session


@pytest.mark.parametrize("declared", [[], [make_value("u", ["b", 4])]])
def test_squeeze_of_a_batch_of_one(declared):
    model = model_of([make_node("Squeeze", "x", "u"), make_node("Softmax", "u", "y")],
                     [make_value("x", ["b", 4, 1, 1])], [make_value("y", None)], infos=declared)
    agrees(model, *({"x": numbers(batch, 4, 1, 1)} for batch in (2, 1, 3)))


def test_squeeze_of_several_open_sizes():
    model = model_of([make_node("Relu", "x", "r"), make_node("Squeeze", "r", "y"),
                      make_node("ReduceSum", "r", "s", keepdims=0)],
                     [make_value("x", ["b", "h", "w"])],
                     [make_value("y", None), make_value("s", [])])
    session = agrees(model, *({"x": numbers(*shape)} for shape in
                              ((2, 3, 4), (1, 3, 4), (2, 1, 1), (1, 1, 1), (0, 1, 2), (1, 4, 1))))
    assert session.outputs[0].shape == []


def test_one_answer_serves_all_nodes():
    """Two squeezes of one size, and an addition of what they make."""
    model = model_of([make_node("Squeeze", "x", "u"), make_node("Squeeze", "z", "v"),
                      make_node("Add", "u v", "y")],
                     [make_value("x", ["b", 3]), make_value("z", ["b", 1, 3])],
                     [make_value("y", None)])
    agrees(model, *({"x": numbers(batch, 3), "z": numbers(batch, 1, 3)} for batch in (1, 5)))


def branch(name, op, output, *inputs, **attributes):
    return make_graph([make_node(op, list(inputs), [output], **attributes)], [],
                      [make_value(output, None)])


def test_squeeze_as_pytorch_exports_it():
    model = model_of([make_node("Shape", "x", "s"), make_node("Gather", "s place", "size"),
                      make_node("Equal", "size one", "c"),
                      make_node("If", "c", "u",
                                then_branch=branch("t", "Squeeze", "a", "x", "axes"),
                                else_branch=branch("e", "Identity", "b", "x")),
                      make_node("ReduceSum", "u last", "y", keepdims=0)],
                     [make_value("x", ["b", "t", 4])], [make_value("y", None)],
                     {"place": 1, "one": 1, "axes": [1], "last": [-1]})
    agrees(model, *({"x": numbers(2, length, 4)} for length in (1, 3, 1)))


def test_branches_of_different_ranks():
    model = model_of([make_node("If", "c", "y",
                                then_branch=branch("t", "Squeeze", "a", "x", "axes"),
                                else_branch=branch("e", "Identity", "b", "x")),
                      make_node("ReduceMax", "y", "z", axes=[-1], keepdims=1)],
                     [make_value("c", [], BOOL), make_value("x", ["n", 1, 2])],
                     [make_value("y", None), make_value("z", None)], {"axes": [1]})
    agrees(model, *({"c": np.array(truth), "x": numbers(size, 1, 2)}
                    for truth in (True, False) for size in (1, 3)))


def test_a_version_that_cannot_be_is_refused_by_the_run():
    """The concatenation needs what the squeeze makes at a size of 1."""
    model = model_of([make_node("Squeeze", "x", "u"), make_node("Concat", "u w", "y", axis=0)],
                     [make_value("x", ["b", 3]), make_value("w", [2])], [make_value("y", None)])
    session = agrees(model, {"x": numbers(1, 3), "w": numbers(2)})
    with pytest.raises(heddle.UsageError, match="not so that b is 1.*node 'Concat_y'"):
        session.run(None, {"x": numbers(2, 3), "w": numbers(2)})


def test_a_node_that_asks_twice():
    """The first node asks two questions: the second's product needs one answer, one both."""
    model = model_of([make_node("Squeeze", "z", "u"), make_node("Squeeze", "x", "v"),
                      make_node("Concat", "v w", "y", axis=0)],
                     [make_value("z", ["b", "c", 3]), make_value("x", ["b", 3]),
                      make_value("w", [2])],
                     [make_value("u", None), make_value("y", None)])
    session = agrees(model, *({"z": numbers(1, c, 3), "x": numbers(1, 3), "w": numbers(2)}
                              for c in (1, 4)))
    for c in (1, 4):
        with pytest.raises(heddle.UsageError, match="not so that b is 1.*node 'Concat_y'"):
            session.run(None, {"z": numbers(2, c, 3), "x": numbers(2, 3), "w": numbers(2)})


def test_many_questions_of_which_each_has_one_answer():
    """Each concatenation takes what its squeeze makes at a size of 1, and no other. Were both
    answers read to the end, and again after each, this would not end."""
    nodes, inputs = [], []
    for i in range(30):
        nodes += [make_node("Squeeze", f"x{i}", f"u{i}"),
                  make_node("Concat", f"u{i} w", f"c{i}", axis=0)]
        inputs.append(make_value(f"x{i}", [f"b{i}", 3]))
    nodes.append(make_node("Sum", [f"c{i}" for i in range(30)], "y"))
    model = model_of(nodes, [*inputs, make_value("w", [2])], [make_value("y", None)])
    session = agrees(model, {**{f"x{i}": numbers(1, 3) for i in range(30)}, "w": numbers(2)})
    with pytest.raises(heddle.UsageError, match="not so that b7 is 1.*node 'Concat_c7'"):
        session.run(None, {**{f"x{i}": numbers(1 + (i == 7), 3) for i in range(30)},
                           "w": numbers(2)})


def test_an_input_of_any_rank():
    model = model_of([make_node("Relu", "x", "r"), make_node("Transpose", "r", "y")],
                     [make_value("x", None)], [make_value("y", None)])
    shapes = ((), (3,), (2, 3), (2, 1, 3), (2, 0, 3, 1), (1, 2, 1, 2, 1, 2, 1, 2))
    session = agrees(model, *({"x": numbers(*shape)} for shape in shapes))
    for wrong in (np.zeros((1,) * 9, np.float32), np.zeros(2)):
        with pytest.raises(heddle.UsageError, match="'x'|rank 9"):
            session.run(None, {"x": wrong})


def test_the_rank_that_a_node_takes():
    model = model_of([make_node("Gemm", "x w", "g"), make_node("Squeeze", "g", "y")],
                     [make_value("x", None), make_value("w", [3, 1])], [make_value("y", None)])
    session = agrees(model, *({"x": numbers(rows, 3), "w": numbers(3, 1)} for rows in (1, 2)))
    with pytest.raises(heddle.UsageError, match=r"\[2,2,3\], but \[x.0,x.1\] is allowed"):
        session.run(None, {"x": numbers(2, 2, 3), "w": numbers(3, 1)})


def test_what_is_told_of_any_rank(tmp_path):
    two = model_of([make_node("Add", "x z", "y")], [make_value("x", None), make_value("z", None)],
                   [make_value("y", None)])
    with pytest.raises(heddle.LimitError, match="versions of the model.*--shape"):
        heddle.compile(two, cache=False)
    squeeze = model_of([make_node("Squeeze", "x", "y")], [make_value("x", ["b", 3])],
                       [make_value("y", None)])
    with pytest.raises(heddle.RefusedError, match="rank differs from run to run"):
        heddle.compile(squeeze, cache=False, target="c")
    assert heddle.compile(squeeze, cache=False, target="c", shapes=["b=2"], load=False)
