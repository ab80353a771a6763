"""regressions_test: reduced models of findings, each of which once gave wrong numbers."""

import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import heddle  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler")
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
value = helper.make_tensor_value_info


def run(nodes, inputs, outputs, feeds):
    graph = helper.make_graph(nodes, "regression", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return heddle.compile(model).run(None, feeds)


def test_a_loop_without_an_iteration_keeps_its_initial_value():
    """The result is the initial value's memory, which later results must not take."""
    body = helper.make_graph(
        [helper.make_node("Mul", ["state", "state"], ["next"]),
         helper.make_node("Identity", ["going"], ["still"])], "body",
        [value("step", INT64, []), value("going", BOOL, []), value("state", FLOAT, [None, None])],
        [value("still", BOOL, []), value("next", FLOAT, [None, None])])
    nodes = [helper.make_node("EyeLike", ["like"], ["eye"]),
             helper.make_node("Loop", ["count", "", "eye"], ["y"], body=body),
             helper.make_node("Relu", ["x"], ["r"]),
             helper.make_node("GatherND", ["r", "at"], ["z"])]
    inputs = [value("like", FLOAT, [1, 1]), value("count", INT64, []),
              value("x", FLOAT, [3, 1, 1, 3]), value("at", INT64, [1, 1])]
    outputs = [value("y", FLOAT, [None, None]), value("z", FLOAT, [None] * 4)]
    feeds = {"like": np.zeros((1, 1), np.float32), "count": np.array(0),
             "x": np.full((3, 1, 1, 3), 5, np.float32), "at": np.array([[0]])}
    assert run(nodes, inputs, outputs, feeds)[0] == [[1]]


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_what_a_loop_carries_may_grow(rows):
    """As the cache of a decoder does, until the condition ends it."""
    body = helper.make_graph(
        [helper.make_node("Concat", ["cache", "x"], ["longer"], axis=0),
         helper.make_node("MatMul", ["longer", "w"], ["mixed"]),
         helper.make_node("ReduceMax", ["mixed"], ["next"], axes=[0]),
         helper.make_node("Size", ["longer"], ["size"]),
         helper.make_node("Less", ["size", "most"], ["going"])], "body",
        [value("step", INT64, []), value("c", BOOL, []), value("cache", FLOAT, [None, 3]),
         value("x", FLOAT, [None, 3])],
        [value("going", BOOL, []), value("longer", FLOAT, [None, 3]),
         value("next", FLOAT, [None, 3]), value("next", FLOAT, [None, 3])])
    node = helper.make_node("Loop", ["", "c", "cache", "x"], ["y", "last", "steps"], body=body)
    inputs = [value("c", BOOL, []), value("cache", FLOAT, ["rows", 3]), value("x", FLOAT, [1, 3]),
              value("w", FLOAT, [3, 3]), value("most", INT64, [])]
    outputs = [value(name, FLOAT, None) for name in ("y", "last", "steps")]
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
    nodes = [helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("GlobalAveragePool", ["p"], ["y"])]
    x = np.arange(10, dtype=np.float32).reshape(1, 2, 1, 5)
    found = run(nodes, [value("x", FLOAT, [1, 2, height, "w"])], [value("y", FLOAT, None)],
                {"x": x})[0]
    assert found.ravel().tolist() == [2, 7]


@pytest.mark.parametrize("numbers, size", [((3, -5, -1), 8), ((0, 5, 1), 5), ((0, -1, 1), 0)])
def test_the_size_of_a_range_that_nobody_reads(numbers, size):
    names = ["start", "limit", "delta"]
    nodes = [helper.make_node("Range", names, ["r"]), helper.make_node("Shape", ["r"], ["y"])]
    feeds = {name: np.array(number, np.float32) for name, number in zip(names, numbers)}
    inputs = [value(name, FLOAT, []) for name in names]
    assert run(nodes, inputs, [value("y", INT64, [1])], feeds)[0].tolist() == [size]


@pytest.mark.parametrize("rows, columns", [(1, 4), (4, 1), (3, 3)])
def test_either_of_two_open_sizes_may_be_1(rows, columns):
    x, y = np.arange(rows, dtype=np.float32), np.arange(columns, dtype=np.float32) * 10
    nodes = [helper.make_node("Add", ["x", "y"], ["sum"]),
             helper.make_node("Mul", ["sum", "x"], ["z"])]
    inputs = [value("x", FLOAT, ["rows"]), value("y", FLOAT, ["columns"])]
    found = run(nodes, inputs, [value("z", FLOAT, [None])], {"x": x, "y": y})[0]
    np.testing.assert_array_equal(found, (x + y) * x)


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 1), (0, 1, 0)])
def test_nothing_and_an_open_size_of_1_are_nothing(sizes):
    feeds = {name: np.ones(size, np.float32) for name, size in zip("abc", sizes)}
    nodes = [helper.make_node("Sum", ["a", "b", "c"], ["sum"]),
             helper.make_node("Mul", ["sum", "a"], ["z"])]
    inputs = [value(name, FLOAT, [name * 2]) for name in feeds]
    assert run(nodes, inputs, [value("z", FLOAT, [None])], feeds)[0].shape == (0,)


def test_nothing_does_not_become_more_than_1():
    inputs = [value(name, FLOAT, [name * 2]) for name in "ab"]
    feeds = {"a": np.ones(0, np.float32), "b": np.ones(3, np.float32)}
    with pytest.raises(heddle.Error, match="cannot be broadcast"):
        run([helper.make_node("Add", ["a", "b"], ["z"])], inputs, [value("z", FLOAT, [None])],
            feeds)


@pytest.mark.parametrize("count", [30, 150])
def test_a_sum_of_many_open_sizes_is_computed_or_refused(count):
    """Each sum has the largest of all sizes before it, in one text."""
    names = [f"x{i}" for i in range(count)]
    nodes = [helper.make_node("Add", [f"t{i}" if i else "x0", name], [f"t{i + 1}"])
             for i, name in enumerate(names[1:])]
    inputs = [value(name, FLOAT, [f"n{name}"]) for name in names]
    feeds = {name: np.ones(1 + i % 2, np.float32) for i, name in enumerate(names)}
    output = [value(f"t{count - 1}", FLOAT, ["any"])]
    if count > 100:
        with pytest.raises(heddle.RefusedError, match="nested terms"):
            run(nodes, inputs, output, feeds)
    else:
        assert run(nodes, inputs, output, feeds)[0].tolist() == [count, count]


def test_either_batch_of_a_product_may_be_1():
    rng = np.random.default_rng(1)
    nodes = [helper.make_node("MatMul", ["x", "y"], ["z"])]
    inputs = [value("x", FLOAT, ["a", "b", 3, 5]), value("y", FLOAT, ["c", "d", 5, 4])]
    for left, right in [((1, 3), (2, 1)), ((2, 1), (1, 3)), ((2, 3), (2, 3))]:
        x = rng.standard_normal((*left, 3, 5)).astype(np.float32)
        y = rng.standard_normal((*right, 5, 4)).astype(np.float32)
        found = run(nodes, inputs, [value("z", FLOAT, [None] * 4)], {"x": x, "y": y})[0]
        np.testing.assert_allclose(found, x @ y, rtol=1e-5, atol=1e-5)


def test_hardmax_of_nothing_is_nothing():
    nodes = [helper.make_node("Hardmax", ["x"], ["y"])]
    x = np.zeros((2, 0), np.float32)
    for columns in (0, "n"):
        inputs, outputs = [value("x", FLOAT, [2, columns])], [value("y", FLOAT, [2, columns])]
        assert run(nodes, inputs, outputs, {"x": x})[0].shape == (2, 0)


def test_hardmax_takes_the_first_of_the_largest():
    x = np.array([[1, 3, 3], [np.nan, 1, np.nan], [-np.inf, -np.inf, -np.inf]], np.float32)
    nodes = [helper.make_node("Hardmax", ["x"], ["y"])]
    found = run(nodes, [value("x", FLOAT, [3, 3])], [value("y", FLOAT, [3, 3])], {"x": x})[0]
    np.testing.assert_array_equal(found, [[0, 1, 0], [1, 0, 0], [1, 0, 0]])


def test_padding_an_empty_axis_in_the_centre_gives_zeros():
    nodes = [helper.make_node("CenterCropPad", ["x", "shape"], ["y"], axes=[1])]
    inputs = [value("x", FLOAT, [2, "n"]), value("shape", INT64, [1])]
    for columns, wanted in [(0, [0, 0, 0]), (1, [0, 5, 0]), (4, [5, 5, 5])]:
        feeds = {"x": np.full((2, columns), 5, np.float32), "shape": np.array([3])}
        graph = helper.make_graph(nodes, "pad", inputs, [value("y", FLOAT, [2, None])])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        np.testing.assert_array_equal(heddle.compile(model).run(None, feeds)[0], [wanted] * 2)


def test_unique_rows_of_nothing_are_one_row():
    nodes = [helper.make_node("Unique", ["x"], ["y"], axis=0)]
    for rows in (1, 3):
        x = np.zeros((rows, 0), np.float32)
        found = run(nodes, [value("x", FLOAT, ["n", 0])], [value("y", FLOAT, [None, 0])], {"x": x})
        assert found[0].shape == (1, 0)


def test_sums_of_products_of_nothing():
    """Reshapes of nothing keep no rows."""
    nodes = [helper.make_node("Einsum", ["x", "w"], ["y"], equation="abc,ca->b")]
    inputs = [value("x", FLOAT, [2, 1, 0]), value("w", FLOAT, [0, 2])]
    feeds = {"x": np.zeros((2, 1, 0), np.float32), "w": np.zeros((0, 2), np.float32)}
    graph = helper.make_graph(nodes, "einsum", inputs[:1], [value("y", FLOAT, [1])],
                              [helper.make_tensor("w", FLOAT, [0, 2], [])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert heddle.compile(model).run(None, {"x": feeds["x"]})[0] == [0]
    assert run(nodes, inputs, [value("y", FLOAT, [1])], feeds)[0] == [0]


@pytest.mark.parametrize("columns", [(5, 1), (4, 4)])
def test_what_a_scan_stacks_has_the_size_that_its_state_grows_to(columns):
    """The size of the state is one of the body's own; outside it has another name."""
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "x"], ["next"]),
         helper.make_node("Sub", ["x", "state"], ["slice"])], "body",
        [value("state", FLOAT, [None, None]), value("x", FLOAT, [None, None])],
        [value("next", FLOAT, [None, None]), value("slice", FLOAT, [None, None])])
    nodes = [helper.make_node("Scan", ["init", "xs"], ["last", "all"], body=body,
                              num_scan_inputs=1),
             helper.make_node("ReduceMean", ["all"], ["mean"], keepdims=0)]
    state, xs = np.full((2, columns[0]), 3.0, np.float32), np.ones((6, 2, columns[1]), np.float32)
    found = run(nodes, [value("init", FLOAT, [2, "n"]), value("xs", FLOAT, [6, 2, "m"])],
                [value("last", FLOAT, [None, None]), value("mean", FLOAT, [])],
                {"init": state, "xs": xs})
    assert found[0].tolist() == (state + 6).tolist() and found[1] == np.mean(1 - 3 - np.arange(6.0))


@pytest.mark.parametrize("count", [1, 3])
def test_a_transposed_tensor_added_to_a_product_with_a_transposed_operand(count):
    """The product's tile reads what it adds row by row, which a transposed tensor is not."""
    nodes = [helper.make_node("Transpose", ["b"], ["right"], perm=[1, 0]),
             helper.make_node("Transpose", ["c"], ["turned"], perm=[0, 2, 1]),
             helper.make_node("MatMul", ["a", "right"], ["product"]),
             helper.make_node("Add", ["turned", "product"], ["y"])]
    shapes = {"a": (count, 4, 8), "b": (5, 8), "c": (count, 5, 4)}
    random = np.random.default_rng(1)
    feeds = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    found, = run(nodes, [value(name, FLOAT, shape) for name, shape in shapes.items()],
                 [value("y", FLOAT, [None] * 3)], feeds)
    expected = feeds["c"].transpose(0, 2, 1) + feeds["a"] @ feeds["b"].T
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
