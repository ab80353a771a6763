"""Counts, sums, squares and epsilons within one op of 16-bit floats, past the range and precision
of their type: judged by double precision, in both modes of arithmetic."""

import heddle
import ml_dtypes
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node, make_value
from onnx import TensorProto, helper

pytestmark = pytest.mark.usefixtures("compiler")

F16, BF16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
KINDS = {F16: TensorProto.FLOAT16, BF16: TensorProto.BFLOAT16}
COUNT = 70_000  # no f16 counts so far


def mean(x, axes):
    return x.mean(axes, keepdims=True)


def normalised(x, axes, epsilon=1e-5):
    centred = x - mean(x, axes)
    return centred / np.sqrt(mean(centred * centred, axes) + epsilon)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


# Constants that neither 16-bit type rounds.
PLACES = np.random.default_rng(5).integers(-12, 12, (1, COUNT, 8)) / 8
NUMBERS = np.random.default_rng(6).integers(8, 16, (1, COUNT, 8)) / 8


def attended(x):
    return softmax(x @ PLACES.swapaxes(-1, -2) / np.sqrt(8)) @ NUMBERS


def entropies(x):
    return -np.log(softmax(x))[:, 0].mean()


# op: its input's shape, numbers around which, opset, attributes, what it is of float64, constants:
# of float64 those of the input's type.
OPS = {
    "ReduceMean": ((2, COUNT), 1.5, 18, {}, lambda x: mean(x, (0, 1)), ()),
    "ReduceL1": ((2, 100), 1000, 18, {}, lambda x: np.abs(x).sum((0, 1), keepdims=True) / 16, ()),
    "ReduceL2": ((1, 64), 3000, 18, {}, lambda x: np.sqrt((x * x).sum((0, 1), keepdims=True)), ()),
    "ReduceLogSum": ((2, COUNT), 1.5, 18, {}, lambda x: np.log(x.sum((0, 1), keepdims=True)), ()),
    "ReduceLogSumExp": ((1, COUNT), 1.5, 18, {},
                        lambda x: np.log(np.exp(x).sum((0, 1), keepdims=True)), ()),
    "GlobalAveragePool": ((1, 2, 257, 257), 1.5, 22, {}, lambda x: mean(x, (2, 3)), ()),
    "AveragePool": ((1, 1, 260, 260), 1.5, 22, {"kernel_shape": [257, 257]},
                    lambda x: np.stack([[x[0, 0, i:i + 257, j:j + 257].mean() for j in range(4)]
                                        for i in range(4)])[None, None], ()),
    "InstanceNormalization": ((1, 2, 257, 257), 300, 22, {}, lambda x: normalised(x, (2, 3)),
                              (np.ones(2), np.zeros(2))),
    "LayerNormalization": ((1, COUNT), 300, 17, {}, lambda x: normalised(x, (1,)),
                           (np.ones(COUNT),)),
    "GroupNormalization": ((1, 4, 150, 150), 300, 21, {"num_groups": 1},
                           lambda x: normalised(x, (1, 2, 3)), (np.ones(4), np.zeros(4))),
    "BatchNormalization": ((2, 3, 5), 1e-3, 15, {}, lambda x: x / np.sqrt(1e-5),
                           (np.ones(3), np.zeros(3), np.zeros(3), np.zeros(3))),
    "MeanVarianceNormalization": ((2, 2, 200, 200), 300, 13, {},
                                  lambda x: normalised(x, (0, 2, 3), 0), ()),
    "LpNormalization": ((2, 300), 3000, 22, {},
                        lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True)), ()),
    "LRN": ((1, 5, 3, 3), 3000, 13, {"size": 5, "alpha": 1e-6},
            lambda x: x / (1 + 1e-6 / 5 * np.stack(
                [(x[:, max(0, c - 2):c + 3] ** 2).sum(1) for c in range(5)], 1)) ** 0.75, ()),
    "Softmax": ((2, COUNT), 0, 13, {}, softmax, ()),
    "LogSoftmax": ((2, COUNT), 0, 13, {}, lambda x: np.log(softmax(x)), ()),
    "ReduceSumSquare": ((2, COUNT), 0.05, 18, {}, lambda x: (x * x).sum((0, 1), keepdims=True),
                        ()),
    "LpPool": ((1, 1, 257, 257), 1.5, 22, {"kernel_shape": [257, 257]},
               lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True)), ()),
    "GlobalLpPool": ((1, 2, 257, 257), 1.5, 22, {},
                     lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True)), ()),
    "RMSNormalization": ((1, COUNT), 300, 23, {}, lambda x: x / np.sqrt(mean(x * x, 1)),
                         (np.ones(COUNT),)),
    "MatMul": ((1, COUNT), 1.5, 13, {}, lambda x: x.sum(1, keepdims=True) / 256,
               (np.full((COUNT, 1), 1 / 256),)),
    "Einsum": ((1, COUNT), 1.5, 12, {"equation": "ij,jk->ik"},
               lambda x: x.sum(1, keepdims=True) / 256, (np.full((COUNT, 1), 1 / 256),)),
    "Conv": ((1, 1, 257, 257), 1.5, 22, {}, lambda x: x.sum((2, 3), keepdims=True) / 256,
             (np.full((1, 1, 257, 257), 1 / 256),)),
    "NegativeLogLikelihoodLoss": ((COUNT, 2), -1.5, 13, {}, lambda x: -x[:, 0].mean(),
                                  (np.zeros(COUNT, np.int64),)),
    "SoftmaxCrossEntropyLoss": ((COUNT, 2), 1.5, 13, {}, entropies, (np.zeros(COUNT, np.int64),)),
    "Attention": ((1, 2, 8), 1, 23, {"q_num_heads": 1, "kv_num_heads": 1}, attended,
                  (PLACES, NUMBERS)),
    "com.microsoft.MultiHeadAttention": ((1, 2, 8), 1, 1, {"num_heads": 1}, attended,
                                         (PLACES, NUMBERS)),
    "com.microsoft.SkipLayerNormalization": (
        (1, COUNT), 300, 1, {"epsilon": 1e-5}, lambda x: normalised(x, (1,)),
        (np.zeros((1, COUNT)), np.ones(COUNT))),
    "com.microsoft.SimplifiedLayerNormalization": (
        (1, COUNT), 300, 1, {}, lambda x: x / np.sqrt(mean(x * x, 1)), (np.ones(COUNT),)),
    "com.microsoft.SkipSimplifiedLayerNormalization": (
        (1, COUNT), 300, 1, {}, lambda x: x / np.sqrt(mean(x * x, 1)),
        (np.zeros((1, COUNT)), np.ones(COUNT))),
    "com.microsoft.GroupNorm": (
        (1, 150, 150, 4), 300, 1, {"groups": 1, "activation": 0},
        lambda x: normalised(x, (1, 2, 3)), (np.ones(4, np.float32), np.zeros(4, np.float32))),
}
NO_BF16 = {"Einsum", "NegativeLogLikelihoodLoss"}  # says ONNX
KIND_OF = {"f": TensorProto.FLOAT, "l": TensorProto.INT64}


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("math", ["fast", "strict"])
@pytest.mark.parametrize("op, kind", [
    pytest.param(op, kind, id=f"{op}-{kind}") for op in OPS for kind in KINDS
    if kind == F16 or op not in NO_BF16])
def test_own_numbers_do_not_take_the_tensors_type(op, kind, math, is_dynamic):
    shape, around, opset, attributes, exact, constants = OPS[op]
    spread = around * 0.2 or 0.01
    x = (around + np.random.default_rng(3).standard_normal(shape) * spread).astype(kind)
    if op == "ReduceL1":
        x = (x / 16).astype(kind)
    sizes = [f"d{i}" for i in range(len(shape))] if is_dynamic else list(shape)
    fixed = {"GroupNormalization": 1, "LayerNormalization": 1, "BatchNormalization": 1,
             "RMSNormalization": 1, "MatMul": 1, "Einsum": 1, "Conv": 1, "Attention": 2,
             "com.microsoft.MultiHeadAttention": 2, "com.microsoft.GroupNorm": 3}
    if op in fixed or constants and len(shape) == 2:
        sizes[fixed.get(op, 1):] = shape[fixed.get(op, 1):]
    names = [f"c{i}" for i in range(len(constants))]
    domain, _, name = op.rpartition(".")
    node = make_node(name, ["x", *names], "y", domain=domain, **attributes)
    given = [helper.make_tensor(name, KIND_OF.get(value.dtype.char, KINDS[kind]), value.shape,
                                value.flatten().tolist())
             for name, value in zip(names, constants, strict=True)]
    model = make_model([node], {"x": (sizes, KINDS[kind])}, [make_value("y", None, KINDS[kind])],
                       given, domains={domain: opset})
    y, = heddle.compile(model, cache=False, math=math, threads=1).run(None, {"x": x})
    wanted = exact(x.astype(np.float64))
    if op == "ReduceL1":
        wanted = wanted * 16
    # One rounding of the result, and one of the parts that an op may round on its way.
    bound = 3 * float(ml_dtypes.finfo(kind).eps)
    np.testing.assert_allclose(y.astype(np.float64), wanted, rtol=bound,
                               atol=bound * min(1, np.abs(wanted).max()))
