"""gradient_test: Gradient nodes through the compiled code, beside central differences of the same
models without them.
"""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_graph, make_model, make_value
from heddle.onnx_graph import make_node as node
from onnx import TensorProto, numpy_helper

TRAINING = "ai.onnx.preview.training"


def model_of(nodes, feeds, outputs, initializers=(), symbols=False):
    """A model of inputs like `feeds`; with symbols, every size has a name."""
    inputs = [make_value(name, [f"{name}_{i}" for i in range(array.ndim)], array.dtype)
              for name, array in feeds.items()] if symbols else feeds
    return make_model(nodes, inputs,
                      [make_value(name, None, TensorProto.DOUBLE) for name in outputs],
                      initializers, opset=26, domains={TRAINING: 1})


def gradient(inputs, outputs, xs, y, zs=()):
    return node("Gradient", inputs, outputs, domain=TRAINING, xs=xs, y=y,
                **({"zs": list(zs)} if zs else {}))


def run(*arguments, **options):
    feeds = arguments[1]
    return heddle.compile(model_of(*arguments, **options), threads=1).run(None, feeds)


def differences(session, feeds, name, step=1e-5):
    """d sum(y) / d feeds[name], from runs of a compiled model that gives y."""
    found = np.zeros_like(feeds[name])
    for place in np.ndindex(found.shape):
        sides = []
        for sign in (1, -1):
            moved = feeds[name].copy()
            moved[place] += sign * step
            (y,) = session.run(None, {**feeds, name: moved})
            sides.append(np.sum(y))
        found[place] = (sides[0] - sides[1]) / (2 * step)
    return found


def check(nodes, feeds, xs, y="y", symbols=False):
    others = [name for name in feeds if name not in xs]
    slopes = [f"d{name}" for name in xs]
    backward = gradient([*xs, *others], slopes, xs, y, others)
    found = run([*nodes, backward], feeds, slopes, symbols=symbols)
    session = heddle.compile(model_of(nodes, feeds, [y], symbols=symbols), threads=1)
    for name, slope in zip(xs, found):
        expected = differences(session, feeds, name)
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-7, err_msg=name)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape)


@pytest.mark.parametrize("classes", [2, 5, 10, 40, 1000])
def test_cross_entropy_and_its_slope_are_one_pass_over_the_scores(classes):
    scores = numbers(32, classes).astype(np.float32) * 5
    labels = np.arange(32) % classes
    labels[3] = -1  # counts from the end
    nodes = [node("SoftmaxCrossEntropyLoss", "x labels", "y"),
             gradient(["x", "labels"], ["dx"], ["x"], "y", ["labels"])]
    model = model_of(nodes, {"x": scores, "labels": labels}, ["y", "dx"])
    for output in model.graph.output:
        output.type.tensor_type.elem_type = TensorProto.FLOAT
    module = heddle.compile(model, threads=2, cache=False)
    readers = [group for group in module.compiled.plan["groups"] if "max" in group["key"]]
    assert len(readers) == 1, "one kernel has all reductions of the scores"
    loss, slope = module.run(None, {"x": scores, "labels": labels})
    shares = np.exp(scores - scores.max(1, keepdims=True)).astype(np.float64)
    shares /= shares.sum(1, keepdims=True)
    rows = np.arange(32)
    np.testing.assert_allclose(loss, -np.log(shares[rows, labels]).mean(), rtol=1e-5)
    shares[rows, labels] -= 1
    np.testing.assert_allclose(slope, shares / 32, rtol=1e-4, atol=1e-7)
    labels[5] = classes
    with pytest.raises(heddle.Error, match="outside of a dimension"):
        module.run(None, {"x": scores, "labels": labels})


@pytest.mark.parametrize("symbols", [False, True])
@pytest.mark.parametrize("activation", ["Relu", "Tanh", "Gelu", "Softplus"])
def test_mlp_with_cross_entropy(activation, symbols):
    nodes = [
        node("MatMul", "x w1", "h1"), node("Add", "h1 b1", "h2"), node(activation, "h2", "h3"),
        node("MatMul", "h3 w2", "h4"), node("Add", "h4 b2", "h5"),
        node("SoftmaxCrossEntropyLoss", "h5 labels", "y"),
    ]
    feeds = {"x": numbers(5, 4), "w1": numbers(4, 7), "b1": numbers(7), "w2": numbers(7, 3)}
    feeds |= {"b2": numbers(3), "labels": np.array([0, 2, 1, 2, 0])}
    if symbols:  # a size of its own for each dimension: matrix products say which are equal
        feeds["b1"], feeds["b2"] = numbers(1), numbers(1)
    check(nodes, feeds, ["w1", "b1", "w2", "b2"], symbols=symbols)


def test_convolution_with_pools():
    nodes = [
        node("Conv", "x w b", "h1", strides=[2, 1], pads=[1, 0, 1, 1], group=2),
        node("MaxPool", "h1", "h2", kernel_shape=[2, 2], strides=[2, 1]),
        node("AveragePool", "h2", "h3", kernel_shape=[2, 2], pads=[1, 0, 0, 1]),
        node("Sigmoid", "h3", "h4"), node("ReduceMean", "h4", "y", keepdims=0),
    ]
    feeds = {"x": numbers(2, 4, 9, 6), "w": numbers(6, 2, 3, 2), "b": numbers(6)}
    check(nodes, feeds, ["x", "w", "b"])


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_recurrent(op):
    gates, hidden = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 3
    feeds = {"x": numbers(4, 2, 5), "w": numbers(2, gates * hidden, 5)}
    feeds |= {"r": numbers(2, gates * hidden, hidden), "b": numbers(2, 2 * gates * hidden)}
    recurrent = node(op, "x w r b", "h1", hidden_size=hidden, direction="bidirectional")
    check([recurrent, node("Mul", "h1 h1", "y")], feeds, ["x", "w", "r", "b"])


def test_loop_and_branch():
    body = make_graph([node("Mul", "state w", "s1"), node("Sin", "s1", "next"),
                       node("Identity", "on", "more")],
                      {"i": ([], TensorProto.INT64), "on": ([], TensorProto.BOOL),
                       "state": ([3], TensorProto.DOUBLE)},
                      {"more": ([], TensorProto.BOOL), "next": ([3], TensorProto.DOUBLE)})
    branches = {name: make_graph([node(op, "end", name)], [],
                                 {name: ([3], TensorProto.DOUBLE)})
                for name, op in (("then_branch", "Exp"), ("else_branch", "Neg"))}
    nodes = [node("Loop", ["n", "", "x"], "end", body=body),
             node("Cast", "n", "c", to=TensorProto.BOOL), node("If", "c", "h", **branches),
             node("Mul", "h x", "y")]
    feeds = {"x": numbers(3), "w": numbers(3, seed=1), "n": np.array(4)}
    check(nodes, feeds, ["x", "w"])


def test_elsewhere_what_lies_between_is_computed_again():
    nodes = [node("Mul", "x z", "h"), node("Sin", "h", "y")]
    nodes.append(gradient(["x_1", "z_1"], ["dx"], ["x"], "y", ["z"]))
    feeds = {name: numbers(3, seed=i) for i, name in enumerate(("x", "z", "x_1", "z_1"))}
    y, dx = run(nodes, feeds, ["y", "dx"])
    np.testing.assert_allclose(y, np.sin(feeds["x"] * feeds["z"]))
    np.testing.assert_allclose(dx, feeds["z_1"] * np.cos(feeds["x_1"] * feeds["z_1"]))


def test_elsewhere_sizes_that_only_the_run_knows_are_made_again():
    nodes = [
        node("Compress", "x where", "h", axis=0), node("Mul", "h h", "h2"),
        node("ReduceSum", "h2", "y", keepdims=0),
        gradient(["x_1", "where_1"], ["dx"], ["x"], "y", ["where"]),
    ]
    where, where_1 = np.array([True, False, True]), np.array([False, True, True])
    feeds = {"x": numbers(3), "where": where, "x_1": numbers(3, seed=1), "where_1": where_1}
    y, dx = run(nodes, feeds, ["y", "dx"])
    np.testing.assert_allclose(y, np.sum(feeds["x"][where] ** 2))
    np.testing.assert_allclose(dx, 2 * feeds["x_1"] * where_1)


def test_elsewhere_a_recurrence_runs_again():
    nodes = [node("RNN", "x w r", "h", hidden_size=1), node("ReduceSum", "h", "y", keepdims=0)]
    values = {"x": numbers(3, 1, 1), "w": numbers(1, 1, 1), "r": numbers(1, 1, 1, seed=2)}
    (expected,) = run([*nodes, gradient(list("xwr"), ["dx"], list("xwr"), "y")], values, ["dx"])
    nodes.append(gradient(["x_1", "w", "r"], ["dx"], ["x", "w", "r"], "y"))
    feeds = {**values, "x": numbers(3, 1, 1, seed=5), "x_1": values["x"]}
    (found,) = run(nodes, feeds, ["dx"])
    np.testing.assert_allclose(found, expected)


def test_one_value_for_two_variables_keeps_them_apart():
    nodes = [node("Mul", "x z", "y"), gradient(["x", "x"], ["dx", "dz"], ["x", "z"], "y")]
    feeds = {"x": numbers(3), "z": numbers(3, seed=1)}
    for slope in run(nodes, feeds, ["dx", "dz"]):
        np.testing.assert_allclose(slope, feeds["x"])


def test_inner_values_and_outputs_left_out():
    nodes = [node("Mul", "x x", "h"), node("Mul", "h z", "y")]
    nodes.append(gradient(["h", "z"], ["", "dz"], ["h", "z"], "y"))
    nodes.append(gradient(["h", "z"], ["dh"], ["h"], "y", ["z"]))
    feeds = {"x": numbers(3), "z": numbers(3, seed=1)}
    dz, dh = run(nodes, feeds, ["dz", "dh"])
    np.testing.assert_allclose(dz, feeds["x"] ** 2)
    np.testing.assert_allclose(dh, feeds["z"])


def test_second_derivatives():
    nodes = [node("Tanh", "x", "y"), gradient(["x"], ["dx"], ["x"], "y")]
    nodes.append(gradient(["x"], ["ddx"], ["x"], "dx"))
    feeds = {"x": numbers(4)}
    (found,) = run(nodes, feeds, ["ddx"])
    tanh = np.tanh(feeds["x"])
    np.testing.assert_allclose(found, -2 * tanh * (1 - tanh**2))


def test_weights_of_the_model():
    weight = numbers(3)
    nodes = [node("Mul", "x w", "y"), gradient(["w", "x"], ["dw"], ["w"], "y", ["x"])]
    initializers = [numpy_helper.from_array(weight, "w")]
    feeds = {"x": numbers(3, seed=1)}
    (found,) = run(nodes, feeds, ["dw"], initializers)
    np.testing.assert_allclose(found, feeds["x"])


@pytest.mark.parametrize(
    "nodes, inputs, xs, y, message",
    [
        ([], ["x"], ["x", "z"], "x", "'xs' and 'zs' name 2 tensors, but there are 1 inputs"),
        ([node("Shape", "x", "s")], ["x"], ["x"], "s",
         "what is differentiated is tensor<1xi64>, but must be of a floating-point type"),
        ([node("BitCast", "x", "b", name="n", to=7), node("BitCast", "b", "y", to=11)],
         ["x"], ["x"], "y", "op 'graph.bitcast' of 'n' lies between what is differentiated"),
        ([node("SequenceConstruct", "x x", "s")], ["x"], ["x"], "s",
         "but must be of a floating-point type"),
        ([node("SequenceConstruct", "x x", "s"), node("ConcatFromSequence", "s", "y", axis=0)],
         ["x"], ["x"], "y", "op 'graph.list_make' of 'SequenceConstruct_s' lies between"),
        ([], ["x"], ["q"], "x", "'q' is not made by any node"),
    ],
)
def test_refusals(nodes, inputs, xs, y, message):
    model = model_of([*nodes, gradient(inputs, ["dx"], xs, y)], {"x": numbers(3)}, ["dx"])
    with pytest.raises(heddle.RefusedError, match=message):
        heddle.compile(model, threads=1)
