"""Refusals of the importer: each message names what was found and what is allowed."""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node

PREVIEW, ML, MS = "ai.onnx.preview", "ai.onnx.ml", "com.microsoft"
X3, X4 = np.zeros((2, 4, 6), np.float32), np.zeros((1, 3, 5, 5), np.float32)
ROW, INDEX = np.zeros(3, np.float32), np.zeros(3, np.int64)
MANY = np.broadcast_to(np.int64(0), 2**31 - 1)  # no memory: its shape and type alone are asked for

CASES = [
    ("Attention", "", [X3, X3, X3], {}, "inputs of rank 3 need the attribute 'q_num_heads'"),
    ("Attention", "", [X3, X3, X3], {"q_num_heads": 4, "kv_num_heads": 3},
     "a last dimension of 6 cannot be split into 4 heads"),
    ("Attention", "", [X3, X3, X3], {"q_num_heads": 3, "kv_num_heads": 2},
     "3 query heads cannot share 2 key heads"),
    ("Attention", "", [X3, X3, X3],
     {"q_num_heads": 3, "kv_num_heads": 3, "qk_matmul_output_mode": 7},
     "'qk_matmul_output_mode' is 7, but must be 0, 1, 2 or 3"),
    ("FlexAttention", PREVIEW, [X3, X3, X3], {}, "input 0 must have rank 4, but has 3"),
    ("LinearAttention", "", [X3, X3, X3], {"q_num_heads": 2, "kv_num_heads": 2},
     "rule 'gated_delta' needs 'decay'"),
    ("RotaryEmbedding", "", [X3, X3, X3], {},
     "an input of rank 3 needs the attribute 'num_heads'"),
    ("CausalConvWithState", "", [X3, X3[:, :, :0]], {}, "the weight has no positions"),
    ("DeformConv", "", [np.zeros(s, np.int32) for s in ((1, 3, 5, 5), (1, 3, 1, 1), (1, 2, 5, 5))],
     {}, "input 0 ('X') has element type INT32, but DeformConv takes FLOAT, FLOAT16, DOUBLE"),
    ("Add", "", [ROW, INDEX], {}, "input 1 ('B') has element type INT64, but must have that of "
     "input 0, FLOAT"),
    ("Add", "", [ROW], {}, "the node has 1 inputs, but Add takes 2"),
    ("Relu", "", [ROW], {"alpa": 1.0}, "attribute 'alpa' is unknown to Relu of opset"),
    ("LeakyRelu", "", [ROW], {"alpa": 1.0}, "did you mean 'alpha'?"),
    ("LeakyRelu", "", [ROW], {"alpha": 1},
     "attribute 'alpha' has type INT, but must have type FLOAT"),
    ("Einsum", "", [ROW], {}, "attribute 'equation' is missing"),
    ("ConvTranspose", "", [X4, X4], {"output_shape": [1]}, "'output_shape' has 1 entries"),
    ("TensorScatter", "", [X3, X3], {"mode": "round"},
     "'mode' is 'round', but must be 'linear' or 'circular'"),
    ("NegativeLogLikelihoodLoss", "", [X3, INDEX], {},
     "scores of rank 3 do not fit targets of rank 1"),
    ("SoftmaxCrossEntropyLoss", "", [X3[0], INDEX[:2]], {"reduction": "max"},
     "'reduction' is 'max', but must be 'none', 'sum' or 'mean'"),
    ("GridSample", "", [X4, X3], {}, "does not fit a grid of shape [2, 4, 6]"),
    ("RoiAlign", "", [X3, X3[0], INDEX], {}, "the ranks must be 4, 2 and 1, but are 3, 2 and 1"),
    ("DeformConv", "", [X4, X4, X3], {},
     "input, filters and offsets must have one rank, at least 3"),
    ("DFT", "", [X3], {}, "must be 1 or 2, for real or complex numbers, but is 6"),
    ("STFT", "", [X3[:, :, :1], np.array(2)], {},
     "either 'window' or 'frame_length' must be given"),
    ("Det", "", [ROW], {}, "the input must have rank 2 or more, but has 1"),
    ("Einsum", "", [X3], {"equation": "ij->i"}, "term 'ij' does not fit an input of rank 3"),
    ("Einsum", "", [X3], {"equation": "ijk->iz"}, "has a letter that no term has"),
    ("BitCast", "", [ROW], {"to": 7}, "elements of f32 and i64 have different numbers of bits"),
    ("DequantizeLinear", "", [np.zeros((4, 6), np.int8), np.ones(6, np.float32)],
     {"block_size": 2}, "scales of shape [6] do not fit blocks of 2 along axis 1 of [4, 6]"),
    ("DequantizeLinear", "", [np.zeros((4, 6), np.int8), np.ones(6, np.float32)], {"axis": 0},
     "a scale or zero point has 6 numbers, but axis 0 of [4, 6] has 4"),
    ("QuantizeLinear", "", [np.zeros((4, 6), np.float32), np.ones(4, np.float32)], {"axis": -1},
     "a scale or zero point has 4 numbers, but axis 1 of [4, 6] has 6"),
    ("LinearRegressor", ML, [X3[0]], {"coefficients": [1.0] * 12, "targets": 2,
                                      "intercepts": [1.0]},
     "'intercepts' has 1 entries, but 'targets' is 2"),
    ("OneHotEncoder", ML, [INDEX], {"cats_int64s": [5, 5, 9]}, "the category 5 is given twice"),
    ("DepthToSpace", "", [np.zeros((1, 4, 2, 2), np.float32)], {"blocksize": 2, "mode": ""},
     "'mode' is '', but must be 'DCR' or 'CRD'"),
    ("ConvTranspose", "", [X4, np.zeros((3, 2, 3, 3), np.float32)], {"auto_pad": "SAME"},
     "'auto_pad' is 'SAME', but must be 'NOTSET', 'VALID', 'SAME_UPPER' or 'SAME_LOWER'"),
    ("SkipLayerNormalization", MS, [X3[:1], X3, np.ones(6, np.float32)], {},
     "size 2 cannot broadcast to 1"),
    ("EyeLike", "", [X3[0]], {"dtype": 8}, "output 0 ('output') would have element type STRING"),
    ("MeanVarianceNormalization", "", [X4], {"axes": [1, -3]}, "axis 1 is given twice"),
    ("ScatterND", "", [X3[0], INDEX[:, None], X3[0][:3]], {"reduction": ""},
     "'reduction' is '', but must be 'none', 'add', 'mul', 'max' or 'min'"),
    ("GatherBlockQuantized", MS, [np.zeros((5, 16), np.uint8), INDEX,
                                  np.ones((5, 2), np.float32), np.ones((5, 2), np.float32)],
     {"block_size": 16, "quantize_axis": 1},
     "the zero points have element type f32, but must have that of the data"),
    ("LinearRegressor", ML, [X3[0]], {"coefficients": [1.0] * 5, "targets": 2},
     "'coefficients' has 5 entries, but needs a multiple of 2"),
    ("SVMRegressor", ML, [X3[0]],
     {"coefficients": [1.0], "support_vectors": [1.0] * 6, "n_supports": 1, "rho": [0.0],
      "kernel_type": "WAVE"}, "'kernel_type' is 'WAVE'"),
    ("Normalizer", ML, [X3[0]], {"norm": "L3"}, "'norm' is 'L3', but must be 'MAX', 'L1' or 'L2'"),
    ("TreeEnsembleRegressor", ML, [X3[0]], {}, "the lists 'nodes_...' must have one length"),
    ("MultiHeadAttention", MS, [X3, X3, X3], {}, "'num_heads' is 0, but must be at least 1"),
    ("GroupQueryAttention", MS, [X3, X3, X3, X4, X4, INDEX, INDEX],
     {"num_heads": 3, "kv_num_heads": 2}, "'kv_num_heads' is 2, but must divide 'num_heads', 3"),
    ("MatMulNBits", MS, [X3, INDEX, ROW], {"N": 1, "K": 6, "block_size": 16, "bits": 5},
     "'bits' 2, 4 or 8"),
    ("Expand", "", [ROW, np.zeros(17, np.int64)], {},
     "the result has rank 17, but at most 16 is supported"),
    ("Unsqueeze", "", [ROW, np.zeros(17, np.int64)], {}, "the result has rank 18, but at most 16"),
    ("Split", "", [ROW, INDEX[0]], {}, "'split' must be a vector, but has the shape []"),
    ("Split", "", [ROW[0], INDEX], {}, "an operand has rank 0, but needs rank 1 or more"),
    ("Col2Im", "", [X3, np.zeros(65, np.int64), INDEX], {},
     "'image_shape' has 65 entries, but must have 1 to 7"),
    ("Col2Im", "", [X3, INDEX[:0], INDEX[:0]], {},
     "'image_shape' has 0 entries, but must have 1 to 7"),
    ("Col2Im", "", [X3, INDEX[:2], INDEX], {},
     "'image_shape' and 'block_shape' have 2 and 3 entries, but must have as many"),
    ("Col2Im", "", [X3, INDEX[0], INDEX], {}, "'image_shape' must be a vector"),
    ("Slice", "", [X3, MANY, MANY], {}, "'starts' has 2147483647 entries for rank 3"),
    ("Slice", "", [ROW, INDEX[0], INDEX[0]], {}, "'starts' must be a vector"),
    ("Pad", "", [ROW, INDEX[0]], {}, "'pads' must be a vector"),
    ("CenterCropPad", "", [ROW, INDEX[0]], {}, "'shape' must be a vector"),
    ("AffineGrid", "", [X3, INDEX[0]], {}, "'size' must be a vector"),
    ("AffineGrid", "", [X3[0], INDEX], {}, "'theta' must have rank 3"),
]


@pytest.mark.parametrize("op, domain, inputs, attributes, message", CASES,
                         ids=[f"{case[0]}-{i}" for i, case in enumerate(CASES)])
def test_refuses(op, domain, inputs, attributes, message):
    feeds = {f"x{i}": array for i, array in enumerate(inputs)}
    model = make_model([make_node(op, list(feeds), "y", domain=domain, name="it", **attributes)],
                       feeds, "y", opset=27, domains={PREVIEW: 1, MS: 1, ML: 4})
    with pytest.raises(heddle.RefusedError) as refusal:
        heddle.compile(model)
    assert f"node 'it' ({op})" in str(refusal.value)
    assert message in str(refusal.value)


W = np.zeros((2, 3, 3, 3), np.float32)


@pytest.mark.parametrize("nodes, rank", [
    ([make_node("Conv", "x w", "y")], 4),
    ([make_node("Cast", "x", "v", to=1), make_node("Relu", "v", "r"),
      make_node("Conv", "r w", "y")], 4),
    ([make_node("MaxPool", "x", "y", kernel_shape=[2])], 3),
    ([make_node("Transpose", "x", "y", perm=[0, 2, 1])], 3),
    ([make_node("Gemm", "x x", "y", transB=1)], 2),
    ([make_node("Concat", "x w image", "y", axis=0)], None)])
def test_an_input_without_a_shape(nodes, rank):
    """Has the rank that the nodes which read it allow, or is refused with a way out."""
    model = make_model(nodes, {"x": None}, "y", {"w": W, "image": W[0]}, opset=21)
    if rank is None:
        with pytest.raises(heddle.RefusedError, match="rank of input 'x' is not.*\n.*--shape x="):
            heddle.compile(model, cache=False)
        return
    module = heddle.compile(model, cache=False)
    assert len(module.inputs[0].shape) == rank
    heddle.Session(module, threads=1).run(None, {"x": np.ones((3, 3, 4, 4)[:rank], np.float32)})
