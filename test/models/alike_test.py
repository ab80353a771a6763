"""Models of many groups that differ in numbers only, which are compiled as one function."""

import heddle
import numpy as np
import onnx
import pytest
from command import heddle as run_heddle
from command import needs_heddle  # noqa: E402
from heddle.onnx_graph import make_model, make_node, make_value
from onnx import TensorProto

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
        return ([make_node("Equal", f"x c{k}", f"is{k}"),
                 make_node("Where", f"is{k} d{k} x", f"y{k}")],
                {f"c{k}": number(dtype), f"d{k}": number(dtype)})
    if kind == "slice":
        start = np.array([random.integers(0, shape[1] - 3)])
        return ([make_node("Slice", f"x b{k} e{k} axis", f"y{k}")],
                {f"b{k}": start, f"e{k}": start + 3, "axis": np.array([1])})
    if kind == "pad":
        return ([make_node("Pad", f"x widths c{k}", f"y{k}")],
                {"widths": np.array([1, 2, 0, 3]), f"c{k}": number(dtype)})
    if kind == "gather":
        places = random.integers(0, shape[1], 5)
        return [make_node("Gather", f"x i{k}", f"y{k}", axis=1)], {f"i{k}": places}
    return [make_node(kind, f"x c{k}", f"y{k}")], {f"c{k}": number(dtype)}


def alike(kind, dtype, shape, count):
    nodes, constants = [], {}
    for k in range(count):
        made, own = branch(kind, dtype, shape, k)
        nodes += made
        constants |= own
    outputs = [make_value(f"y{k}", None, TYPES[dtype]) for k in range(count)]
    return make_model(nodes, [make_value("x", shape, TYPES[dtype])], outputs, constants, opset=18)


MOVES = "slice", "pad", "gather"  # keep the sign of a zero, which arithmetic may lose
CASES = [(kind, dtype) for kind in ("Add", "Mul", "Max", "where", *MOVES) for dtype in TYPES
         if not (kind in ("Add", "Mul", "Max") and dtype in ("u1", "i1"))]


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
                if kind in MOVES:
                    signs = np.signbit(found) == np.signbit(expected)
                    assert np.all(signs | np.isnan(found)), k


def products(dtype, shape, count):
    """Layers with weights, zero points and scales, or upper limits, of their own."""
    nodes, constants, outputs = [], {}, []
    for k in range(count):
        constants[f"w{k}"] = random.integers(-5, 6, [shape[1], 24]).astype(np.int8)
        constants[f"c{k}"] = np.float32(random.uniform(0.01, 1))
        if dtype == "u1":
            constants[f"z{k}"] = np.uint8(random.integers(256))
            nodes += [make_node("MatMulInteger", f"x w{k} z{k}", f"i{k}"),
                      make_node("Cast", f"i{k}", f"m{k}", to=TensorProto.FLOAT)]
        else:
            constants[f"w{k}"] = constants[f"w{k}"].astype(np.float32)
            nodes.append(make_node("MatMul", f"x w{k}", f"m{k}"))
        nodes.append(make_node("Mul" if dtype == "u1" else "Min", f"m{k} c{k}", f"y{k}"))
        outputs.append(make_value(f"y{k}", None))
    return make_model(nodes, [make_value("x", shape, TYPES[dtype])], outputs, constants, opset=18)


@pytest.mark.parametrize("dtype", ["f4", "u1"])
def test_each_product_has_its_own_number(dtype):
    for _ in range(3):
        shape = [int(size) for size in random.integers(1, 70, 2)]
        model = products(dtype, shape, 6).SerializeToString()
        x = random.integers(0, 256, shape).astype(dtype)
        wanted = ort.InferenceSession(model).run(None, {"x": x})
        session = heddle.Session(heddle.compile(model))
        for _ in range(2):
            for found, expected in zip(session.run(None, {"x": x}), wanted):
                np.testing.assert_allclose(found, expected, rtol=1e-6)


def encoders(count):
    """Pairs of tables, one looked up after the other: kernels of several phases."""
    nodes, domain = [], "ai.onnx.ml"
    for k in range(count):
        keys, middle = (random.choice(300, random.integers(66, 120), replace=False)
                        for _ in range(2))
        values = random.choice(middle, len(keys))
        nodes += [make_node("LabelEncoder", "x", f"m{k}", domain=domain, keys_int64s=keys,
                            values_int64s=values, default_int64=-1),
                  make_node("LabelEncoder", f"m{k}", f"y{k}", domain=domain, keys_int64s=middle,
                            default_float=float(k),
                            values_floats=random.standard_normal(len(middle)))]
    return make_model(nodes, {"x": (["n", 3], TensorProto.INT64)},
                      {f"y{k}": None for k in range(count)}, opset=18, domains={domain: 3})


def test_each_table_has_its_own_numbers():
    for _ in range(3):
        model = encoders(9).SerializeToString()
        x = random.integers(-5, 310, (40, 3))
        wanted = ort.InferenceSession(model).run(None, {"x": x})
        for found, expected in zip(heddle.compile(model).run(None, {"x": x}), wanted):
            np.testing.assert_array_equal(found, expected)


@needs_heddle
@pytest.mark.parametrize(("make", "most"), [
    (lambda: alike("slice", "f4", [9, 60], 40), 4), (lambda: products("f4", [9, 60], 8), 4),
    (lambda: products("u1", [9, 60], 8), 4), (lambda: encoders(12), 30)],
    ids=["slice", "f4", "u1", "encoders"])
def test_groups_that_differ_in_numbers_are_one_function(make, most, tmp_path):
    onnx.save(make(), tmp_path / "m.onnx")
    made = tmp_path / "m.ll"
    run_heddle("compile", tmp_path / "m.onnx", "-o", made, "--emit", "ll", "-O0")
    kernels = [line for line in made.read_text().splitlines()
               if line.startswith("define") and "@kernel_" in line]
    assert 1 <= len(kernels) <= most, kernels
