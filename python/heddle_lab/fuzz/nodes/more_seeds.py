"""more_seeds: legal nodes of ops for which ONNX has no tests: (op, domain, opset, attributes,
inputs, number of outputs).

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

MS, ML = "com.microsoft", "ai.onnx.ml"


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def whole(*shape, kind=np.uint8, seed=0):
    info = np.iinfo(kind)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(kind)


SCALE, ZERO = np.array(0.05, np.float32), np.array(120, np.uint8)
WEIGHTS = floats(9, seed=1).tolist()

MORE = [
    ("GlobalLpPool", "", 13, {"p": 3}, [floats(2, 3, 5, 4)], 1),
    ("MaxRoiPool", "", 13, {"pooled_shape": [2, 3], "spatial_scale": 0.5},
     [floats(2, 3, 7, 9), np.array([[0, 0, 0, 4, 6], [1, 2, 1, 18, 9]], np.float32)], 1),
    ("Hardmax", "", 11, {"axis": 1}, [floats(2, 3, 4)], 1),
    # com.microsoft
    ("Gelu", MS, 1, {}, [floats(3, 5)], 1),
    ("BiasGelu", MS, 1, {}, [floats(3, 5), floats(5, seed=1)], 1),
    ("FastGelu", MS, 1, {}, [floats(3, 5), floats(5, seed=1)], 1),
    ("QuickGelu", MS, 1, {"alpha": 1.5}, [floats(3, 5)], 1),
    ("FusedMatMul", MS, 1, {"transA": 1, "alpha": 0.5}, [floats(2, 5, 3), floats(2, 5, 4)], 1),
    ("FusedConv", MS, 1, {"activation": "Relu"}, [floats(1, 2, 5, 5), floats(3, 2, 3, 3)], 1),
    ("FusedGemm", MS, 1, {"activation": "Relu", "transB": 1},
     [floats(3, 5), floats(4, 5), floats(4)], 1),
    ("QLinearAdd", MS, 1, {}, [whole(3, 5), SCALE, ZERO, whole(3, 5), SCALE, ZERO, SCALE, ZERO], 1),
    ("QLinearMul", MS, 1, {}, [whole(3, 5), SCALE, ZERO, whole(3, 5), SCALE, ZERO, SCALE, ZERO], 1),
    ("QLinearSigmoid", MS, 1, {}, [whole(3, 5), SCALE, ZERO, SCALE, ZERO], 1),
    ("QLinearLeakyRelu", MS, 1, {"alpha": 0.1}, [whole(3, 5), SCALE, ZERO, SCALE, ZERO], 1),
    ("QLinearAveragePool", MS, 1, {"kernel_shape": [2, 2]},
     [whole(1, 2, 5, 5), SCALE, ZERO, SCALE, ZERO], 1),
    ("QLinearGlobalAveragePool", MS, 1, {}, [whole(1, 2, 5, 5), SCALE, ZERO, SCALE, ZERO], 1),
    ("QLinearConcat", MS, 1, {"axis": 1},
     [SCALE, ZERO, whole(3, 5), SCALE, ZERO, whole(3, 2), SCALE, ZERO], 1),
    ("QLinearConv", MS, 1, {"pads": [1, 1, 1, 1]},
     [whole(1, 2, 5, 5), SCALE, ZERO, whole(3, 2, 3, 3), SCALE, ZERO, SCALE, ZERO], 1),
    ("QLinearWhere", MS, 1, {},
     [whole(3, 5) > 99, whole(3, 5), SCALE, ZERO, whole(3, 5), SCALE, ZERO, SCALE, ZERO], 1),
    ("MatMulIntegerToFloat", MS, 1, {}, [whole(3, 5), whole(5, 4), SCALE, SCALE, ZERO, ZERO], 1),
    ("DynamicQuantizeMatMul", MS, 1, {}, [floats(3, 5), whole(5, 4), SCALE, ZERO], 1),
    ("SkipLayerNormalization", MS, 1, {}, [floats(2, 3, 5), floats(2, 3, 5, seed=1), floats(5)], 1),
    ("MatMulNBits", MS, 1, {"N": 3, "K": 32, "block_size": 16},
     [floats(2, 32), whole(3, 2, 8), floats(6)], 1),
    ("MatMulBnb4", MS, 1, {"N": 3, "K": 32, "block_size": 16, "quant_type": 1},
     [floats(2, 32), whole(48), floats(6)], 1),
    ("GatherBlockQuantized", MS, 1, {"block_size": 16, "quantize_axis": 1},
     [whole(5, 16), np.array([3, 0]), floats(5, 2)], 1),
    ("GatherND", MS, 1, {}, [floats(3, 4), np.array([[0, 1], [2, 3]])], 1),
    ("Pad", MS, 1, {}, [floats(3, 4), np.array([1, 0, 0, 2]), np.array([7], np.float32)], 1),
    ("Range", MS, 1, {}, [np.array(2), np.array(11), np.array(3)], 1),
    ("Unique", MS, 1, {}, [np.array([2, 1, 1, 3], np.float32)], 3),
    ("ExpandDims", MS, 1, {}, [floats(3, 4), np.array(-1, np.int32)], 1),
    ("GridSample", MS, 1, {}, [floats(1, 2, 5, 4), floats(1, 3, 3, 2)], 1),
    ("Inverse", MS, 1, {}, [floats(2, 3, 3)], 1),
    ("UnfoldTensor", MS, 1, {"dim": 1, "size": 3, "step": 2}, [floats(2, 8, 3)], 1),
    ("Trilu", MS, 1, {}, [floats(3, 4)], 1),
    ("CDist", MS, 1, {"metric": "euclidean"}, [floats(3, 4), floats(5, 4)], 1),
    ("MultiHeadAttention", MS, 1, {"num_heads": 2},
     [floats(1, 3, 8), floats(1, 4, 8), floats(1, 4, 8)], 1),
    ("MoE", MS, 1, {"k": 2, "activation_type": "silu", "normalize_routing_weights": 1},
     [floats(5, 4), floats(5, 3, seed=1), floats(3, 8, 4), floats(3, 8), floats(3, 4, 8),
      floats(3, 4)], 1),
    ("QMoE", MS, 1, {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "block_size": 16,
                     "weights_prepacked": 0},
     [floats(5, 32), floats(5, 3, seed=1), whole(3, 32, 16), floats(3, 32, 2), floats(3, 32),
      whole(3, 32, 8), floats(3, 32, 1), floats(3, 32)], 1),
    ("LinearAttention", MS, 1, {"q_num_heads": 2, "kv_num_heads": 1},
     [floats(1, 3, 8), floats(1, 3, 4, seed=1), floats(1, 3, 5), None, -abs(floats(1, 3, 1)),
      abs(floats(1, 3, 1))], 2),
    ("CausalConvWithState", MS, 1, {"activation": "silu"},
     [floats(2, 3, 5), floats(3, 1, 4, seed=1), floats(3), floats(2, 3, 3)], 2),
    ("GatedRMSNorm", MS, 1, {}, [floats(2, 3, 8), floats(4), floats(2, 3, 8, seed=1)], 1),
    ("MRotaryEmbedding", MS, 1, {"mrope_section": [1, 1, 0]},
     [floats(1, 2, 3, 4), np.array([[[0, 1, 2]], [[1, 1, 0]], [[2, 0, 1]]]), floats(5, 2),
      floats(5, 2, seed=1)], 1),
    # ai.onnx.ml
    ("Scaler", ML, 3, {"offset": [0.1, 0.2], "scale": [2.0, 3.0]}, [floats(3, 2)], 1),
    ("Normalizer", ML, 3, {"norm": "L2"}, [floats(3, 4)], 1),
    ("Imputer", ML, 3, {"imputed_value_floats": [1.0], "replaced_value_float": 0.0},
     [floats(3, 4)], 1),
    ("FeatureVectorizer", ML, 3, {"inputdimensions": [3, 2]}, [floats(4, 3), floats(4, 2)], 1),
    ("OneHotEncoder", ML, 3, {"cats_int64s": [5, 2, 9]}, [np.array([[1, 5], [9, 2]])], 1),
    ("LinearRegressor", ML, 3, {"coefficients": WEIGHTS, "targets": 3}, [floats(4, 3)], 1),
    ("LinearClassifier", ML, 3, {"coefficients": WEIGHTS, "intercepts": [0.1, 0.2, 0.3],
                                 "classlabels_ints": [4, 5, 9]}, [floats(4, 3)], 2),
]
