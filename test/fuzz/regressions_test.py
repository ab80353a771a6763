"""regressions_test: reduced models of findings, each of which once gave wrong numbers."""

import numpy as np
import pytest
from heddle.onnx_graph import make_graph, make_model, make_node, make_value
from onnx import TensorProto, helper

import heddle

pytestmark = pytest.mark.usefixtures("compiler")
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def run(nodes, inputs, outputs, feeds):
    model = make_model(nodes, inputs, outputs)
    return heddle.compile(model).run(None, feeds)


def test_a_loop_without_an_iteration_keeps_its_initial_value():
    """The result is the initial value's memory, which later results must not take."""
    body = make_graph([make_node("Mul", "state state", "next"),
                       make_node("Identity", "going", "still")],
                      {"step": ([], INT64), "going": ([], BOOL), "state": [None, None]},
                      {"still": ([], BOOL), "next": [None, None]})
    nodes = [make_node("EyeLike", "like", "eye"),
             make_node("Loop", ["count", "", "eye"], "y", body=body), make_node("Relu", "x", "r"),
             make_node("GatherND", "r at", "z")]
    inputs = {"like": [1, 1], "count": ([], INT64), "x": [3, 1, 1, 3], "at": ([1, 1], INT64)}
    outputs = {"y": [None, None], "z": [None] * 4}
    feeds = {"like": np.zeros((1, 1), np.float32), "count": np.array(0),
             "x": np.full((3, 1, 1, 3), 5, np.float32), "at": np.array([[0]])}
    assert run(nodes, inputs, outputs, feeds)[0] == [[1]]


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_what_a_loop_carries_may_grow(rows):
    """As the cache of a decoder does, until the condition ends it."""
    body = make_graph([make_node("Concat", "cache x", "longer", axis=0),
                       make_node("MatMul", "longer w", "mixed"),
                       make_node("ReduceMax", "mixed", "next", axes=[0]),
                       make_node("Size", "longer", "size"),
                       make_node("Less", "size most", "going")],
                      {"step": ([], INT64), "c": ([], BOOL), "cache": [None, 3], "x": [None, 3]},
                      [make_value("going", [], BOOL), make_value("longer", [None, 3]),
                       *(make_value("next", [None, 3]) for _ in range(2))])
    node = make_node("Loop", ["", "c", "cache", "x"], "y last steps", body=body)
    inputs = {"c": ([], BOOL), "cache": ["rows", 3], "x": [1, 3], "w": [3, 3], "most": ([], INT64)}
    outputs = {name: None for name in ("y", "last", "steps")}
    rng = np.random.default_rng(rows)
    feeds = {"c": np.array(True), "most": np.array(27),
             **{name: rng.standard_normal(shape).astype(np.float32)
                for name, shape in (("cache", (rows, 3)), ("x", (1, 3)), ("w", (3, 3)))}}
    cache, x, steps = feeds["cache"], feeds["x"], []
    while not steps or cache.size < 27:
        cache = np.concatenate([cache, x])
        x = (cache @ feeds["w"]).max(0, keepdims=True)
        steps.append(x)
    for found, wanted in zip(run([node], inputs, outputs, feeds), (cache, x, np.stack(steps))):
        np.testing.assert_allclose(found, wanted, rtol=1e-4)


@pytest.mark.parametrize("height", ["h", 1])
def test_a_pool_of_one_row_has_one_row(height):
    """ONNX Runtime divides the places that are left toward zero, as small images need it."""
    nodes = [make_node("MaxPool", "x", "p", kernel_shape=[2, 2], strides=[2, 2]),
             make_node("GlobalAveragePool", "p", "y")]
    x = np.arange(10, dtype=np.float32).reshape(1, 2, 1, 5)
    found = run(nodes, {"x": [1, 2, height, "w"]}, {"y": None}, {"x": x})[0]
    assert found.ravel().tolist() == [2, 7]


@pytest.mark.parametrize("numbers, size", [((3, -5, -1), 8), ((0, 5, 1), 5), ((0, -1, 1), 0)])
def test_the_size_of_a_range_that_nobody_reads(numbers, size):
    names = ["start", "limit", "delta"]
    nodes = [make_node("Range", names, "r"), make_node("Shape", "r", "y")]
    feeds = {name: np.array(number, np.float32) for name, number in zip(names, numbers)}
    inputs = {name: [] for name in names}
    assert run(nodes, inputs, {"y": ([1], INT64)}, feeds)[0].tolist() == [size]


@pytest.mark.parametrize("rows, columns", [(1, 4), (4, 1), (3, 3)])
def test_either_of_two_open_sizes_may_be_1(rows, columns):
    x, y = np.arange(rows, dtype=np.float32), np.arange(columns, dtype=np.float32) * 10
    nodes = [make_node("Add", "x y", "sum"), make_node("Mul", "sum x", "z")]
    inputs = {"x": ["rows"], "y": ["columns"]}
    found = run(nodes, inputs, {"z": [None]}, {"x": x, "y": y})[0]
    np.testing.assert_array_equal(found, (x + y) * x)


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 1), (0, 1, 0)])
def test_nothing_and_an_open_size_of_1_are_nothing(sizes):
    feeds = {name: np.ones(size, np.float32) for name, size in zip("abc", sizes)}
    nodes = [make_node("Sum", "a b c", "sum"), make_node("Mul", "sum a", "z")]
    inputs = {name: [name * 2] for name in feeds}
    assert run(nodes, inputs, {"z": [None]}, feeds)[0].shape == (0,)


def test_nothing_does_not_become_more_than_1():
    inputs = {name: [name * 2] for name in "ab"}
    feeds = {"a": np.ones(0, np.float32), "b": np.ones(3, np.float32)}
    with pytest.raises(heddle.Error, match="cannot be broadcast"):
        run([make_node("Add", "a b", "z")], inputs, {"z": [None]}, feeds)


@pytest.mark.parametrize("count", [30, 150])
def test_a_sum_of_many_open_sizes_is_computed_or_refused(count):
    """Each sum has the largest of all sizes before it, in one text."""
    names = [f"x{i}" for i in range(count)]
    nodes = [make_node("Add", [f"t{i}" if i else "x0", name], [f"t{i + 1}"])
             for i, name in enumerate(names[1:])]
    inputs = {name: [f"n{name}"] for name in names}
    feeds = {name: np.ones(1 + i % 2, np.float32) for i, name in enumerate(names)}
    output = {f"t{count - 1}": ["any"]}
    if count > 100:
        with pytest.raises(heddle.RefusedError, match="nested terms"):
            run(nodes, inputs, output, feeds)
    else:
        assert run(nodes, inputs, output, feeds)[0].tolist() == [count, count]


def test_either_batch_of_a_product_may_be_1():
    rng = np.random.default_rng(1)
    nodes = [make_node("MatMul", "x y", "z")]
    inputs = {"x": ["a", "b", 3, 5], "y": ["c", "d", 5, 4]}
    for left, right in [((1, 3), (2, 1)), ((2, 1), (1, 3)), ((2, 3), (2, 3))]:
        x = rng.standard_normal((*left, 3, 5)).astype(np.float32)
        y = rng.standard_normal((*right, 5, 4)).astype(np.float32)
        found = run(nodes, inputs, {"z": [None] * 4}, {"x": x, "y": y})[0]
        np.testing.assert_allclose(found, x @ y, rtol=1e-5, atol=1e-5)


def test_hardmax_of_nothing_is_nothing():
    nodes = [make_node("Hardmax", "x", "y")]
    x = np.zeros((2, 0), np.float32)
    for columns in (0, "n"):
        inputs, outputs = {"x": [2, columns]}, {"y": [2, columns]}
        assert run(nodes, inputs, outputs, {"x": x})[0].shape == (2, 0)


def test_hardmax_takes_the_first_of_the_largest():
    x = np.array([[1, 3, 3], [np.nan, 1, np.nan], [-np.inf, -np.inf, -np.inf]], np.float32)
    nodes = [make_node("Hardmax", "x", "y")]
    found = run(nodes, {"x": [3, 3]}, {"y": [3, 3]}, {"x": x})[0]
    np.testing.assert_array_equal(found, [[0, 1, 0], [1, 0, 0], [1, 0, 0]])


def test_padding_an_empty_axis_in_the_centre_gives_zeros():
    nodes = [make_node("CenterCropPad", "x shape", "y", axes=[1])]
    inputs = {"x": [2, "n"], "shape": ([1], INT64)}
    for columns, wanted in [(0, [0, 0, 0]), (1, [0, 5, 0]), (4, [5, 5, 5])]:
        feeds = {"x": np.full((2, columns), 5, np.float32), "shape": np.array([3])}
        model = make_model(nodes, inputs, {"y": [2, None]}, opset=18)
        np.testing.assert_array_equal(heddle.compile(model).run(None, feeds)[0], [wanted] * 2)


def test_unique_rows_of_nothing_are_one_row():
    nodes = [make_node("Unique", "x", "y", axis=0)]
    for rows in (1, 3):
        x = np.zeros((rows, 0), np.float32)
        found = run(nodes, {"x": ["n", 0]}, {"y": [None, 0]}, {"x": x})
        assert found[0].shape == (1, 0)


def test_sums_of_products_of_nothing():
    """Reshapes of nothing keep no rows."""
    nodes = [make_node("Einsum", "x w", "y", equation="abc,ca->b")]
    inputs = [make_value("x", [2, 1, 0]), make_value("w", [0, 2])]
    feeds = {"x": np.zeros((2, 1, 0), np.float32), "w": np.zeros((0, 2), np.float32)}
    model = make_model(nodes, inputs[:1], {"y": [1]}, [helper.make_tensor("w", FLOAT, [0, 2], [])])
    assert heddle.compile(model).run(None, {"x": feeds["x"]})[0] == [0]
    assert run(nodes, inputs, {"y": [1]}, feeds)[0] == [0]


@pytest.mark.parametrize("columns", [(5, 1), (4, 4)])
def test_what_a_scan_stacks_has_the_size_that_its_state_grows_to(columns):
    """The size of the state is one of the body's own; outside it has another name."""
    body = make_graph([make_node("Add", "state x", "next"), make_node("Sub", "x state", "slice")],
                      {"state": [None, None], "x": [None, None]},
                      {"next": [None, None], "slice": [None, None]})
    nodes = [make_node("Scan", "init xs", "last all", body=body, num_scan_inputs=1),
             make_node("ReduceMean", "all", "mean", keepdims=0)]
    state, xs = np.full((2, columns[0]), 3.0, np.float32), np.ones((6, 2, columns[1]), np.float32)
    found = run(nodes, {"init": [2, "n"], "xs": [6, 2, "m"]}, {"last": [None, None], "mean": []},
                {"init": state, "xs": xs})
    assert found[0].tolist() == (state + 6).tolist() and found[1] == np.mean(1 - 3 - np.arange(6.0))


@pytest.mark.parametrize("count", [1, 3])
def test_a_transposed_tensor_added_to_a_product_with_a_transposed_operand(count):
    """The product's tile reads what it adds row by row, which a transposed tensor is not."""
    nodes = [make_node("Transpose", "b", "right", perm=[1, 0]),
             make_node("Transpose", "c", "turned", perm=[0, 2, 1]),
             make_node("MatMul", "a right", "product"), make_node("Add", "turned product", "y")]
    shapes = {"a": (count, 4, 8), "b": (5, 8), "c": (count, 5, 4)}
    random = np.random.default_rng(1)
    feeds = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    found, = run(nodes, {name: shape for name, shape in shapes.items()}, {"y": [None] * 3}, feeds)
    expected = feeds["c"].transpose(0, 2, 1) + feeds["a"] @ feeds["b"].T
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
