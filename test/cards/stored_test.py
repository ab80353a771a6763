"""Weights in fewer bits, which products read as they are: DequantizeLinear, MatMulNBits, Cast."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node, make_value
from onnx import TensorProto, numpy_helper

import heddle

pytestmark = pytest.mark.usefixtures("compiler")
DEPTH, COLUMNS = 192, 203  # whole blocks, but no whole panel
RANGES = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128), "uint8": (0, 256)}


def weights_of(random, dtype, blocks, zero):
    """(codes, scales, zeros, the numbers that they stand for); blocks None: one scale a column."""
    low, high = RANGES[dtype]
    codes = random.integers(low, high, (DEPTH, COLUMNS))
    scales = random.uniform(0.01, 0.02, (blocks or 1, COLUMNS)).astype(np.float32)
    if zero == "each":
        zeros = random.integers(low, high, scales.shape)
    else:
        zeros = np.full(scales.shape, {"none": 0, "same": (low + high + 3) // 2}[zero])
    block = DEPTH // (blocks or 1)
    numbers = (codes - zeros.repeat(block, 0)) * scales.repeat(block, 0)
    return codes, scales, zeros, numbers


def tensor(name, values, dtype):
    values = np.ascontiguousarray(values).astype(getattr(ml_dtypes, dtype, dtype))
    return numpy_helper.from_array(values, name)


def model_of(nodes, constants, rows):
    return make_model(nodes, {"x": [rows, DEPTH]}, {"y": None}, constants, opset=21,
                      domains={"com.microsoft": 1})


def dequantised(codes, scales, zeros, dtype, blocks, zero, transposed, rows):
    """MatMul of x by DequantizeLinear's result, or by its transpose."""
    axis = 1 if transposed else 0
    attributes = {"axis": axis, "block_size": DEPTH // blocks} if blocks else {"axis": 1 - axis}
    side = (lambda value: value.T) if transposed else (lambda value: value)
    flat = (lambda value: side(value)) if blocks else (lambda value: value[0])
    constants = [tensor("w", side(codes), dtype), tensor("s", flat(scales), "float32")]
    names = ["w", "s"]
    if zero != "none":
        constants.append(tensor("z", flat(zeros), dtype))
        names.append("z")
    nodes = [make_node("DequantizeLinear", names, "d", **attributes)]
    if transposed:
        nodes.append(make_node("Transpose", "d", "t", perm=[1, 0]))
    nodes.append(make_node("MatMul", ["x", "t" if transposed else "d"], "y"))
    return model_of(nodes, constants, rows)


def check(module, numbers, random, counts):
    for rows in counts:
        x = random.uniform(-1, 1, (rows, DEPTH)).astype(np.float32)
        if rows > 3:  # stay in their rows
            x[1, 5], x[2, 0], x[3, 7] = np.nan, np.inf, -np.inf
        with np.errstate(invalid="ignore"):
            expected = x.astype(np.float64) @ numbers
        for threads in (1, 2):
            (y,) = heddle.Session(module, threads=threads).run(None, {"x": x})
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", ["rows", 1, 3, 40])
@pytest.mark.parametrize("dtype, blocks, zero, transposed", [
    ("int4", 6, "none", False), ("int4", None, "none", True), ("uint4", 6, "each", False),
    ("uint4", 12, "same", True), ("int8", None, "none", False), ("int8", 6, "each", False),
    ("uint8", None, "same", False), ("uint8", 4, "each", True)])
def test_dequantised_weights(dtype, blocks, zero, transposed, rows):
    random = np.random.default_rng([ord(letter) for letter in dtype + zero])
    codes, scales, zeros, numbers = weights_of(random, dtype, blocks, zero)
    model = dequantised(codes, scales, zeros, dtype, blocks, zero, transposed, rows)
    module = heddle.compile(model)
    bits = 4 if dtype.endswith("4") else 8
    parameters = 4 * (blocks or 1) * COLUMNS * (2 if zero == "each" else 1)
    # Columns are filled up to whole panels.
    assert module.info["weights_bytes"] < 1.3 * (DEPTH * COLUMNS * bits / 8 + parameters) + 256
    check(module, numbers, random, (0, 1, 2, 7, 33, 150) if rows == "rows" else (rows,))


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype, zero", [("uint4", "each"), ("int8", "none"), ("int4", "none")])
def test_every_width_of_vectors(target, dtype, zero):
    if target == "x86-64-v4" and "avx512bw" not in Path("/proc/cpuinfo").read_text("utf-8"):
        pytest.skip("this machine has no AVX-512")
    random = np.random.default_rng(7)
    codes, scales, zeros, numbers = weights_of(random, dtype, 6, zero)
    model = dequantised(codes, scales, zeros, dtype, 6, zero, False, "rows")
    check(heddle.compile(model, target=target), numbers, random, (1, 4, 60))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("target", [None, "x86-64-v2", "x86-64-v3"])
def test_floats_of_16_bits(dtype, target):
    random = np.random.default_rng(8)
    values = random.uniform(-1, 1, (DEPTH, COLUMNS)).astype(getattr(ml_dtypes, dtype, dtype))
    cast = make_node("Cast", "w", "d", to=TensorProto.FLOAT)
    model = model_of([cast, make_node("MatMul", "x d", "y")],
                     [numpy_helper.from_array(values, "w")], "rows")
    module = heddle.compile(model, **({"target": target} if target else {}))
    assert module.info["weights_bytes"] < 1.3 * 2 * DEPTH * COLUMNS
    check(module, values.astype(np.float64), random, (0, 1, 2, 30))


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block, has_zeros", [(16, True), (32, False), (64, True), (128, False)])
def test_matmul_nbits(bits, block, has_zeros):
    """A depth of 192 is no whole number of blocks of 128: that matrix becomes floats."""
    random = np.random.default_rng(bits * block)
    blocks = -(-DEPTH // block)
    codes = random.integers(0, 1 << bits, (COLUMNS, blocks, block))
    scales = random.uniform(0.01, 0.02, (COLUMNS, blocks)).astype(np.float32)
    zeros = random.integers(0, 1 << bits, (COLUMNS, blocks)) if has_zeros else np.full(
        (COLUMNS, blocks), 1 << (bits - 1))

    def packed(values):  # along the last dimension, filled up to bytes
        each = 8 // bits
        values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % each)])
        parts = values.reshape(*values.shape[:-1], -1, each) << (np.arange(each) * bits)
        return parts.sum(-1).astype(np.uint8)

    constants = [numpy_helper.from_array(packed(codes), "w"),
                 numpy_helper.from_array(scales.reshape(-1), "s")]
    names = ["x", "w", "s"]
    if has_zeros:
        constants.append(numpy_helper.from_array(packed(zeros).reshape(-1), "z"))
        names.append("z")
    node = make_node("MatMulNBits", names, "y", domain="com.microsoft", K=DEPTH, N=COLUMNS,
                     bits=bits, block_size=block)
    module = heddle.compile(model_of([node], constants, "rows"))
    numbers = ((codes - zeros[:, :, None]) * scales[:, :, None]).reshape(COLUMNS, -1)[:, :DEPTH].T
    assert (module.info["weights_bytes"] < 3 * DEPTH * COLUMNS) == (block < 128)
    check(module, numbers, random, (1, 2, 50))


def test_what_others_read_too_becomes_floats_for_them():
    random = np.random.default_rng(9)
    codes, scales, zeros, numbers = weights_of(random, "int8", 6, "none")
    model = dequantised(codes, scales, zeros, "int8", 6, "none", False, "rows")
    model.graph.node.append(make_node("ReduceSum", "d", "sum", keepdims=0))
    model.graph.output.append(make_value("sum", []))
    x = random.uniform(-1, 1, (2, DEPTH)).astype(np.float32)
    y, total = heddle.compile(model).run(None, {"x": x})
    np.testing.assert_allclose(y, x.astype(np.float64) @ numbers, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(total, numbers.sum(), rtol=1e-4, atol=1e-2)
