"""The layers of the partitioner: products stitched to the reductions over their rows, products read
in parts, concats in place, and the feedback that splits again what does not pay. heddle-ops-test
holds what they compute against the oracle."""

import ctypes
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import heddle  # noqa: E402
from heddle import library  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler")


def classifier(rows, columns, is_read_twice=False):
    """Softmax of a dense layer; the layer itself may be a second output."""
    weights = np.random.default_rng(1).standard_normal((24, columns)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["scores"], name="dense"),
             helper.make_node("Softmax", ["scores"], ["y"], name="softmax", axis=-1)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, columns])]
    if is_read_twice:
        nodes.append(helper.make_node("Relu", ["scores"], ["z"], name="relu"))
        outputs.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [rows, columns]))
    graph = helper.make_graph(
        nodes, "classifier", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 24])],
        outputs, [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compiled(model, **options):
    return heddle.compile(model.SerializeToString(), threads=2, **options).compiled


def groups(made):
    return [(group["name"], group["card"]) for group in made.plan["groups"]]


def test_a_dense_layer_and_its_softmax_are_one_kernel():
    made = compiled(classifier(64, 40))
    assert groups(made) == [("softmax", "matmul_rows")]
    assert made.report["feedback"] == []


def test_a_result_that_others_read_is_a_second_result():
    made = compiled(classifier(64, 40, is_read_twice=True))
    assert groups(made) == [("softmax", "matmul_rows"), ("relu", "elementwise")]


def row_sums(node, outputs=("y",)):
    """A node on rows of 40, and what the log of their sums of exponentials needs."""
    nodes = [helper.make_node("Exp", ["x"], ["e"], name="exp"),
             helper.make_node("ReduceSum", ["e", "axis"], ["s"], name="sum"),
             helper.make_node("Log", ["s"], ["l"], name="log"), node]
    graph = helper.make_graph(
        nodes, "row_sums", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 40])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.array([1]), "axis")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_what_costs_much_is_computed_once_a_row():
    subtract = helper.make_node("Sub", ["x", "l"], ["y"], name="sub")
    assert groups(compiled(row_sums(subtract))) == [("sub", "reduce_rows")]
    # Here the sums are a result too, and a log beside each element would be computed 40 times.
    assert groups(compiled(row_sums(subtract, ("y", "s")))) == [
        ("sub", "reduce_rows")]
    # So are they where groups have one result.
    assert groups(compiled(row_sums(subtract, ("y", "s")), without="siblings")) == [
        ("sum", "reduce_rows"), ("log", "elementwise"), ("sub", "elementwise")]


def test_the_layer_can_be_left_out():
    made = compiled(classifier(64, 40), without="stitch")
    assert groups(made) == [("dense", "matmul"), ("softmax", "reduce_rows")]


@pytest.mark.parametrize("rows, columns, why", [
    (64, 60000, "bytes, and"),  # the rows of a tile do not fit the L2
    (8, 4096, "tiles of rows for 2 workers"),
])
def test_what_does_not_pay_is_split_again(rows, columns, why):
    model = classifier(rows, columns)
    made = compiled(model)
    assert groups(made) == [("dense", "matmul"), ("softmax", "reduce_rows")]
    (feedback,) = made.report["feedback"]
    assert feedback["group"] == "softmax" and feedback["step"] == "stitch"
    assert why in feedback["why"]
    # Without the feedback it is carried out all the same, and right.
    alone = compiled(model, without="feedback")
    assert groups(alone) == [("softmax", "matmul_rows")]
    assert alone.report["pointwise_instead"] == []
    x = np.random.default_rng(2).standard_normal((rows, 24)).astype(np.float32)
    np.testing.assert_allclose(heddle.Session(alone.module()).run(None, {"x": x})[0],
                               heddle.Session(made.module()).run(None, {"x": x})[0],
                               rtol=1e-4, atol=1e-6)


def shared(op, **attributes):
    """A value that two groups read."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["shared"], name="shared", **attributes),
         helper.make_node("Softmax", ["shared"], ["y"], name="softmax", axis=-1),
         helper.make_node("Sigmoid", ["shared"], ["z"], name="sigmoid")], "shared",
        [value("x", TensorProto.FLOAT, [9, 40])],
        [value("y", TensorProto.FLOAT, [9, 40]), value("z", TensorProto.FLOAT, [9, 40])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_parts_of_a_product_that_no_mechanism_takes_stay_apart():
    # 64-bit integers, whose product no mechanism takes in parts.
    nodes = [helper.make_node("MatMul", ["x", "w"], ["both"], name="both"),
             helper.make_node("Split", ["both"], ["left", "right"], name="parts", axis=1),
             helper.make_node("Mul", ["left", "right"], ["y"], name="unit")]
    weights = np.random.default_rng(1).integers(-9, 9, (24, 80))
    model = helper.make_model(helper.make_graph(
        nodes, "unit", [helper.make_tensor_value_info("x", TensorProto.INT64, [16, 24])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [16, 40])],
        [numpy_helper.from_array(weights, "w")]), opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8)
    made = compiled(model)
    assert made.report["feedback"] == []
    assert not any({"both", "unit"} <= set(group["ops"]) for group in made.plan["groups"])
    x = np.random.default_rng(2).integers(-9, 9, (16, 24))
    both = x @ weights
    np.testing.assert_array_equal(heddle.Session(made.module()).run(None, {"x": x})[0],
                                  both[:, :40] * both[:, 40:])


def test_what_is_cheap_is_computed_by_each_reader():
    made = compiled(shared("Relu"), without="siblings")
    assert [(group["name"], group["ops"]) for group in made.plan["groups"]] == [
        ("softmax", ["shared", "softmax"]), ("sigmoid", ["shared", "sigmoid"])]
    assert [name for name, _ in groups(compiled(shared("Tanh"), without="siblings"))] == [
        "shared", "softmax", "sigmoid"]
    assert [name for name, _ in groups(compiled(shared("Relu"), without="fusion"))][0] == "shared"


def test_a_plan_splits_and_joins_groups_of_several_results(tmp_path):
    joined, split = tmp_path / "joined.plan", tmp_path / "split.plan"
    model = row_sums(helper.make_node("Sub", ["x", "l"], ["y"], name="sub"), ("y", "s"))
    compiled(model).write(joined)
    compiled(model, without="siblings").write(split)
    apart = [("sum", "reduce_rows"), ("log", "elementwise"), ("sub", "elementwise")]
    assert groups(compiled(model, plan=str(split))) == apart
    assert groups(compiled(model, plan=str(joined))) == [("sub", "reduce_rows")]


def test_a_plan_splits_and_joins(tmp_path):
    model = classifier(64, 40)
    joined, split = tmp_path / "joined.plan", tmp_path / "split.plan"
    compiled(model).write(joined)
    compiled(model, without="stitch").write(split)
    assert groups(compiled(model, plan=str(split))) == [("dense", "matmul"),
                                                       ("softmax", "reduce_rows")]
    assert groups(compiled(model, plan=str(joined))) == [("softmax", "matmul_rows")]


def test_an_unknown_layer_is_refused():
    with pytest.raises(heddle.UsageError, match="there is no layer 'glue'; layers: cards, fusion"):
        compiled(classifier(4, 4), without="glue")


def test_the_model_is_still_right():
    model = classifier(64, 40, is_read_twice=True)
    x = np.random.default_rng(2).standard_normal((64, 24)).astype(np.float32)
    y, z = heddle.Session(heddle.compile(model.SerializeToString())).run(None, {"x": x})
    scores = x @ numpy_helper.to_array(onnx.load_from_string(
        model.SerializeToString()).graph.initializer[0])
    e = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(z, np.maximum(scores, 0), rtol=1e-4, atol=1e-5)


def test_callers_of_an_earlier_version_have_fewer_options():
    options = library.CompileOptions(target=b"no such cpu", without=b"cards", records=b"/nowhere")

    def refusal(size):
        options.size = size
        handle = ctypes.c_void_p()
        data = classifier(4, 4).SerializeToString()
        with pytest.raises(heddle.Error) as caught:
            library.call("heddle_compile_bytes", data, len(data), b"m", ctypes.byref(options),
                         ctypes.byref(handle))
        return str(caught.value)

    first = library.CompileOptions.without.offset
    assert "size is" in refusal(first - 1)
    assert "no such cpu" in refusal(first)  # what lies after is not read
    options.target, options.without = b"host", b"glue"
    assert "glue" in refusal(ctypes.sizeof(options) + 64)


def recurrent(op, gates, outputs, **attributes):
    """Eight steps of a layer of 20 units."""
    random = np.random.default_rng(3)
    weights = [numpy_helper.from_array(random.standard_normal((1, gates * 20, n)).astype(np.float32)
                                       / 5, name) for n, name in [(12, "w"), (20, "r")]]
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "w", "r"], ["", *outputs], hidden_size=20, **attributes)], op,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 3, 12])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, 20]) for name in outputs],
        weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("model, cell", [
    (recurrent("LSTM", 4, ["h", "c"]), ["matmul_gates"]),
    # The second product reads what the first one resets, or is reset itself.
    (recurrent("GRU", 3, ["h"]), ["matmul_gates", "matmul"]),
    (recurrent("GRU", 3, ["h"], linear_before_reset=1), ["matmul_gates", "matmul"]),
])
def test_a_recurrent_cell(model, cell):
    made = compiled(model)
    # Before the scan the product of all inputs, and the state that it begins with.
    assert [card for _, card in groups(made)] == ["matmul", "elementwise", *cell]
    assert made.report["pointwise_instead"] == []
    x = np.random.default_rng(4).standard_normal((8, 3, 12)).astype(np.float32)
    theirs = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    for found, wanted in zip(heddle.Session(made.module()).run(None, {"x": x}), theirs):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def spectrum():
    """The magnitudes of what a convolution gives as real and imaginary parts."""
    filters = np.random.default_rng(6).standard_normal((32, 4, 3)).astype(np.float32)
    numbers = [numpy_helper.from_array(np.array([n], np.int64), f"n{n}") for n in (0, 1, 16, 32)]
    nodes = [helper.make_node("Conv", ["x", "filters"], ["both"], name="conv"),
             helper.make_node("Slice", ["both", "n0", "n16", "n1"], ["real"], name="real"),
             helper.make_node("Slice", ["both", "n16", "n32", "n1"], ["imaginary"], name="im"),
             helper.make_node("Mul", ["real", "real"], ["a"], name="a"),
             helper.make_node("Mul", ["imaginary", "imaginary"], ["b"], name="b"),
             helper.make_node("Add", ["a", "b"], ["sum"], name="sum"),
             helper.make_node("Sqrt", ["sum"], ["y"], name="sqrt")]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "spectrum", [value("x", TensorProto.FLOAT, [1, 4, 40])],
                              [value("y", TensorProto.FLOAT, [1, 16, 38])],
                              [numpy_helper.from_array(filters, "filters"), *numbers])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_plan_with_a_product_that_is_read_in_parts_is_carried_out():
    made = compiled(spectrum())
    assert "matmul_gates" in [card for _, card in groups(made)]
    assert compiled(spectrum(), plan=made.plan).text("plan") == made.text("plan")


def fire(reads_one_twice=False):
    """What SqueezeNet is made of: two convolutions side by side."""
    random = np.random.default_rng(5)
    filters = [numpy_helper.from_array(random.random((6, 4, n, n), np.float32), name)
               for n, name in [(1, "small"), (3, "large")]]
    nodes = [helper.make_node("Conv", ["x", "small"], ["a"], name="one"),
             helper.make_node("Conv", ["x", "large"], ["b"], name="three", pads=[1, 1, 1, 1]),
             helper.make_node("Concat", ["a", "b"], ["both"], name="both", axis=1),
             helper.make_node("GlobalMaxPool", ["both"], ["y"], name="pool")]
    value = helper.make_tensor_value_info
    outputs = [value("y", TensorProto.FLOAT, ["n", 12, 1, 1])]
    if reads_one_twice:
        nodes.append(helper.make_node("GlobalMaxPool", ["b"], ["z"], name="second"))
        outputs.append(value("z", TensorProto.FLOAT, ["n", 6, 1, 1]))
    graph = helper.make_graph(nodes, "fire", [value("x", TensorProto.FLOAT, ["n", 4, 9, 11])],
                              outputs, filters)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def kernel_count(made):
    return made.report["launches"]


@pytest.mark.parametrize("reads_one_twice", [False, True])
def test_a_concat_in_place(reads_one_twice):
    model = fire(reads_one_twice)
    made = compiled(model)
    assert ("both", "concat_in_place") in groups(made)
    assert made.report["pointwise_instead"] == []
    plan = made.plan
    for group in plan["groups"]:
        if group["name"] == "both":
            group["card"] = "elementwise"
            group.pop("card_hash", None)
    copied = compiled(model, plan=plan)
    assert kernel_count(copied) - kernel_count(made) == (0 if reads_one_twice else 1)
    x = np.random.default_rng(6).standard_normal((2, 4, 9, 11)).astype(np.float32)
    for found, wanted in zip(heddle.Session(made.module()).run(None, {"x": x}),
                             heddle.Session(copied.module()).run(None, {"x": x})):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("columns", [(40, 40, 40), (16, 400, 40), (1, 700, 8, 64)])
def test_kernels_of_a_region_are_shared_out_whole(columns, threads):
    """Equal and unequal products side by side: each task runs once, whatever the threads."""
    random = np.random.default_rng(8)
    weights = [random.standard_normal((48, n)).astype(np.float32) for n in columns]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", f"w{i}"], [f"y{i}"]) for i in range(len(columns))],
        "heads", [value("x", TensorProto.FLOAT, ["rows", 48])],
        [value(f"y{i}", TensorProto.FLOAT, ["rows", n]) for i, n in enumerate(columns)],
        [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    made = heddle.compile(model, threads=threads).compiled
    assert made.report["launches"] == 1
    session = heddle.Session(made.module(), threads=threads)
    for rows in (0, 1, 5, 130):
        x = random.standard_normal((rows, 48)).astype(np.float32)
        for found, w in zip(session.run(None, {"x": x}), weights):
            np.testing.assert_allclose(found, x @ w, rtol=1e-4, atol=1e-4)
