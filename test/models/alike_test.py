"""Models of many groups that differ in numbers only, which are compiled as one function."""

import heddle
import numpy as np
import onnx
import pytest
from command import heddle as run_heddle
from command import needs_heddle
from onnx import TensorProto, helper, numpy_helper

ort = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.usefixtures("compiler")
random = np.random.default_rng(11)
TYPES = {"f4": TensorProto.FLOAT, "f8": TensorProto.DOUBLE, "f2": TensorProto.FLOAT16,
         "i4": TensorProto.INT32, "i8": TensorProto.INT64, "u1": TensorProto.UINT8,
         "i1": TensorProto.INT8}
EXTREMES = {"f": [-0.0, np.nan, np.inf, -np.inf, 1e-30], "i": [-1], "u": [255]}


def number(dtype):
    """A number of the type, at times one that is easily lost on the way through a word."""
    special = EXTREMES[np.dtype(dtype).kind]
    if dtype == "f8":
        special = special + [1 + 2.0**-52]
    if dtype == "i8":
        special = special + [-2**63, 2**63 - 1]
    if random.random() < 0.3:
        return np.array(special[random.integers(len(special))], dtype)
    lowest, highest = (0, 200) if dtype == "u1" else (-100, 100)
    return np.array(random.uniform(lowest, highest)).astype(dtype)


def branch(kind, dtype, shape, k):
    """Nodes and constants of one of the alike groups, from "x" to f"y{k}"."""
    if kind == "where":
        return ([helper.make_node("Equal", ["x", f"c{k}"], [f"is{k}"]),
                 helper.make_node("Where", [f"is{k}", f"d{k}", "x"], [f"y{k}"])],
                {f"c{k}": number(dtype), f"d{k}": number(dtype)})
    if kind == "slice":
        start = np.array([random.integers(0, shape[1] - 3)])
        return ([helper.make_node("Slice", ["x", f"b{k}", f"e{k}", "axis"], [f"y{k}"])],
                {f"b{k}": start, f"e{k}": start + 3, "axis": np.array([1])})
    if kind == "pad":
        return ([helper.make_node("Pad", ["x", "widths", f"c{k}"], [f"y{k}"])],
                {"widths": np.array([1, 2, 0, 3]), f"c{k}": number(dtype)})
    if kind == "gather":
        places = random.integers(0, shape[1], 5)
        return [helper.make_node("Gather", ["x", f"i{k}"], [f"y{k}"], axis=1)], {f"i{k}": places}
    return [helper.make_node(kind, ["x", f"c{k}"], [f"y{k}"])], {f"c{k}": number(dtype)}


def alike(kind, dtype, shape, count):
    nodes, constants = [], {}
    for k in range(count):
        made, own = branch(kind, dtype, shape, k)
        nodes += made
        constants |= own
    outputs = [helper.make_tensor_value_info(f"y{k}", TYPES[dtype], None) for k in range(count)]
    graph = helper.make_graph(
        nodes, kind, [helper.make_tensor_value_info("x", TYPES[dtype], shape)], outputs,
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


CASES = [(kind, dtype) for kind in ("Add", "Mul", "Max", "where", "slice", "pad", "gather")
         for dtype in TYPES if not (kind in ("Add", "Mul", "Max") and dtype in ("u1", "i1"))]


@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_each_has_its_own_numbers(kind, dtype):
    for _ in range(2):
        shape = [int(size) for size in random.integers(1, 40, 2) + [0, 3]]
        model = alike(kind, dtype, shape, 7)
        x = np.array([number(dtype) for _ in range(shape[0] * shape[1])], dtype).reshape(shape)
        wanted = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})
        session = heddle.Session(heddle.compile(model.SerializeToString(), math="strict"))
        for _ in range(2):
            for k, (found, expected) in enumerate(zip(session.run(None, {"x": x}), wanted)):
                np.testing.assert_array_equal(found, expected, err_msg=f"output {k}")
                signs = np.signbit(found) == np.signbit(expected)
                assert np.all(signs | np.isnan(found)), k


@needs_heddle
def test_groups_that_differ_in_numbers_are_one_function(tmp_path):
    onnx.save(alike("slice", "f4", [9, 60], 40), tmp_path / "m.onnx")
    made = tmp_path / "m.ll"
    run_heddle("compile", tmp_path / "m.onnx", "-o", made, "--emit", "ll", "-O0")
    kernels = [line for line in made.read_text().splitlines()
               if line.startswith("define") and "@kernel_" in line]
    assert len(kernels) <= 4, kernels
