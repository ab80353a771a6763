"""Nodes whose numbers or types were once wrong, judged by ONNX Runtime and ONNX's evaluator."""

import heddle
import numpy as np
import onnx.parser
import pytest
from heddle.onnx_graph import make_model, make_node
from heddle_lab.fuzz.check import run_onnxruntime, run_reference
from heddle_lab.fuzz.nodes.case import ML, Case
from heddle_lab.fuzz.nodes.judge import judge
from onnx import TensorProto, helper

MS = "com.microsoft"
X = np.arange(35, dtype=np.float32).reshape(1, 1, 5, 7)


def case_of(op, inputs, attributes=None, domain="", opset=21, outputs=1, form="symbols"):
    """A Case whose inputs are all of one form."""
    attributes = [helper.make_attribute(name, item, attr_type=7 if item == [] else None)
                  for name, item in (attributes or {}).items()]
    return Case(op, domain, opset, attributes, inputs, outputs, [form] * len(inputs))


def compiled(*about, options=(), **more):
    """(module, model, feeds) of the case that `case_of` makes of these; options of compile."""
    model, feeds = case_of(*about, **more).model()
    return heddle.compile(model, threads=1, **dict(options)), model, feeds


def result(*about, **more):
    """The result of the case that `case_of` makes of these."""
    module, _, feeds = compiled(*about, **more)
    return module.run(None, feeds)[0]


def agrees(*about, forms=("fixed", "symbols"), **more):
    for form in forms:
        case = case_of(*about, form=form, **more)
        model, feeds = case.model()
        outcome = judge(model, [feeds])
        assert outcome.kind == "agrees", f"{outcome.message} of {case}"


def i64(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("coordinates", ["tf_half_pixel_for_nn", "half_pixel", "asymmetric",
                                         "align_corners", "pytorch_half_pixel"])
@pytest.mark.parametrize("rule", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_nearest_places(coordinates, rule):
    empty = np.zeros(0, np.float32)
    for size in ((3, 6), (8, 11), (10, 14)):
        agrees("Resize", [X, empty, empty, i64(1, 1, *size)],
               {"coordinate_transformation_mode": coordinates, "nearest_mode": rule,
                "mode": "nearest"}, opset=13, forms=("constant",))


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("length", [3, 8, 40, 1000, 300000])
def test_rows_with_what_is_no_number(op, length):
    x = np.random.default_rng(length).standard_normal((6, length)).astype(np.float32)
    x[0, length // 2] = x[1, 0] = np.nan
    x[1, 1] = x[2, -1] = np.inf
    x[3, 0] = x[4] = -np.inf
    agrees(op, [x], {"axis": 1}, opset=13)


@pytest.mark.parametrize("base, exponent", [
    (np.array([4, 7, 9], np.int64), np.array([0.5, 2.5, 1.5], np.float32)),
    (np.array([4, -7, 9], np.int32), np.array([2.0, 3.0, 0.0], np.float64)),
    (np.array([1.5, 2.0, 0.1], np.float32), np.array([0.1, 1 / 3, 7.7])),
    (np.array([2, 3, 1], np.int32), np.array([5, 7, -2], np.int64)),
    (np.array([2.0, -3.0, 0.5], np.float32), np.array([5, 3, -2], np.int64))])
def test_powers_of_two_types(base, exponent):
    agrees("Pow", [base, exponent], opset=15)


def test_integers_times_a_fraction():
    a, b, c = [np.arange(size, size + 6, dtype=np.int32).reshape(shape)
               for size, shape in ((1, (2, 3)), (-4, (3, 2)), (7, (6,)))]
    agrees("Gemm", [a, b, c[:2]], {"alpha": 0.5, "beta": 1.5}, opset=13)


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.int64, np.uint8])
@pytest.mark.parametrize("lambd, bias", [(-5.0, 1.0), (1.5, 0.5), (0.0, 1.5)])
def test_shrink(kind, lambd, bias):
    values = np.arange(1 if kind == np.uint8 else -6, 7).astype(kind)
    agrees("Shrink", [values], {"lambd": lambd, "bias": bias})


@pytest.mark.parametrize("op", ["BlackmanWindow", "HannWindow", "HammingWindow"])
@pytest.mark.parametrize("to", [1, 10, 11])
def test_windows(op, to):
    for size in (2, 7, 10, 33):
        agrees(op, [np.array(size, np.int64)], {"output_datatype": to}, opset=17,
               forms=("fixed", "constant"))


def test_types_of_a_skipped_normalisation():
    generator = np.random.default_rng(1)
    rows, vector = [generator.standard_normal(shape).astype(np.float16)
                    for shape in ((2, 5, 16), (16,))]
    agrees("SkipLayerNormalization", [rows, rows, vector, vector, vector], {"epsilon": 1e-5},
           domain=MS, opset=1, outputs=4)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("places, length, past", [(9, 1, 4), (9, 3, 0), (5, 1, 4), (4, 1, 4)])
@pytest.mark.parametrize("form", ["fixed", "symbols"])
def test_a_past_of_the_largest_length(batch, places, length, past, form):
    """The buffer keeps its length; it grows only where there are more keys than places."""
    generator = np.random.default_rng(2)

    def draw(*shape):
        return generator.standard_normal(shape).astype(np.float32)

    total = past + length
    inputs = [draw(batch, length, 64), draw(batch, length, 32), draw(batch, length, 32),
              draw(batch, 2, places, 16), draw(batch, 2, places, 16),
              np.full(batch, total - 1, np.int32), np.array(total, np.int32)]
    module, model, feeds = compiled("GroupQueryAttention", inputs,
                                    {"num_heads": 4, "kv_num_heads": 2}, MS, 1, 3, form)
    wanted = run_onnxruntime(model.SerializeToString(), ["y0", "y1", "y2"], feeds)
    found = module.run(None, feeds)
    np.testing.assert_allclose(found[0], wanted["y0"], 1e-4, 1e-4)
    for name, mine in zip(("y1", "y2"), found[1:]):
        assert mine.shape == (batch, 2, max(places, total), 16) == wanted[name].shape
        np.testing.assert_array_equal(mine[:, :, :total], wanted[name][:, :, :total])


def test_logistic_scores_of_two_targets():
    """Leaves of one target leave the other one at 0, which becomes 0.5."""
    agrees("TreeEnsembleRegressor", [np.array([[-1.0], [2.0]], np.float32)],
           {"n_targets": 2, "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2],
            "nodes_featureids": [0, 0, 0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
            "nodes_values": [0.0, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
            "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0], "target_nodeids": [1, 2],
            "target_ids": [0, 0], "target_weights": [5.0, -12.0], "post_transform": "LOGISTIC"},
           domain=ML, opset=3)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("sizes, attributes", [
    ((1, 5), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ((1, 1), {"kernel_shape": [4, 2], "strides": [4, 3]}),
    ((2, 3), {"kernel_shape": [2, 2], "strides": [3, 3], "dilations": [3, 1]}),
    ((1, 1), {"kernel_shape": [3, 2], "strides": [3, 3], "pads": [1, 0, 0, 0]}),
    ((5, 4), {"kernel_shape": [4, 4], "strides": [3, 3], "ceil_mode": 1}),
    ((2, 5), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 1, 0, 1], "ceil_mode": 1})])
def test_windows_larger_than_the_image(op, sizes, attributes):
    image = np.arange(2 * sizes[0] * sizes[1], dtype=np.float32).reshape(1, 2, *sizes)
    agrees(op, [image], attributes, opset=22)
    if op == "AveragePool":
        agrees(op, [image], {**attributes, "count_include_pad": 1}, opset=22)


def test_a_window_whose_elements_all_miss_the_image():
    image = np.ones((1, 1, 1, 1), np.float32)
    agrees("AveragePool", [image], {"kernel_shape": [3, 2], "dilations": [1, 2],
                                    "pads": [1, 1, 1, 1]}, opset=22)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("to, wide", [(np.int8, np.int32), (np.uint8, np.int32),
                                      (np.int16, np.int32), (np.int32, np.int32),
                                      (np.uint32, np.int64), (np.int64, np.int64)])
def test_floats_that_an_integer_cannot_hold(kind, to, wide):
    """As x86 converts: the lowest number of the wide integer, and of that the low bits."""
    with np.errstate(over="ignore"):
        values = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1e30, -1e30, 300, -300, 1.9, -1.9,
                           2.0**31, -2.0**31, 2.0**63, -2.0**63] * 3).astype(kind)
    lowest = np.iinfo(wide).min
    expected = [int(v) if np.isfinite(v) and lowest <= int(v) <= -(lowest + 1) else lowest
                for v in values]
    expected = np.array(expected, np.int64).astype(to)
    attributes = {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))}
    for level in (0, 2):
        module, model, feeds = compiled("Cast", [values], attributes,
                                        options={"opt_level": level})
        np.testing.assert_array_equal(module.run(None, feeds)[0], expected)
        np.testing.assert_array_equal(
            run_reference(model.SerializeToString(), module, feeds)["y0"], expected)


def test_a_saturated_tanh_is_exact():
    """So that Gelu, which multiplies 1 + tanh by its input, has no infinite result."""
    values = np.array([-np.inf, -1e30, -50, 50, 1e30], np.float32)
    agrees("FastGelu", [values], domain=MS, opset=1)
    assert result("Tanh", [values]).tolist() == [-1, -1, -1, 1, 1]


def test_bins_of_a_complex_signal():
    generator = np.random.default_rng(1)
    signal = generator.standard_normal((2, 40, 2)).astype(np.float32)
    agrees("STFT", [signal, np.array(8, np.int64), np.hanning(8).astype(np.float32)], opset=17)


@pytest.mark.parametrize("op", ["BlackmanWindow", "HannWindow", "HammingWindow"])
def test_windows_of_integers(op):
    for size in (7, 10):
        agrees(op, [np.array(size, np.int32)], {"output_datatype": 5, "periodic": size % 2 ^ 1},
               opset=17)


def test_integers_above_a_fraction():
    agrees("Binarizer", [np.arange(-3, 4, dtype=np.int32)], {"threshold": -1.2}, ML, 1)


def test_the_least_of_truths():
    x, updates = np.zeros((3, 3), bool), np.ones((2, 3), bool)
    for reduction in ("min", "max"):
        for base in (x, ~x):
            agrees("ScatterElements", [base, np.array([[1, 0, 2], [0, 2, 1]]), updates],
                   {"reduction": reduction}, opset=24)


def test_unsigned_indices_of_one_hot():
    """None is negative: what is above the depth is at no place."""
    indices = np.array([0, 2**64 - 7, 3], np.uint64)
    found = result("OneHot", [indices, np.array(10, np.float32), np.array([1, 3], np.float32)],
                   opset=11)
    assert found.tolist() == [[3.0 if i == k else 1.0 for i in range(10)] for k in (0, -1, 3)]


def test_powers_beyond_a_float():
    agrees("LpPool", [X / 10], {"kernel_shape": [2, 2], "p": 100}, opset=22)


@pytest.mark.parametrize("labels, keys", [
    ({"classlabels_int64s": [7, -2, 5]}, [7, -2, 5]),
    ({"classlabels_strings": ["a", "b", "c"]}, ["a", "b", "c"])])
def test_keys_of_maps(labels, keys):
    x = X.reshape(5, 7)[:, :3]
    assert result("ZipMap", [x], labels, ML, 1) == [dict(zip(keys, row)) for row in x.tolist()]


def test_a_mask_whose_sizes_have_other_names():
    """That they are those of the scores is checked by the run."""
    graph = onnx.parser.parse_graph(
        "g (float[batch, h, s, t] scores, int64[batch_1, seq_1] mask) => (float[a, b, c, d] y) "
        "<int64[2] axes = {1, 2}, float zero = {0}, float low = {-10000.0}> {"
        "m = Unsqueeze(mask, axes) b = Cast<to = 9>(m) v = Where(b, zero, low) "
        "q = Add(scores, v) y = Softmax(q) }")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = heddle.Session(heddle.compile(model, cache=False), threads=1)
    scores = np.random.default_rng(1).standard_normal((2, 3, 5, 4)).astype(np.float32)
    mask = i64(1, 1, 0, 1, 1, 0, 0, 1).reshape(2, 4)
    feeds = {"scores": scores, "mask": mask}
    wanted = run_onnxruntime(model.SerializeToString(), ["y"], feeds)["y"]
    np.testing.assert_allclose(session.run(None, feeds)[0], wanted, rtol=1e-5, atol=1e-6)
    with pytest.raises(heddle.Error, match="a size of .* cannot be broadcast"):
        session.run(None, {**feeds, "mask": np.ones((2, 3), np.int64)})
    with pytest.raises(heddle.Error, match="a size of .* cannot be broadcast"):
        session.run(None, {**feeds, "mask": np.ones((3, 4), np.int64)})


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_no_element_is_the_largest_of_none(op, kind):
    for form in ("fixed", "symbols"):
        about = {"inputs": [np.zeros((8, 0, 4), kind)], "attributes": {"axis": 1}, "opset": 13}
        with pytest.raises(heddle.Error, match="has no elements"):
            result(op, form=form, **about)
        model, feeds = case_of(op, form=form, **about).model()
        assert judge(model, [feeds]).kind == "agrees"  # and reads nothing beyond the array


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_a_nan_is_both_the_largest_and_the_smallest(op, last, kind):
    for length in (5, 400):  # long rows are two folds
        x = np.random.default_rng(length).standard_normal((4, length)).astype(kind)
        x[1, length // 2] = x[2, 0] = x[2, length - 2] = np.nan
        x[3] = np.nan
        node = make_node(op, "x", "y", axis=1, keepdims=0, select_last_index=last)
        model = make_model([node], {"x": (["n", "m"], np.dtype(kind))}, {"y": (["n"], 7)}, opset=13)
        place = np.argmax if op == "ArgMax" else np.argmin
        wanted = length - 1 - place(x[:, ::-1], 1) if last else place(x, 1)
        found = heddle.compile(model, cache=False, threads=1).run(None, {"x": x})[0]
        np.testing.assert_array_equal(found, wanted)


SUBNORMAL = np.array([1e-45, -1e-40, 5.877e-39, 1.1e-38, -0.0, 1e-30, -3.0] * 9, np.float32)


def node_of(op, *inputs, to=None, **attributes):
    """(model, feeds) of one op on vectors."""
    kind = to or TensorProto.BOOL if op in ("Cast", "Greater", "Equal") else TensorProto.FLOAT
    if op == "Cast":
        attributes["to"] = to
    names = [f"x{i}" for i in range(len(inputs))]
    model = make_model([make_node(op, names, "y", **attributes)], {name: ["n"] for name in names},
                       {"y": (["n"], kind)}, opset=13)
    return model, dict(zip(names, inputs))


@pytest.mark.parametrize("how", [{}, {"math": "strict"}, {"subnormals": "keep"}])
@pytest.mark.parametrize("op, operands, attributes", [
    ("Sign", 1, {}), ("Log", 1, {}), ("Min", 2, {}), ("Max", 2, {}), ("Greater", 2, {}),
    ("Equal", 2, {}), ("Abs", 1, {}), ("Sqrt", 1, {}), ("Cast", 1, {"to": TensorProto.DOUBLE}),
    ("Cast", 1, {"to": TensorProto.BOOL})])
def test_subnormal_operands_are_as_they_are(op, operands, attributes, how):
    x = np.abs(SUBNORMAL) if op in ("Log", "Sqrt") else SUBNORMAL
    model, feeds = node_of(op, *[x, np.roll(x, 1)][:operands], **attributes)
    found = heddle.compile(model, cache=False, **how).run(None, feeds)[0]
    np.testing.assert_allclose(found, run_onnxruntime(model.SerializeToString(), ["y"], feeds)["y"],
                               rtol=1e-6, atol=0)


@pytest.mark.parametrize("op, inputs", [
    ("Mul", [SUBNORMAL, np.full(63, 0.75, np.float32)]),
    ("Mul", [np.full(63, 3e-20, np.float32), np.full(63, -1.1e-20, np.float32)]),
    ("Exp", [np.linspace(-105, -86, 63, dtype=np.float32)]),
    ("Div", [np.full(63, 1e-30, np.float32), np.linspace(1e8, 1e12, 63, dtype=np.float32)])])
def test_subnormal_results_are_kept_or_none(op, inputs):
    model, feeds = node_of(op, *inputs)
    wanted = run_onnxruntime(model.SerializeToString(), ["y"], feeds)["y"]
    is_subnormal = (np.abs(wanted) < np.finfo(np.float32).tiny) & (wanted != 0)
    assert is_subnormal.any()
    for how, keeps in (({}, False), ({"math": "strict"}, True), ({"subnormals": "keep"}, True),
                       ({"math": "strict", "subnormals": "flush"}, False)):
        found = heddle.compile(model, cache=False, **how).run(None, feeds)[0]
        np.testing.assert_allclose(found, wanted if keeps else np.where(is_subnormal, 0, wanted),
                                   rtol=1e-6, atol=3e-45)


def test_a_swish_of_halves_has_a_slope_that_is_no_half():
    agrees("Swish", [np.array([-2.8, 0.9, 0.0], np.float16)], {"alpha": 1e30}, opset=24)


@pytest.mark.parametrize("op, attributes, inputs", [
    ("Col2Im", {"strides": [5, 1, 0]}, [np.ones((1, 10, 12), np.float32), i64(5, 5, 5),
                                        i64(1, 5, 1)]),
    ("DeformConv", {"strides": [0, 1]}, [np.ones((1, 1, 3, 3), np.float32),
                                         np.ones((1, 1, 2, 2), np.float32),
                                         np.zeros((1, 8, 2, 2), np.float32)])])
def test_windows_that_do_not_move_are_refused(op, attributes, inputs):
    with pytest.raises(heddle.RefusedError, match="'strides' has the entry 0"):
        compiled(op, inputs, attributes, opset=19)


def test_an_open_tuple_of_one_dimension_is_one_index():
    agrees("GatherND", [np.arange(5, dtype=np.float32), i64(3, 0).reshape(2, 1)], opset=13,
           forms=("symbols", "open", "fixed"))


def test_an_open_tuple_of_more_dimensions_is_refused_with_the_way_out():
    with pytest.raises(heddle.RefusedError, match="declare the rank of the result"):
        compiled("GatherND", [np.ones((2, 3), np.float32), i64(1, 0).reshape(2, 1)], opset=13)


def test_no_axes_of_a_resize_are_all():
    agrees("Resize", [X, None, np.array([1, 1, 2, 2], np.float32)], {"mode": "cubic", "axes": []},
           opset=19, forms=("constant", "symbols"))
