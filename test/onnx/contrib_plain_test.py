"""Ops of com.microsoft that ONNX Runtime runs on CPUs against it, the others against NumPy; the
last ops of ai.onnx and ai.onnx.ml; a row of the importer's table for every op of ONNX."""

import subprocess

import heddle
import numpy as np
import onnx
import onnx.defs
import onnxruntime
import pytest
from heddle.onnx_graph import make_model, make_node, make_value
from onnx import TensorProto

import contrib_page
from contrib_test import HALF, ML, MS, bytes_of, compare, floats, model_of


def ours(op, inputs, attributes, outputs=("y",), domain=MS, opset=21):
    model = model_of(op, domain, inputs, list(outputs), attributes, False)
    model.opset_import[0].version = opset
    feeds = {f"x{i}": array for i, array in enumerate(inputs) if array is not None}
    return heddle.compile(model).run(None, feeds)


def expect(op, inputs, attributes, *wanted, tolerance=1e-4):
    for mine, theirs in zip(ours(op, inputs, attributes, [f"y{i}" for i in range(len(wanted))]),
                            wanted, strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, tolerance, tolerance)


def test_every_op_of_onnx_has_a_row():
    table = subprocess.run(["heddle", "ops", "--markdown"], capture_output=True, text=True,
                           check=True).stdout
    rows = {tuple(cell.strip() for cell in line.split("|")[1:3])
            for line in table.splitlines() if line.startswith("| ")}
    wanted = {(schema.name, schema.domain or "ai.onnx")
              for schema in onnx.defs.get_all_schemas_with_history()
              if schema.domain in ("", ML)}
    assert wanted - rows == set()


# Ops that ONNX Runtime runs on CPUs.


@pytest.mark.parametrize("attributes", [{"dim": 1, "size": 3, "step": 2}, {"dim": -1, "size": 5},
                                        {"dim": 0, "size": 1, "step": 7}, {"size": 2, "step": 3}])
def test_slices_of_a_dimension(attributes):
    compare("UnfoldTensor", [floats(3, 8, 5)], attributes)


def test_slices_larger_than_the_dimension_are_refused():
    with pytest.raises(heddle.RefusedError, match="'size' is 9 and 'step' 1"):
        ours("UnfoldTensor", [floats(3, 8)], {"size": 9})


def test_plain_ops():
    x = floats(3, 4, 5)
    compare("Pad", [x, np.array([1, 0, 2, 0, 3, 0]), np.array([7], np.float32)], {},
            constants=("x1",))
    compare("GatherND", [x, np.array([[0, 1], [2, 3]])], {}, symbolic=(False,))
    compare("GridSample", [floats(2, 3, 5, 7), floats(2, 4, 3, 2, seed=1)], {"mode": "bilinear"})
    compare("SampleOp", [x], {})
    compare("ExpandDims", [x, np.array(-1, np.int32)], {}, constants=("x1",))
    compare("Range", [np.array(2.0, np.float32), np.array(7.5, np.float32)], {},
            symbolic=(False,))
    compare("Range", [np.array(2), np.array(11), np.array(3)], {}, symbolic=(False,))
    compare("Unique", [np.array([2.0, 1, 1, 3, 4, 3], np.float32)], {}, outputs=("y", "i", "c"))
    compare("Inverse", [floats(2, 5, 5)], {}, tolerance=1e-3)
    compare("Inverse", [np.array([[0, 2], [3, 4]], np.float32)], {})


@pytest.mark.parametrize("attributes", [{}, {"isinf_only": 1}, {"isnan_only": 1}])
def test_is_all_finite(attributes):
    for values in ([], [1, 2], [1, np.nan], [np.inf, 1], [-np.inf, np.nan]):
        good = [np.isfinite(values).all(), not np.isinf(values).any(), not np.isnan(values).any()]
        wanted = good[["isinf_only" in attributes, "isnan_only" in attributes].index(True) + 1
                      if attributes else 0]
        got = ours("IsAllFinite", [np.array(values, np.float32), floats(3)], attributes)[0]
        assert got == wanted


@pytest.mark.parametrize("last", [0, 1])
def test_quantised_convolution(last):
    x, w = bytes_of(2, 3, 7, 6), bytes_of(4, 3, 3, 3, kind=np.int8, seed=1) // HALF
    scales = [np.array(v, np.float32) for v in (0.02, 0.01, 0.5)]
    zeros = [np.array(120, np.uint8), np.array(0, np.int8), np.array(100, np.uint8)]
    if last:
        x = np.moveaxis(x, 1, -1).copy()
    compare("QLinearConv", [x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], zeros[2],
                            np.arange(4, dtype=np.int32)],
            {"channels_last": last, "pads": [1, 1, 1, 1]}, constants=("x3", "x4", "x5"),
            symbolic=(False,))


def test_quantised_choices_and_means():
    scale, wide = np.array(0.05, np.float32), np.array(0.07, np.float32)
    zero = np.array(120, np.uint8)
    a, b = bytes_of(3, 5), bytes_of(3, 5, seed=1)
    compare("QLinearWhere", [a > 100, a, scale, zero, b, wide, zero, wide, zero], {})
    mean = (a.astype(float) - 120).mean(1) * 0.05
    expect("QLinearReduceMean", [a, scale, zero, wide, zero], {"axes": [1], "keepdims": 0},
           np.rint(mean / 0.07) + 120)
    short = np.random.default_rng(0).integers(-300, 300, (2, 5, 3)).astype(np.int16)
    a, b = short[0], short[1].T.copy()
    expect("MatMulInteger16", [a.astype(np.int32), b.astype(np.int32)], {},
           a.astype(np.int32) @ b.astype(np.int32))
    a, b = bytes_of(3, 5).astype(np.int32), bytes_of(5, seed=1).astype(np.int32)
    expect("MulInteger", [bytes_of(3, 5), zero, bytes_of(5, seed=1), np.array(3, np.uint8)], {},
           (a - 120) * (b - 3))
    expect("ReduceSumInteger", [bytes_of(3, 5)], {"axes": [0], "keepdims": 0}, a.sum(0))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("with_zeros", [False, True])
def test_rows_of_quantised_blocks(bits, with_zeros):
    rows, width, block = 7, 48, 16
    packed = bytes_of(rows, width * bits // 8)
    scales = np.abs(floats(rows, width // block, seed=1))
    inputs = [packed, np.array([[3, 0], [6, 3]], np.int64), scales]
    if with_zeros:
        inputs.append(bytes_of(rows, (width // block * bits + 7) // 8, seed=2))

    def numbers(x, count):
        x = x.astype(int)
        each = x if bits == 8 else np.stack([x & 15, x >> 4], -1).reshape(rows, -1)
        return each[:, :count]

    zero = (numbers(inputs[3], width // block).repeat(block, 1) if with_zeros
            else 1 << (bits - 1))
    table = (numbers(packed, width) - zero) * scales.repeat(block, 1)
    attributes = {"bits": bits, "block_size": block, "quantize_axis": 1, "gather_axis": 0}
    expect("GatherBlockQuantized", inputs, attributes, table[inputs[1]].astype(np.float32))
    if bits == 4:
        compare("GatherBlockQuantized", inputs, attributes,
                constants=("x0", "x2", "x3"), symbolic=(False,))


@pytest.mark.parametrize("kind", [0, 1])
def test_matmul_bnb4(kind):
    rows, depth, block = 6, 32, 16
    inputs = [floats(3, 5, depth), bytes_of(rows * depth // 2),
              np.abs(floats(rows * depth // block, seed=1))]
    compare("MatMulBnb4", inputs, {"N": rows, "K": depth, "block_size": block, "quant_type": kind},
            constants=("x1", "x2"), symbolic=(False,))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("per_column", [False, True])
def test_lstm_of_integers(direction, per_column):
    steps, batch, width, hidden = 5, 2, 3, 4
    count = 2 if direction == "bidirectional" else 1
    shape = (count, 4 * hidden) if per_column else (count,)
    scales = [np.abs(floats(*shape, seed=seed)) * 0.01 + 0.002 for seed in (5, 6)]
    zeros = [np.zeros(shape, np.int8) if per_column else np.full(shape, 3, np.int8)] * 2
    inputs = [floats(steps, batch, width),
              bytes_of(count, width, 4 * hidden, kind=np.int8) // HALF,
              bytes_of(count, hidden, 4 * hidden, kind=np.int8, seed=1) // HALF,
              floats(count, 8 * hidden, seed=2), None, floats(count, batch, hidden, seed=3),
              floats(count, batch, hidden, seed=4), None,
              scales[0].astype(np.float32), zeros[0], scales[1].astype(np.float32), zeros[1]]
    compare("DynamicQuantizeLSTM", inputs, {"hidden_size": hidden, "direction": direction},
            outputs=("y", "h", "c"), constants=("x1", "x2", "x8", "x9", "x10", "x11"),
            tolerance=2e-2, symbolic=(False,))


def test_embed_layer_normalization_of_integers():
    words = np.array([[1, 3, 2], [0, 4, 4]], np.int32)
    segments = np.array([[0, 0, 1], [1, 0, 1]], np.int32)
    tables = [bytes_of(5, 7), bytes_of(9, 7, seed=1), bytes_of(2, 7, seed=2), bytes_of(7, seed=3),
              bytes_of(7, seed=4)]
    scales = [np.array(0.01 * (i + 1), np.float32) for i in range(5)]
    zeros = [np.array(100 + i, np.uint8) for i in range(5)]
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    compare("QEmbedLayerNormalization", [words, segments] + tables + [mask] + scales + zeros, {},
            outputs=("y", "m"), symbolic=(False,))


# Ops that only other devices of ONNX Runtime run.


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x ** 3)))


def normalized(x, groups, gamma, beta):
    """x [n, h, w, c]."""
    n, h, w, c = x.shape
    split = x.reshape(n, h * w, groups, c // groups)
    mean, variance = (f(split, axis=(1, 3), keepdims=True) for f in (np.mean, np.var))
    return ((split - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * gamma + beta


def test_fused_ops_of_diffusion_models():
    x, gamma, beta = floats(2, 5, 3, 6), floats(6, seed=1), floats(6, seed=2)
    wanted = normalized(x, 3, gamma, beta)
    expect("GroupNorm", [x, gamma, beta], {"groups": 3}, wanted)
    expect("GroupNorm", [x, gamma, beta], {"groups": 3, "activation": 1},
           wanted / (1 + np.exp(-wanted)))
    expect("GroupNorm", [np.moveaxis(x, -1, 1).copy(), gamma, beta],
           {"groups": 3, "channels_last": 0}, np.moveaxis(wanted, -1, 1))
    skip, bias = floats(2, 6, seed=3), floats(6, seed=4)
    total = x + skip[:, None, None] + bias
    expect("SkipGroupNorm", [x, gamma, beta, skip, bias], {"groups": 3},
           normalized(total, 3, gamma, beta), total)
    x, bias = floats(2, 3, 8), floats(8, seed=1)
    expect("BiasAdd", [x, bias, x], {}, x + bias + x)
    left, right = np.split(x + bias, 2, -1)
    expect("BiasSplitGelu", [x, bias], {}, left * gelu(right), tolerance=2e-3)


def test_small_fused_ops():
    x, w, bias = floats(3, 5), floats(5, 7, seed=1), floats(7, seed=2)
    expect("GemmFastGelu", [x, w, bias], {}, gelu(x @ w + bias))
    expect("BiasDropout", [x, x[0], x], {}, x + x[0] + x)
    expect("TorchEmbedding", [w, np.array([[3, 0]])], {}, w[[[3, 0]]])
    z = 1.5 * x
    expect("ScaledSiLU", [x], {"alpha": 1.5}, z / (1 + np.exp(-z)))
    a, b = floats(3, 5, 2), floats(3, 5, 2, seed=1)
    whole = [value[..., 0] + 1j * value[..., 1] for value in (a, b)]
    for op, y in (("ComplexMul", whole[0] * whole[1]),
                  ("ComplexMulConj", whole[0] * whole[1].conj())):
        expect(op, [a, b], {}, np.stack([y.real, y.imag], -1))
    signal = floats(3, 8)
    y = np.fft.rfft(signal)
    parts = np.stack([y.real, y.imag], -1).astype(np.float32)
    attributes = {"normalized": 0, "onesided": 1, "signal_ndim": 1}
    expect("Rfft", [signal], attributes, parts)
    expect("Irfft", [parts], attributes, signal)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (1, 1), (1, 5), (9, 2)])
@pytest.mark.parametrize("constants", [("x3",), ()])
def test_crops(mode, size, constants):
    rois = np.array([[0, 0, 1, 1], [0.2, 0.8, 0.7, 0.1], [-0.5, 0.1, 0.4, 1.3],
                     [0.6, 0.6, 0.6, 0.6]], np.float32)
    compare("CropAndResize", [floats(2, 3, 7, 9), rois, np.array([0, 1, 1, 0], np.int32),
                              np.array(size, np.int32)],
            {"mode": mode, "extrapolation_value": 7.5}, constants=constants)
    compare("CropAndResize", [floats(2, 3, 7, 9), rois[:0], np.zeros(0, np.int32),
                              np.array(size, np.int32)], {"mode": mode}, constants=constants)


def test_crops_of_no_place():
    nowhere = np.array([[np.nan, 0, 1, 1], [0, 0, np.inf, 1], [2, 0, 3, 1]], np.float32)
    for mode in ("bilinear", "nearest"):
        got = ours("CropAndResize", [floats(1, 2, 3, 4), nowhere, np.zeros(3, np.int32),
                                     np.array([2, 3], np.int32)],
                   {"mode": mode, "extrapolation_value": 7.5})[0]
        assert (got[0] == 7.5).all() and (got[1, :, 1] == 7.5).all() and (got[2] == 7.5).all()


@pytest.mark.parametrize("length", [0, 1, 2, 3, 12])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_repeated_sequences(length, size):
    ids = np.random.default_rng(length).integers(0, 3, (4, length))
    compare("NGramRepeatBlock", [ids, floats(4, 5)], {"ngram_size": size})


# The last ops of ONNX.


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("batch", [(), (3,), (2, 0)])
def test_determinants(size, batch):
    x = np.random.default_rng(size).standard_normal((*batch, size, size))
    np.testing.assert_allclose(ours("Det", [x], {}, domain="", opset=11)[0], np.linalg.det(x),
                               1e-10, 1e-12)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align(mode, ratio):
    rois = np.array([[0, 0, 4, 6], [2.5, 1.5, 20, 9], [-3, -3, 1.4, 2], [40, 40, 50, 50]],
                    np.float32)
    for count in (4, 0):
        compare("RoiAlign", [floats(2, 3, 7, 9), rois[:count], np.array([0, 1, 1, 0])[:count]],
                {"mode": mode, "sampling_ratio": ratio, "output_height": 2, "output_width": 3,
                 "coordinate_transformation_mode": "output_half_pixel"}, domain="")


def test_global_lp_pool():
    for p in (1, 2, 3):
        compare("GlobalLpPool", [floats(2, 3, 5, 7)], {"p": p}, domain="")


def test_max_roi_pool():
    rois = np.array([[0, 0, 0, 4, 6], [1, 2.5, 1.5, 20, 9], [1, 5, 5, 2, 2], [0, -3, -3, 1.4, 2],
                     [0, 40, 40, 50, 50]], np.float32)
    for scale in (1.0, 0.4):
        compare("MaxRoiPool", [floats(2, 3, 7, 9), rois],
                {"pooled_shape": [2, 3], "spatial_scale": scale}, domain="")


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_hardmax_of_a_matrix(axis):
    x = floats(2, 3, 4)
    got = ours("Hardmax", [x], {"axis": axis}, domain="", opset=11)[0]
    flat = x.reshape(int(np.prod(x.shape[:axis % 3])), -1)
    wanted = np.zeros_like(flat)
    wanted[np.arange(len(flat)), flat.argmax(1)] = 1
    np.testing.assert_array_equal(got, wanted.reshape(x.shape))


def test_batch_normalization_of_rank_1():
    one = [np.array([value], np.float32) for value in (2, 0.5, 0.1, 3)]
    compare("BatchNormalization", [floats(5)] + one, {}, domain="", symbolic=(False,))


def map_model(op, key, attributes, outputs):
    info = onnx.ValueInfoProto(name="x")
    info.type.map_type.key_type = key
    info.type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    info.type.map_type.value_type.tensor_type.shape.SetInParent()
    node = make_node(op, "x", "y", domain=ML, **attributes)
    return make_model([node], [info], [make_value("y", None, outputs)], opset=21, domains={ML: 4})


@pytest.mark.parametrize("op, key, attributes, feed", [
    ("DictVectorizer", TensorProto.STRING, {"string_vocabulary": ["ash", "oak", "elm"]},
     {"oak": 2.0, "yew": 3.0, "ash": -1.0}),
    ("DictVectorizer", TensorProto.INT64, {"int64_vocabulary": [5, 2, 9, 2]}, {2: 1.5, 9: 4.0}),
    ("DictVectorizer", TensorProto.INT64, {"int64_vocabulary": [5, 2]}, {}),
    ("CastMap", TensorProto.INT64, {"cast_to": "TO_FLOAT"}, {7: 1.5, 2: 4.0, 3: 9.0}),
    ("CastMap", TensorProto.INT64, {"map_form": "SPARSE", "max_map": 6}, {4: 1.5, 2: 4.0}),
])
def test_maps(op, key, attributes, feed):
    model = map_model(op, key, attributes, TensorProto.FLOAT)
    module = heddle.compile(model)
    assert [info.name for info in module.inputs] == ["x.keys", "x.values"]
    got = module.run(None, {"x": feed})[0]
    if feed:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        wanted = session.run(None, {"x": feed})[0]
    else:
        wanted = np.zeros((1, 2), np.float32)
    np.testing.assert_array_equal(got, wanted)
    assert got.dtype == wanted.dtype


@pytest.mark.parametrize("to, kind", [("TO_FLOAT", TensorProto.FLOAT),
                                      ("TO_STRING", TensorProto.STRING)])
def test_strings_of_a_map(to, kind):
    model = map_model("CastMap", TensorProto.INT64, {"cast_to": to}, kind)
    element = model.graph.input[0].type.map_type.value_type.tensor_type
    element.elem_type = TensorProto.STRING
    got = heddle.compile(model).run(None, {"x": {7: "1.5", 2: "4"}})[0]
    assert got.tolist() == [["4", "1.5"] if kind == TensorProto.STRING else [4.0, 1.5]]


def test_numbers_of_a_map_become_no_strings():
    model = map_model("CastMap", TensorProto.INT64, {"cast_to": "TO_STRING"}, TensorProto.STRING)
    with pytest.raises(heddle.RefusedError, match="'cast_to' is 'TO_STRING' for values of f32"):
        heddle.compile(model)


def test_a_map_goes_to_nothing_else():
    model = map_model("DictVectorizer", TensorProto.INT64, {"int64_vocabulary": [5]},
                      TensorProto.FLOAT)
    model.graph.node[0].op_type = "Scaler"
    del model.graph.node[0].attribute[:]
    with pytest.raises(heddle.RefusedError, match="DictVectorizer or CastMap"):
        heddle.compile(model)


# Models as others take them.


def test_squeeze_of_sizes_that_have_names():
    node = make_node("Squeeze", "x", "y", name="it")
    module = heddle.compile(make_model([node], {"x": ["n", 1, "m"]}, "y", opset=21))
    for shape in ((2, 1, 3), (0, 1, 3), (1, 1, 3), (2, 1, 1), (1, 1, 1)):
        np.testing.assert_array_equal(module.run(None, {"x": floats(*shape)})[0],
                                      floats(*shape).squeeze())


def test_an_output_twice_and_opsets_twice():
    model = make_model([make_node("Relu", "x", "y")], {"x": [2, 3]}, "y y", opset=21,
                       domains={"ai.onnx": 21})
    results = heddle.compile(model).run(None, {"x": floats(2, 3)})
    assert len(results) == 2
    for result in results:
        np.testing.assert_array_equal(result, np.maximum(floats(2, 3), 0))


def test_a_module_runs_with_the_threads_it_was_compiled_for():
    model = make_model([make_node("Relu", "x", "y")], {"x": [2, 3]}, "y")
    module = heddle.compile(model, threads=1)
    module.run(None, {"x": floats(2, 3)})
    assert module._session.threads == 1


def test_every_op_of_com_microsoft_is_supported_or_has_a_reason():
    yes, ops = set(contrib_page.supported()), contrib_page.known()
    assert [name for name in ops if name not in yes and name not in contrib_page.REASONS] == []
    assert [name for name in contrib_page.REASONS if name in yes] == []
    page = contrib_page.PAGE.read_text(encoding="utf-8")
    for name in yes & set(ops):
        assert f"| {name} | yes |" in page, "write it again: python test/onnx/contrib_page.py"


def test_bounds_that_are_clamped_may_be_any_number():
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    for attributes in ({"start": 1, "end": most}, {"start": least}, {"start": least, "end": least},
                       {"start": most}):
        compare("Shape", [floats(2, 3, 4)], attributes, domain="")
    got = ours("Slice", [floats(2, 3)], {"starts": [least, 1], "ends": [most, most]}, domain="",
               opset=9)[0]
    np.testing.assert_array_equal(got, floats(2, 3)[:, 1:])
    for k in (least, -1, most):
        compare("Trilu", [floats(3, 4), np.array(k)], {}, domain="", constants=("x1",))
