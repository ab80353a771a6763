"""bad_input_test: what can be refused only at run time. Data that contradicts the model ends the
run with a message that names the node and the value, or gives what ONNX defines; it never ends the
program.
SPDX-License-Identifier: Apache-2.0
"""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_graph, make_model, make_node, make_value
from onnx import TensorProto, helper

F32, I64, BOOL, STRING = (getattr(TensorProto, t) for t in ("FLOAT", "INT64", "BOOL", "STRING"))
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def i64(*values):
    return np.array(values, np.int64)


def compiled(nodes, outputs, feeds, is_dynamic=True, opset=21):
    """A module whose inputs are like the feeds; sizes are symbols, or those of the feeds. The last
    size of integers stays: it is the rank of a result, or the length of tuples."""

    def shape(name, array):
        kept = array.ndim - 1 if array.dtype == np.int64 else array.ndim
        return [f"{name}{i}" if is_dynamic and i < kept else n for i, n in enumerate(array.shape)]

    inputs = [make_value(name, shape(name, a), a.dtype) for name, a in feeds.items()]
    results = [helper.make_value_info(name, kind) if kind else name for name, kind in outputs]
    return heddle.compile(make_model(nodes, inputs, results, opset=opset), threads=1)


def run(op, feeds, is_dynamic=True, opset=21, outputs=1, **attributes):
    """Results of one node, `it`, whose inputs are the feeds in order; None leaves one out."""
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(feeds)]
    given = {name: np.asarray(a) for name, a in zip(names, feeds) if a is not None}
    made = [f"y{i}" for i in range(outputs)]
    node = make_node(op, names, made, name="it", **attributes)
    module = compiled([node], [(name, None) for name in made], given, is_dynamic, opset)
    return module.run(None, given)


@pytest.mark.parametrize("is_dynamic", [True, False])
@pytest.mark.parametrize(
    "op, feeds, attributes, value",
    [
        ("Gather", [X, i64(0, 3)], {}, 3),
        ("Gather", [X, i64(-4, 0)], {}, -4),
        ("Gather", [X, np.array(7, np.int32)], {"axis": 1}, 7),
        ("Gather", [X, np.full((40, 50), 9, np.int64)], {"axis": 1}, 9),
        ("Gather", [X, i64(2**62)], {}, 2**62),
        ("Gather", [np.zeros((0, 4), np.float32), i64(0)], {}, 0),
        ("GatherElements", [X, np.array([[0, 1, 2, 3]])], {"axis": 0}, 3),
        ("GatherElements", [X, np.array([[0], [1], [-5]])], {"axis": 1}, -5),
        ("GatherND", [X, np.array([[0, 0], [1, 4]])], {}, 4),
        ("GatherND", [X, np.array([[3, 0], [1, 1]])], {}, 3),
        ("ScatterElements", [X, np.array([[5]]), np.ones((1, 1), np.float32)], {"axis": 1}, 5),
        ("ScatterND", [X, np.array([[2], [-9]]), np.ones((2, 4), np.float32)], {}, -9),
    ],
)
def test_an_index_outside_is_reported(op, feeds, attributes, value, is_dynamic):
    message = rf"node 'it' \(\w+\): index {value} is outside of a dim"
    with pytest.raises(heddle.UsageError, match=message):
        run(op, feeds, is_dynamic, **attributes)


def test_an_index_inside_may_be_negative():
    assert run("Gather", [X, i64(-3, 2)])[0].tolist() == X[[-3, 2]].tolist()
    (found,) = run("Gather", [np.zeros((0, 4), np.float32), np.zeros((0,), np.int64)])
    assert found.shape == (0, 4)
    (found,) = run("GatherND", [X, np.array([[-1, -1], [2, 0]])])
    assert found.tolist() == [11, 8]


@pytest.mark.parametrize(
    "op, feeds, attributes, message",
    [
        ("GatherElements", [X, np.zeros((4, 1), np.int64)], {"axis": 1},
         "indices of size"),
        ("ReverseSequence", [X, i64(1, 2, 3, 9)], {"time_axis": 0, "batch_axis": 1},
         "a sequence of 9"),
        ("ReverseSequence", [X, i64(1, 2, 3, -1)], {"time_axis": 0, "batch_axis": 1},
         "a sequence of -1"),
        ("Reshape", [X, i64(5, 5)], {}, "cannot reshape 12 elements to a shape of 25"),
        ("Reshape", [X, i64(-1, -1)], {}, "2 sizes of the shape are -1"),
        ("Reshape", [X, i64(-1, 5)], {}, "cannot reshape 12 elements"),
        ("Reshape", [X, i64(-3, -4)], {}, "a size of -4 in the shape"),
        ("Reshape", [X, i64(2**32, 2**32)], {}, "cannot reshape"),
        ("Reshape", [np.zeros((0, 1), np.float32), i64(2**32, 2**32)], {}, "it"),
        ("Squeeze", [X, i64(0)], {}, "it"),
        ("Expand", [X, i64(2, 4)], {}, "a size of 3 cannot be expanded to 2"),
        ("Expand", [X[:1], i64(-3, 4)], {}, "it"),
        ("Expand", [X[:1, :1], i64(2**40, 2**40)], {}, "it"),
        ("Tile", [X, i64(-1, 2)], {}, "it"),
        ("Tile", [X, i64(2**40, 2**40)], {}, "it"),
        ("Tile", [X, i64(1, 2**61)], {}, "it"),
        ("Pad", [X, i64(-4, 0, 0, 0)], {}, "it"),
        ("Pad", [X, i64(2**62, 2**62, 0, 0)], {}, "it"),
        ("Pad", [X, i64(0, 0, 2**62, 2**62)], {}, "it"),
        ("TopK", [X, i64(5)], {"outputs": 2}, "it"),
        ("TopK", [X, i64(-1)], {"outputs": 2}, "it"),
        ("OneHot", [i64(0, 1), np.array(-3), X[0, :2]], {}, "it"),
        ("OneHot", [i64(0, 1), np.array(2**62), X[0, :2]], {}, "it"),
        ("Range", [np.array(0), np.array(5), np.array(0)], {}, "make no number of elements"),
        ("Range", [np.array(0), np.array(2**62), np.array(1)], {}, "make no number of elements"),
        ("Range", [np.array(-2**63), np.array(2**63 - 1), np.array(1)], {},
         "make no number of elements"),
        ("Range", [np.float32(0), np.float32(5), np.float32(0)], {}, "make no number of elements"),
        ("Range", [np.float32(0), np.float32("nan"), np.float32(1)], {},
         "make no number of elements"),
        ("Range", [np.float32(0), np.float32("inf"), np.float32(1)], {},
         "make no number of elements"),
        ("ConstantOfShape", [i64(2**40, 2**40)], {}, "it"),
        ("ConstantOfShape", [i64(2**32, 2**32)], {}, "it"),
        ("ConstantOfShape", [i64(-1, 2)], {}, "it"),
        ("Split", [X, i64(2, 3)], {"outputs": 2, "axis": 1}, "it"),
        ("Split", [X, i64(-1, 5)], {"outputs": 2, "axis": 1}, "it"),
        ("CumSum", [X, np.array(2)], {}, "axis"),
        ("CumSum", [X, np.array(-3)], {}, "axis"),
        ("CumProd", [X, np.array(2)], {"opset": 26}, "axis"),
        ("Slice", [X, i64(0), i64(3), i64(0), i64(0)], {}, "a step is 0"),
        ("Resize", [X, None, np.array([np.nan, 1], np.float32)], {}, "it"),
        ("Resize", [X, None, np.array([np.inf, 1], np.float32)], {}, "it"),
        ("Resize", [X, None, np.array([-1, 1], np.float32)], {}, "it"),
        ("Resize", [X, None, None, i64(-2, 4)], {}, "it"),
        ("Resize", [X[:0], None, None, i64(2, 4)], {}, "is empty cannot be resized"),
        ("Pad", [X[:0], i64(1, 0, 1, 0)], {"mode": "wrap"}, "is empty cannot be padded"),
        ("Pad", [X[:0], i64(1, 0, 1, 0)], {"mode": "reflect"}, "is empty cannot be padded"),
        ("Add", [X, X[:2]], {}, "it"),
        ("MatMul", [X, X], {}, "it"),
    ],
)
def test_a_run_is_refused(op, feeds, attributes, message):
    with pytest.raises((heddle.UsageError, heddle.LimitError), match=message):
        run(op, feeds, **attributes)


def test_memory_that_nobody_has_is_not_asked_for():
    with pytest.raises((heddle.UsageError, heddle.LimitError)):
        run("ConstantOfShape", [i64(2**44)])


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_integer_division_never_traps(dtype):
    """x / 0 is x and x mod 0 is 0; the smallest number by -1 wraps."""
    low = np.iinfo(dtype).min
    x = np.array([7, 0, low, low, -7] * 9, dtype)
    y = np.array([0, 0, -1, 0, 2] * 9, dtype)
    assert run("Div", [x, y])[0].tolist() == [7, 0, low, low, -3] * 9
    assert run("Mod", [x, y])[0].tolist() == [0, 0, 0, 0, 1] * 9
    assert run("Mod", [x, y], fmod=1)[0].tolist() == [0, 0, 0, 0, -1] * 9


def test_shifts_beyond_the_width_give_0():
    x, y = np.array([255, 1, 128], np.uint8), np.array([8, 255, 7], np.uint8)
    assert run("BitShift", [x, y], direction="LEFT")[0].tolist() == [0, 0, 0]
    assert run("BitShift", [x, y], direction="RIGHT")[0].tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "start, end, step",
    [(-100, 100, 1), (100, -100, -1), (2**63 - 1, -(2**63), -1), (1, 2**63 - 1, 2**63 - 1),
     (3, 1, 1), (-1, -(2**63), -(2**63 - 1)), (0, 4, 3), (-(2**63), 2**63 - 1, 2)],
)
def test_slices_are_clamped(start, end, step):
    (found,) = run("Slice", [X, i64(start), i64(end), i64(1), i64(step)])
    assert found.tolist() == X[:, start:end:step].tolist()


def test_empty_tensors_divide_nothing():
    empty = np.zeros((3, 0), np.float32)
    (found,) = run("Reshape", [empty, i64(0, -1)])
    assert found.shape == (3, 0)
    nodes = [make_node("Shape", "x", "s", start=0, end=1),
             make_node("Constant", "", "rest", value_ints=[-1]),
             make_node("Concat", "s rest", "shape", axis=0), make_node("Reshape", "x shape", "y")]
    module = compiled(nodes, [("y", None)], {"x": X})
    assert module.run(None, {"x": X})[0].shape == (3, 4)
    for shape in [(0, 4), (0, 0), (3, 0)]:
        try:
            module.run(None, {"x": np.zeros(shape, np.float32)})
        except heddle.UsageError:
            pass


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
def test_places_that_are_not_numbers(bad, mode, padding_mode):
    grid = np.zeros((1, 2, 2, 2), np.float32)
    grid[0, 0, 0, 0] = bad
    image = np.ones((1, 1, 3, 3), np.float32)
    (found,) = run("GridSample", [image, grid], mode=mode, padding_mode=padding_mode)
    assert found.ravel()[1:].tolist() == [1, 1, 1]


@pytest.mark.parametrize("mode", ["reflect", "wrap", "edge"])
def test_pads_wider_than_the_tensor_stay_inside(mode):
    (found,) = run("Pad", [X, i64(7, 9, 8, 11)], mode=mode)
    assert found.tolist() == np.pad(X, [(7, 8), (9, 11)], mode=mode).tolist()


def test_sizes_that_are_not_numbers():
    nodes = [make_node("Cast", "x", "shape", to=I64),
             make_node("ConstantOfShape", "shape", "y", name="it")]
    for bad in (np.nan, np.inf, -np.inf, 1e30):
        feeds = {"x": np.array([2, bad], np.float32)}
        module = compiled(nodes, [("y", None)], feeds, False)
        with pytest.raises((heddle.UsageError, heddle.LimitError)):
            module.run(None, feeds)


def loop_without_end(body_nodes, scans):
    """A Loop without trip count whose condition stays true; carries x."""
    nodes = [make_node("Identity", "c", "c_out"), *body_nodes]
    values = [("c_out", BOOL, []), ("v_out", F32, None), *scans]
    body = make_graph(nodes, {"i": ([], I64), "c": ([], BOOL), "v": None},
                      [helper.make_tensor_value_info(*value) for value in values])
    made = ["y", *(f"stack{i}" for i in range(len(scans)))]
    constant = helper.make_tensor("true", BOOL, [], [True])
    return [make_node("Constant", "", "true", value=constant),
            make_node("Loop", ["", "true", "x"], made, name="it", body=body)]


def test_a_loop_without_end_ends():
    nodes = loop_without_end([make_node("Neg", "v", "v_out")], [])
    feeds = {"x": np.ones(1, np.float32)}
    with pytest.raises((heddle.UsageError, heddle.LimitError), match="node 'it'.* has not ended"):
        compiled(nodes, [("y", None)], feeds, False).run(None, feeds)


def test_strings_that_are_not_utf8():
    raw = b"\xff\xfeA \xc3(".decode("latin-1")
    texts = np.array([raw, "\ud800", "ok"], object)
    for op, attributes in [
        ("StringNormalizer", {"case_change_action": "UPPER"}),
        ("StringSplit", {"outputs": 2}),
        ("RegexFullMatch", {"pattern": ".*"}),
    ]:
        try:
            run(op, [texts], **attributes)
        except (UnicodeError, heddle.UsageError):
            pass
    assert len(run("StringConcat", [texts[:1], texts[:1]])[0][0]) == 2 * len(raw)


def test_a_scale_is_no_option():
    feeds = {"q": np.zeros(3, np.uint8)}
    node = make_node("DequantizeLinear", "q", "z", name="it")
    with pytest.raises(heddle.RefusedError, match="node 'it'.*1 inputs, but .* at least 2"):
        compiled([node], [("z", None)], feeds)


def test_attributes_do_not_ask_for_any_number_of_operations():
    feeds = {"x": np.arange(6, dtype=np.int32)}
    node = make_node("TfIdfVectorizer", "x", "z", name="it", mode="TF", min_gram_length=2,
                     max_gram_length=2, max_skip_count=10**9, ngram_counts=[0, 0],
                     ngram_indexes=[0], pool_int64s=[1, 2])
    with pytest.raises(heddle.RefusedError, match="more than 20000 operations"):
        compiled([node], [("z", None)], feeds)


def test_blocks_along_no_axis():
    feeds = {"x": X, "scale": X[:, :2] + 1}
    node = make_node("QuantizeLinear", "x scale", "z", name="it", axis=-5, block_size=2)
    with pytest.raises(heddle.RefusedError, match="node 'it'.*do not fit blocks of 2 along axis"):
        compiled([node], [("z", None)], feeds)


@pytest.mark.parametrize("indexes, message", [
    ([2**63 - 1], "'ngram_indexes' has 9223372036854775807, but at most 2147483648"),
    ([2**30], "asks for 1073741825 columns"),
])
def test_attributes_do_not_overflow(indexes, message):
    feeds = {"x": np.arange(6, dtype=np.int32)}
    node = make_node("TfIdfVectorizer", "x", "z", name="it", mode="TF", min_gram_length=1,
                     max_gram_length=1, max_skip_count=0, ngram_counts=[0], ngram_indexes=indexes,
                     pool_int64s=[1])
    with pytest.raises(heddle.RefusedError, match=message):
        compiled([node], [("z", None)], feeds)


def test_sequences_are_checked():
    x, y = X, X[:, :3]
    build = [make_node("SequenceConstruct", "x y", "s")]
    feeds = {"x": x, "y": y, "at": np.array(5)}
    at = make_node("SequenceAt", "s at", "z", name="it")
    with pytest.raises(heddle.UsageError, match="position 5 is outside of a sequence of 2"):
        compiled([*build, at], [("z", None)], feeds).run(None, feeds)
    nowhere = make_node("SequenceAt", ["s", ""], "z", name="it")
    with pytest.raises(heddle.RefusedError, match="input 1 is missing"):
        compiled([*build, nowhere], [("z", None)], feeds)
    insert = make_node("SequenceInsert", "s x at", "t", name="it")
    length = make_node("SequenceLength", "t", "z")
    for position in (5, -3, -(2**63), 2**63 - 2):
        feeds["at"] = np.array(position)
        with pytest.raises(heddle.UsageError, match=f"position {position} is outside"):
            compiled([*build, insert, length], [("z", None)], feeds).run(None, feeds)
    join = make_node("ConcatFromSequence", "s", "z", name="it", axis=0)
    feeds = {"x": x, "y": y}
    with pytest.raises(heddle.UsageError, match="sizes 3 and 4 of tensors to be joined differ"):
        compiled([*build, join], [("z", None)], feeds).run(None, feeds)
    mixed = {"x": x, "y": i64(1)}
    with pytest.raises(heddle.RefusedError):
        compiled([*build, join], [("z", None)], mixed)
    split = make_node("SplitToSequence", "x n", "s", name="it", axis=0)
    last = make_node("SequenceLength", "s", "z")
    for sizes in (i64(1, 1), i64(2, 2), i64(-1, 4), i64(2**62, 2**62)):
        feeds = {"x": x, "n": sizes}
        with pytest.raises(heddle.UsageError, match="node 'it'"):
            compiled([split, last], [("z", None)], feeds).run(None, feeds)
