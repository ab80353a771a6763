"""Models of f16 and bf16: computed as f32, rounded where they leave, or op by op."""

import ml_dtypes
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node, make_value
from onnx import TensorProto, numpy_helper

import heddle

pytestmark = pytest.mark.usefixtures("compiler")
TYPES = {"float16": (np.float16, TensorProto.FLOAT16, 2e-3),
         "bfloat16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16, 2e-2)}


def model_of(dtype, nodes, sizes, constants=(), outputs=("y",)):
    number = TYPES[dtype][1]
    return make_model(nodes, [make_value("x", sizes, number)],
                      [make_value(name, None, number) for name in outputs],
                      {name: value.astype(TYPES[dtype][0]) for name, value in constants}, opset=22)


@pytest.mark.parametrize("math", ["fast", "strict"])
@pytest.mark.parametrize("target", ["host", "x86-64-v2"])
@pytest.mark.parametrize("dtype", TYPES)
def test_networks(dtype, target, math):
    random = np.random.default_rng(1)
    w = random.uniform(-0.3, 0.3, (20, 6, 3, 3))
    v = random.uniform(-0.2, 0.2, (20, 33))
    nodes = [make_node("Conv", "x w", "c", pads=[1, 1, 1, 1]), make_node("Relu", "c", "r"),
             make_node("GlobalAveragePool", "r", "p"), make_node("Flatten", "p", "f"),
             make_node("MatMul", "f v", "m"), make_node("Softmax", "m", "y", axis=-1)]
    model = model_of(dtype, nodes, ["n", 6, 9, 7], [("w", w), ("v", v)])
    kind, _, tolerance = TYPES[dtype]
    module = heddle.compile(model, target=target, math=math)
    for rows in (0, 1, 3):
        x = random.uniform(-1, 1, (rows, 6, 9, 7)).astype(kind)
        (y,) = module.run(None, {"x": x})
        padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        hidden = np.einsum("nchwij,ocij->nohw", windows, w.astype(kind).astype(float)).clip(0)
        logits = hidden.mean((2, 3)) @ v.astype(kind).astype(float)
        powers = np.exp(logits)
        expected = powers / powers.sum(-1, keepdims=True)
        assert y.dtype == kind
        np.testing.assert_allclose(y.astype(float), expected, rtol=tolerance * 2, atol=tolerance)


def test_only_strict_math_rounds_in_between():
    nodes = [make_node("Mul", "x k", "a"), make_node("Mul", "a k", "b"),
             make_node("Div", "b k", "c"), make_node("Div", "c k", "y")]
    model = model_of("float16", nodes, [3], [("k", np.array(300.0))], ["y", "b"])
    x = np.array([1, 2, np.nan], np.float16)
    y, b = heddle.compile(model).run(None, {"x": x})
    np.testing.assert_allclose(y, x, rtol=1e-3)
    np.testing.assert_array_equal(b, np.array([np.inf, np.inf, np.nan], np.float16))
    y, b = heddle.compile(model, math="strict").run(None, {"x": x})
    np.testing.assert_array_equal(y, np.array([np.inf, np.inf, np.nan], np.float16))


def test_a_cast_of_the_model_rounds():
    nodes = [make_node("Cast", "x", "wide", to=TensorProto.FLOAT), make_node("Mul", "wide k", "a"),
             make_node("Cast", "a", "y", to=TensorProto.FLOAT16)]
    model = model_of("float16", nodes, [2])
    model.graph.initializer.append(numpy_helper.from_array(np.array(1 / 3, np.float32), "k"))
    model.graph.node.append(make_node("Mul", "y y", "z"))
    model.graph.output.append(make_value("z", None, TensorProto.FLOAT16))
    x = np.array([1, 100], np.float16)
    y, z = heddle.compile(model).run(None, {"x": x})
    third = (x.astype(np.float32) * np.float32(1 / 3)).astype(np.float16)
    np.testing.assert_array_equal(y, third)
    np.testing.assert_array_equal(z, (third.astype(np.float32) ** 2).astype(np.float16))
