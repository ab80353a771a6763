"""The layers of the partitioner: products stitched to the reductions over their rows, products read
in parts, concats in place, and the feedback that splits again what does not pay. heddle-ops-test
holds what they compute against the oracle."""

import ctypes

import numpy as np
import onnxruntime
import pytest
from heddle.onnx_graph import make_model, make_node
from onnx import TensorProto, numpy_helper

import heddle
from heddle import library

pytestmark = pytest.mark.usefixtures("compiler")


def classifier(rows, columns):
    """Softmax of a dense layer."""
    weights = np.random.default_rng(1).standard_normal((24, columns)).astype(np.float32)
    nodes = [make_node("MatMul", "x w", "scores", name="dense"),
             make_node("Softmax", "scores", "y", name="softmax", axis=-1)]
    return make_model(nodes, {"x": [rows, 24]}, {"y": [rows, columns]}, {"w": weights})


def compiled(model, **options):
    return heddle.compile(model.SerializeToString(), threads=2, **options).compiled


def groups(made):
    return [(group["name"], group["card"]) for group in made.plan["groups"]]


def row_sums(node, outputs=("y",)):
    """A node on rows of 40, and what the log of their sums of exponentials needs."""
    nodes = [make_node("Exp", "x", "e", name="exp"),
             make_node("ReduceSum", "e axis", "s", name="sum"),
             make_node("Log", "s", "l", name="log"), node]
    return make_model(nodes, {"x": [64, 40]}, {name: None for name in outputs},
                      {"axis": np.array([1])}, opset=18)


def test_what_costs_much_is_computed_once_a_row():
    subtract = make_node("Sub", "x l", "y", name="sub")
    assert groups(compiled(row_sums(subtract))) == [("sub", "reduce_rows")]
    # Here the sums are a result too, and a log beside each element would be computed 40 times.
    assert groups(compiled(row_sums(subtract, ("y", "s")))) == [
        ("sub", "reduce_rows")]
    # So are they where groups have one result.
    assert groups(compiled(row_sums(subtract, ("y", "s")), without="siblings")) == [
        ("sum", "reduce_rows"), ("log", "elementwise"), ("sub", "elementwise")]


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


def test_parts_of_a_product_that_no_mechanism_takes_stay_apart():
    # 64-bit integers, whose product no mechanism takes in parts.
    nodes = [make_node("MatMul", "x w", "both", name="both"),
             make_node("Split", "both", "left right", name="parts", axis=1),
             make_node("Mul", "left right", "y", name="unit")]
    weights = np.random.default_rng(1).integers(-9, 9, (24, 80))
    model = make_model(nodes, {"x": ([16, 24], TensorProto.INT64)},
                       {"y": ([16, 40], TensorProto.INT64)}, {"w": weights})
    made = compiled(model)
    assert made.report["feedback"] == []
    assert not any({"both", "unit"} <= set(group["ops"]) for group in made.plan["groups"])
    x = np.random.default_rng(2).integers(-9, 9, (16, 24))
    both = x @ weights
    np.testing.assert_array_equal(heddle.Session(made.module()).run(None, {"x": x})[0],
                                  both[:, :40] * both[:, 40:])


def test_a_plan_splits_and_joins_groups_of_several_results(tmp_path):
    joined, split = tmp_path / "joined.plan", tmp_path / "split.plan"
    model = row_sums(make_node("Sub", "x l", "y", name="sub"), ("y", "s"))
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
    weights = {name: random.standard_normal((1, gates * 20, n)).astype(np.float32) / 5
               for n, name in [(12, "w"), (20, "r")]}
    return make_model([make_node(op, "x w r", ["", *outputs], hidden_size=20, **attributes)],
                      {"x": [8, 3, 12]}, {name: [1, 3, 20] for name in outputs}, weights)


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
    nodes = [make_node("Conv", "x filters", "both", name="conv"),
             make_node("Slice", "both n0 n16 n1", "real", name="real"),
             make_node("Slice", "both n16 n32 n1", "imaginary", name="im"),
             make_node("Mul", "real real", "a", name="a"),
             make_node("Mul", "imaginary imaginary", "b", name="b"),
             make_node("Add", "a b", "sum", name="sum"), make_node("Sqrt", "sum", "y", name="sqrt")]
    return make_model(nodes, {"x": [1, 4, 40]}, {"y": [1, 16, 38]},
                      {"filters": filters, **{f"n{n}": [n] for n in (0, 1, 16, 32)}})


def test_a_plan_with_a_product_that_is_read_in_parts_is_carried_out():
    made = compiled(spectrum())
    assert "matmul_gates" in [card for _, card in groups(made)]
    assert compiled(spectrum(), plan=made.plan).text("plan") == made.text("plan")


def fire(reads_one_twice=False):
    """The module of SqueezeNet: two convolutions side by side."""
    random = np.random.default_rng(5)
    filters = [numpy_helper.from_array(random.random((6, 4, n, n), np.float32), name)
               for n, name in [(1, "small"), (3, "large")]]
    nodes = [make_node("Conv", "x small", "a", name="one"),
             make_node("Conv", "x large", "b", name="three", pads=[1, 1, 1, 1]),
             make_node("Concat", "a b", "both", name="both", axis=1),
             make_node("GlobalMaxPool", "both", "y", name="pool")]
    outputs = {"y": ["n", 12, 1, 1]}
    if reads_one_twice:
        nodes.append(make_node("GlobalMaxPool", "b", "z", name="second"))
        outputs["z"] = ["n", 6, 1, 1]
    return make_model(nodes, {"x": ["n", 4, 9, 11]}, outputs, filters)


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
    model = make_model([make_node("MatMul", f"x w{i}", f"y{i}") for i in range(len(columns))],
                       {"x": ["rows", 48]}, {f"y{i}": ["rows", n] for i, n in enumerate(columns)},
                       {f"w{i}": w for i, w in enumerate(weights)})
    made = heddle.compile(model, threads=threads).compiled
    assert made.report["launches"] == 1
    session = heddle.Session(made.module(), threads=threads)
    for rows in (0, 1, 5, 130):
        x = random.standard_normal((rows, 48)).astype(np.float32)
        for found, w in zip(session.run(None, {"x": x}), weights):
            np.testing.assert_allclose(found, x @ w, rtol=1e-4, atol=1e-4)
