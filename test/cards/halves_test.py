"""Models of f16 and bf16: computed as f32, rounded where they leave, or op by op."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import heddle  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler")
TYPES = {"float16": (np.float16, TensorProto.FLOAT16, 2e-3),
         "bfloat16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16, 2e-2)}


def model_of(dtype, nodes, sizes, constants=(), outputs=("y",)):
    number = TYPES[dtype][1]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", number, sizes)],
        [helper.make_tensor_value_info(name, number, None) for name in outputs],
        [numpy_helper.from_array(value.astype(TYPES[dtype][0]), name)
         for name, value in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


@pytest.mark.parametrize("math", ["fast", "strict"])
@pytest.mark.parametrize("target", ["host", "x86-64-v2"])
@pytest.mark.parametrize("dtype", TYPES)
def test_networks(dtype, target, math):
    random = np.random.default_rng(1)
    w = random.uniform(-0.3, 0.3, (20, 6, 3, 3))
    v = random.uniform(-0.2, 0.2, (20, 33))
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("GlobalAveragePool", ["r"], ["p"]),
             helper.make_node("Flatten", ["p"], ["f"]),
             helper.make_node("MatMul", ["f", "v"], ["m"]),
             helper.make_node("Softmax", ["m"], ["y"], axis=-1)]
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
    nodes = [helper.make_node("Mul", ["x", "k"], ["a"]), helper.make_node("Mul", ["a", "k"], ["b"]),
             helper.make_node("Div", ["b", "k"], ["c"]), helper.make_node("Div", ["c", "k"], ["y"])]
    model = model_of("float16", nodes, [3], [("k", np.array(300.0))], ["y", "b"])
    x = np.array([1, 2, np.nan], np.float16)
    y, b = heddle.compile(model).run(None, {"x": x})
    np.testing.assert_allclose(y, x, rtol=1e-3)
    np.testing.assert_array_equal(b, np.array([np.inf, np.inf, np.nan], np.float16))
    y, b = heddle.compile(model, math="strict").run(None, {"x": x})
    np.testing.assert_array_equal(y, np.array([np.inf, np.inf, np.nan], np.float16))


def test_a_cast_of_the_model_rounds():
    nodes = [helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT),
             helper.make_node("Mul", ["wide", "k"], ["a"]),
             helper.make_node("Cast", ["a"], ["y"], to=TensorProto.FLOAT16)]
    model = model_of("float16", nodes, [2])
    model.graph.initializer.append(numpy_helper.from_array(np.array(1 / 3, np.float32), "k"))
    model.graph.node.append(helper.make_node("Mul", ["y", "y"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT16, None))
    x = np.array([1, 100], np.float16)
    y, z = heddle.compile(model).run(None, {"x": x})
    third = (x.astype(np.float32) * np.float32(1 / 3)).astype(np.float16)
    np.testing.assert_array_equal(y, third)
    np.testing.assert_array_equal(z, (third.astype(np.float32) ** 2).astype(np.float16))
