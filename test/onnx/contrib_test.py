"""Ops of com.microsoft and ai.onnx.ml against ONNX Runtime: odd sizes, known and named."""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node
from heddle_lab.fuzz.check import run_onnxruntime

MS, ML = "com.microsoft", "ai.onnx.ml"


def model_of(op, domain, inputs, outputs, attributes, symbolic, constants=()):
    """A model of one node; with `symbolic` every size of an input has a name, that of its value, or
    one of its own."""
    names = {}

    def shape_of(name, array):
        if not symbolic:
            return array.shape
        if symbolic == "own":
            return [f"{name}_{axis}" for axis in range(array.ndim)]
        return [names.setdefault(size, f"s{size}") for size in array.shape]

    given = {f"x{i}": array for i, array in enumerate(inputs) if array is not None}
    names_of = ["" if array is None else f"x{i}" for i, array in enumerate(inputs)]
    return make_model(
        [make_node(op, names_of, outputs, domain=domain, **attributes)],
        {name: (shape_of(name, array), array.dtype) for name, array in given.items()
         if name not in constants},
        [name for name in outputs if name],
        {name: array for name, array in given.items() if name in constants}, opset=21,
        domains={MS: 1, ML: 4})


def compare(op, inputs, attributes, domain=MS, outputs=("y",), constants=(), tolerance=1e-4,
            symbolic=(False, True)):
    for named in symbolic:
        model = model_of(op, domain, inputs, list(outputs), attributes, named, constants)
        feeds = {f"x{i}": array for i, array in enumerate(inputs)
                 if array is not None and f"x{i}" not in constants}
        names = [name for name in outputs if name]
        wanted = run_onnxruntime(model.SerializeToString(), names, feeds)
        assert wanted is not None, "ONNX Runtime does not run it"
        for mine, theirs in zip(heddle.compile(model).run(None, feeds), wanted.values()):
            assert mine.shape == theirs.shape
            if theirs.dtype == object:
                assert mine.tolist() == theirs.tolist()
                continue
            assert mine.dtype == theirs.dtype
            if theirs.dtype.kind in "iub" and op.startswith("QLinear"):
                assert np.abs(mine.astype(int) - theirs.astype(int)).max(initial=0) <= 1
            else:
                np.testing.assert_allclose(mine, theirs, tolerance, tolerance)


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


HALF = 2  # of signed weights: ONNX Runtime's sums of pairs saturate at i16 on CPUs without VNNI


def bytes_of(*shape, kind=np.uint8, seed=0):
    info = np.iinfo(kind)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(kind)


@pytest.mark.parametrize("op", ["BiasGelu", "FastGelu"])
def test_gelus_of_a_bias(op):
    compare(op, [floats(3, 5, 7), floats(7, seed=1)], {}, tolerance=1e-3)


def test_skip_layer_normalization():
    inputs = [floats(2, 5, 7), floats(2, 5, 7, seed=1), floats(7, seed=2), floats(7, seed=3),
              floats(7, seed=4)]
    compare("SkipLayerNormalization", inputs, {"epsilon": 1e-5})
    compare("SkipSimplifiedLayerNormalization", inputs[:3] + [inputs[4]], {"epsilon": 1e-5},
            outputs=("y", "", "", "sum"))
    compare("SimplifiedLayerNormalization", [inputs[0], inputs[2]], {"epsilon": 1e-5}, domain="")


def test_embed_layer_normalization():
    words = np.array([[1, 3, 2], [0, 4, 4]], np.int32)
    segments = np.array([[0, 0, 1], [1, 0, 1]], np.int32)
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    inputs = [words, segments, floats(5, 7), floats(9, 7, seed=1), floats(2, 7, seed=2),
              floats(7, seed=3), floats(7, seed=4), mask]
    compare("EmbedLayerNormalization", inputs, {}, outputs=("y", "m"),
            constants=("x2", "x3", "x4", "x5", "x6"))


@pytest.mark.parametrize("causal", [0, 1])
def test_attention(causal):
    inputs = [floats(2, 5, 12), floats(12, 36, seed=1), floats(36, seed=2)]
    compare("Attention", inputs, {"num_heads": 3, "unidirectional": causal})
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    masks = {"symbolic": (False, True, "own")}
    compare("Attention", inputs + [mask], {"num_heads": 3, "unidirectional": causal}, **masks)
    for lengths in ([3, 5], [3, 5, 1, 0]):  # ends; ends and begins
        compare("Attention", inputs + [np.array(lengths, np.int32)], {"num_heads": 3}, **masks)


def test_a_mask_of_another_batch():
    inputs = [floats(2, 5, 12), floats(12, 36, seed=1), floats(36, seed=2), np.ones(3, np.int32)]
    model = model_of("Attention", MS, inputs, ["y"], {"num_heads": 3}, "own")
    with pytest.raises(heddle.UsageError, match=r"a mask of 3 \('x3_0'\) lengths does not fit a "
                                                r"batch of 2 \('x0_0'\)"):
        heddle.compile(model).run(None, {f"x{i}": array for i, array in enumerate(inputs)})


def test_attention_with_a_past():
    inputs = [floats(2, 5, 12), floats(12, 36, seed=1), floats(36, seed=2), None,
              floats(2, 2, 3, 4, 4, seed=3)]
    compare("Attention", inputs, {"num_heads": 3, "unidirectional": 1}, outputs=("y", "p"))


def test_multi_head_attention():
    query, key, value = floats(2, 5, 12), floats(2, 7, 12, seed=1), floats(2, 7, 12, seed=2)
    compare("MultiHeadAttention", [query, key, value], {"num_heads": 3})
    compare("MultiHeadAttention", [query, key, value, floats(36, seed=3)], {"num_heads": 3})
    mask = np.array([[1, 1, 1, 0, 0, 0, 0], [1] * 7], np.int32)
    compare("MultiHeadAttention", [query, key, value, None, mask], {"num_heads": 3},
            symbolic=(False, True, "own"))
    bias = floats(2, 3, 5, 7, seed=4)
    compare("MultiHeadAttention", [query, key, value, None, None, bias], {"num_heads": 3})
    past = [floats(2, 3, 4, 4, seed=5), floats(2, 3, 4, 4, seed=6)]
    fresh = [query, floats(2, 5, 12, seed=7), floats(2, 5, 12, seed=8)]
    compare("MultiHeadAttention", fresh + [None, None, None] + past, {"num_heads": 3},
            outputs=("y", "k", "v"))


@pytest.mark.parametrize("length, past", [(5, 0), (1, 6)])
@pytest.mark.parametrize("attributes", [{}, {"do_rotary": 1}, {"local_window_size": 3},
                                        {"softcap": 5.0}])
def test_group_query_attention(length, past, attributes):
    batch, size = 2, 16
    angles = np.arange(32)[:, None] * 10.0 ** -np.arange(size // 2)
    inputs = [floats(batch, length, 4 * size), floats(batch, length, 2 * size, seed=1),
              floats(batch, length, 2 * size, seed=2), floats(batch, 2, past, size, seed=3),
              floats(batch, 2, past, size, seed=4),
              np.full(batch, past + length - 1, np.int32), np.array(past + length, np.int32),
              np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)]
    if "do_rotary" not in attributes:
        inputs = inputs[:7]
    compare("GroupQueryAttention", inputs, {"num_heads": 4, "kv_num_heads": 2, **attributes},
            outputs=("y", "k", "v"), symbolic=(False, True) if past else (False,))


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved):
    angles = np.arange(32)[:, None] * 10.0 ** -np.arange(4)
    tables = [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)]
    positions = np.array([[0, 3, 1], [7, 8, 9]], np.int64)
    compare("RotaryEmbedding", [floats(2, 3, 24), positions] + tables, {"interleaved": interleaved},
            symbolic=(False,))
    compare("RotaryEmbedding", [floats(2, 3, 3, 8), np.array([2], np.int64)] + tables,
            {"interleaved": interleaved}, symbolic=(False,))


@pytest.mark.parametrize("bits, block", [(4, 16), (4, 32), (8, 16)])
@pytest.mark.parametrize("with_zeros", [False, True])
def test_matmul_n_bits(bits, block, with_zeros):
    rows, depth = 5, 48
    blocks = -(-depth // block)
    inputs = [floats(3, 7, depth), bytes_of(rows, blocks, block * bits // 8),
              np.abs(floats(rows * blocks, seed=1))]
    if with_zeros:
        inputs.append(bytes_of(rows * ((blocks * bits + 7) // 8), seed=2))
    attributes = {"N": rows, "K": depth, "bits": bits, "block_size": block}
    compare("MatMulNBits", inputs, attributes, constants=("x1", "x2", "x3"), tolerance=2e-3,
            symbolic=(False,))


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_integer_products(kind):
    a, b = bytes_of(3, 5), bytes_of(5, 7, kind=kind, seed=1) // HALF
    scales = [np.array(0.02, np.float32), np.array(0.03, np.float32)]
    zeros = [np.array(3, np.uint8), np.array(5, kind)]
    compare("MatMulIntegerToFloat", [a, b] + scales + zeros + [floats(7)], {})
    compare("DynamicQuantizeMatMul", [floats(3, 5), b, scales[1], zeros[1], floats(7, seed=1)], {})


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_quantised_pairs(op):
    scale, zero = np.array(0.05, np.float32), np.array(120, np.uint8)
    wide = np.array(0.2, np.float32)
    compare(op, [bytes_of(3, 5), scale, zero, bytes_of(3, 5, seed=1), scale, zero, wide, zero], {})


@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("swapped", [0, 1])
def test_transposed_products(batch, swapped):
    # With `batch` the first dimension is one of the matrix.
    a = floats(5, 2, 3) if batch else floats(2, 5, 3)
    b = floats(2, 3, 7, seed=1)
    if swapped:
        a = np.swapaxes(a, 0, 2).copy() if batch else np.swapaxes(a, 1, 2).copy()
    for op in ("FusedMatMul", "TransposeMatMul")[:1 if batch else 2]:
        attributes = {"transA": swapped}
        if batch:
            attributes["transBatchA"] = 1
        compare(op, [a, b], attributes)


def test_gemms():
    a, b, c = floats(3, 5), floats(7, 5, seed=1), floats(7, seed=2)
    for activation in ("Relu", "Tanh"):
        compare("FusedGemm", [a, b, c], {"transB": 1, "alpha": 0.5, "activation": activation})
    x, w = bytes_of(3, 5), bytes_of(7, 5, seed=1)
    scales = [np.array(0.02, np.float32), np.array(0.03, np.float32), np.array(0.9, np.float32)]
    zeros = [np.array(3, np.uint8), np.array(5, np.uint8), np.array(100, np.uint8)]
    bias = np.arange(7, dtype=np.int32) * 50
    inputs = [x, scales[0], zeros[0], w, scales[1], zeros[1], bias]
    compare("QGemm", inputs, {"transB": 1})
    compare("QGemm", inputs + [scales[2], zeros[2]], {"transB": 1})


def test_small_ops():
    compare("Trilu", [floats(2, 5, 3)], {"upper": 0})
    for metric in ("euclidean", "sqeuclidean"):
        compare("CDist", [floats(5, 3), floats(7, 3, seed=1)], {"metric": metric}, tolerance=1e-3)


def test_fused_products():
    compare("FusedMatMul", [floats(2, 5, 3), floats(2, 7, 5, seed=1)],
            {"transA": 1, "transB": 1, "alpha": 0.5})
    compare("FusedConv", [floats(1, 3, 7, 9), floats(4, 3, 3, 3, seed=1), floats(4, seed=2)],
            {"activation": "Relu", "pads": [1, 1, 1, 1]}, tolerance=1e-3, symbolic=(False,))


# ai.onnx.ml


def test_features():
    x = floats(5, 3)
    for symbolic in (False, True):
        options = {"domain": ML, "symbolic": (symbolic,)}
        compare("Binarizer", [x], {"threshold": 0.1}, **options)
        compare("Scaler", [x], {"offset": [0.1, 0.2, 0.3], "scale": [2.0, 3.0, 4.0]}, **options)
        compare("Imputer", [np.where(x > 0, np.nan, x).astype(np.float32)],
                {"replaced_value_float": float("nan"), "imputed_value_floats": [1.0, 2.0, 3.0]},
                **options)
        for norm in ("MAX", "L1", "L2"):
            compare("Normalizer", [np.abs(x)], {"norm": norm}, **options)
    compare("FeatureVectorizer", [x, floats(5, 2, seed=1)], {"inputdimensions": [3, 2]}, domain=ML)
    compare("OneHotEncoder", [np.array([[1, 5], [7, 2]], np.int64)], {"cats_int64s": [5, 2, 9]},
            domain=ML)


def test_label_encoder():
    x = np.array([3, 8, -2, 100, 7, 7], np.int64)
    compare("LabelEncoder", [x], {"keys_int64s": [7, 3, -2, 9, 11],
                                  "values_floats": [1.5, 2.5, 3.5, 4.5, 5.5],
                                  "default_float": 9.0}, domain=ML)
    compare("LabelEncoder", [np.array([1.5, np.nan, 2.0], np.float32)],
            {"keys_floats": [float("nan"), 2.0], "values_int64s": [4, 5]}, domain=ML)


TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_models(transform):
    weights = floats(9, seed=1).tolist()
    compare("LinearRegressor", [floats(5, 3)],
            {"coefficients": weights, "intercepts": [0.1, 0.2, 0.3], "targets": 3}, domain=ML)
    compare("LinearClassifier", [floats(5, 3)],
            {"coefficients": weights, "intercepts": [0.1, 0.2, 0.3], "classlabels_ints": [4, 5, 9],
             "post_transform": transform}, domain=ML, outputs=("l", "s"))


def test_labels_that_are_strings():
    compare("LinearClassifier", [floats(5, 3)],
            {"coefficients": floats(9, seed=1).tolist(), "intercepts": [0.1, 0.2, 0.3],
             "classlabels_strings": ["oak", "ash", "elm"]}, domain=ML, outputs=("l", "s"))


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_support_vectors(kernel):
    shared = {"kernel_type": kernel, "kernel_params": [0.5, 0.1, 2.0],
              "support_vectors": floats(6, 3, seed=1).ravel().tolist()}
    compare("SVMRegressor", [floats(5, 3)],
            {**shared, "coefficients": floats(6, seed=2).tolist(), "n_supports": 6,
             "rho": [0.2]}, domain=ML)
    classes = {**shared, "coefficients": floats(12, seed=2).tolist(),
               "vectors_per_class": [2, 3, 1], "rho": [0.1, -0.2, 0.3],
               "classlabels_ints": [3, 4, 7]}
    compare("SVMClassifier", [floats(5, 3)], classes, domain=ML, outputs=("l", "s"))
    chances = {"prob_a": [-1.0, -1.2, -0.8], "prob_b": [0.1, 0.2, -0.1]}
    compare("SVMClassifier", [floats(5, 3)], {**classes, **chances}, domain=ML,
            outputs=("l", "s"), tolerance=2e-3)


@pytest.mark.parametrize("rows", [1, 300])
def test_chances_of_many_classes(rows):
    """Rows whose chances are found after different numbers of rounds."""
    classes, pairs = 7, 21
    compare("SVMClassifier", [floats(rows, 3) * 3],
            {"kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0],
             "support_vectors": floats(classes * 4, 3, seed=1).ravel().tolist(),
             "coefficients": floats((classes - 1) * classes * 4, seed=2).tolist(),
             "vectors_per_class": [4] * classes, "rho": floats(pairs, seed=3).tolist(),
             "prob_a": [-1.5] * pairs, "prob_b": floats(pairs, seed=4).tolist(),
             "classlabels_ints": list(range(classes))}, domain=ML, outputs=("l", "s"),
            tolerance=1e-5)


def stumps(stem, ids, weights):
    """Two trees of one split each."""
    return {"nodes_treeids": [0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2] * 2,
            "nodes_featureids": [0, 0, 0, 2, 0, 0], "nodes_values": [0.1, 0, 0, -0.3, 0, 0],
            "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
            "nodes_truenodeids": [1, 0, 0] * 2, "nodes_falsenodeids": [2, 0, 0] * 2,
            f"{stem}_treeids": [0, 0, 1, 1], f"{stem}_nodeids": [1, 2, 1, 2],
            f"{stem}_ids": ids, f"{stem}_weights": weights}


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressor(aggregate):
    compare("TreeEnsembleRegressor", [floats(9, 3)],
            {**stumps("target", [0, 1, 0, 1], [1.0, 2.0, 3.0, -4.0]), "n_targets": 2,
             "aggregate_function": aggregate}, domain=ML)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("labels, ids, weights", [
    ([3, 4, 7], [0, 1, 2, 1], [0.5, 0.4, 0.3, 0.2]),
    ([0, 1], [1, 1, 1, 1], [0.5, 0.1, 0.3, 0.2]),
    ([0, 1], [0, 0, 0, 0], [0.5, -0.1, 0.3, -0.7]),
])
def test_tree_classifier(labels, ids, weights, transform):
    compare("TreeEnsembleClassifier", [floats(9, 3)],
            {**stumps("class", ids, weights), "classlabels_int64s": labels,
             "post_transform": transform}, domain=ML, outputs=("l", "s"))
