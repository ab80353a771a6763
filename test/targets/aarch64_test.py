"""Artefacts for AArch64 under qemu: ops of all types bit by bit or within rounding, whole models.

The oracle is what ONNX's reference, ONNX Runtime or NumPy says. `suite.py --target aarch64 --qemu`
runs all of ONNX's node tests in the same way. Skipped, with the reason, where an emulator, a cross
compiler or the runtime for AArch64 is missing.
"""

import math
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node
from onnx import TensorProto, helper, numpy_helper

import emulator
import suite
from bench.models import catalogue
from command import REFUSED, fails, needs_heddle, ok, save
from models_test import quantisation_steps, worst_difference
from variants_test import MAIN

ROOT = Path(__file__).resolve().parents[2]
REASON = emulator.missing()
pytestmark = [needs_heddle, pytest.mark.skipif(bool(REASON), reason=REASON)]

# CPUs of qemu that each form runs on: the least that has it, and one that has more.
LEVELS = {"aarch64": "cortex-a57", "aarch64-dotprod": "neoverse-n1", "aarch64-i8mm": "max"}


def run(model, feeds, target="aarch64", cpu=None, **options):
    emulated = emulator.Emulated(model, cpu or LEVELS[target], target, threads=1, **options)
    return emulated.run(feeds)


# ---- ONNX's node tests

OPS = ("add|sub|mul|div|pow|sqrt|exp|log|erf|tanh|sigmoid|sin|cos|tan|atan|asinh|gelu|softmax|clip|"
       "mod|bitwise_and|bitshift|cast|quantizelinear|dequantizelinear|dynamicquantizelinear|"
       "matmulinteger|qlinearmatmul|convinteger|qlinearconv|matmul|gemm|conv|convtranspose|"
       "averagepool|maxpool|globalaveragepool|batchnorm|layer_normalization|group_normalization|"
       "rms_normalization|reduce_sum|reduce_max|reduce_l2|argmax|topk|cumsum|gather|scatter|slice|"
       "pad|transpose|concat|split|where|resize|lstm|gru|simple_rnn|attention|rotary_embedding|"
       "einsum|nonzero|unique|onehot|trilu|range|loop|if|scan|depthtospace|instancenorm|lrn")


@pytest.fixture(scope="session")
def node_results():
    options = {"target": "aarch64", "threads": 1, "emulated": True, "cpu": LEVELS["aarch64"]}
    return suite.run("static", options, f"^test_({OPS})(_|$)(?!.*_expanded)")


def test_the_node_tests_pass(node_results):
    failed = {name: record["text"] for name, record in node_results.items()
              if record["status"] in ("failed", "died")
              and ("static", name) not in suite.expected_failures()}
    assert not failed
    passed = [name for name, record in node_results.items() if record["status"] == "passed"]
    assert len(passed) > 300


# ---- Products of 8-bit integers, which are exact

def integer_model(a, b, columns):
    """z = (x - zero) w, u8 or i8 each, and the same in a convolution with a border."""
    random = np.random.default_rng(1)
    weights = {"w": random.integers(*limits(b), (37, columns)).astype(b),
               "c": random.integers(*limits(b), (columns, 5, 3, 3)).astype(b),
               "zero": np.array(3, a)}
    types = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}
    nodes = [make_node("MatMulInteger", "x w zero", "y"),
             make_node("ConvInteger", "i c zero", "z", pads=[1, 1, 1, 1])]
    return make_model(nodes, {"x": ([9, 37], types[a]), "i": ([1, 5, 6, 7], types[a])},
                      {"y": ([9, columns], TensorProto.INT32),
                       "z": ([1, columns, 6, 7], TensorProto.INT32)},
                      weights)


def limits(dtype):
    info = np.iinfo(dtype)
    return info.min, info.max + 1


@pytest.mark.parametrize("target", LEVELS)
@pytest.mark.parametrize("a, b", [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8),
                                  (np.int8, np.uint8)])
def test_products_of_bytes_are_exact(target, a, b):
    model = integer_model(a, b, 21)
    random = np.random.default_rng(2)
    feeds = [random.integers(*limits(a), shape).astype(a) for shape in ((9, 37), (1, 5, 6, 7))]
    expected = onnx.reference.ReferenceEvaluator(model).run(None, dict(zip("xi", feeds)))
    for found, wanted in zip(run(model, feeds, target), expected):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("target", LEVELS)
def test_products_of_bytes_that_only_the_run_knows_are_exact(target):
    model = make_model([make_node("MatMulInteger", "x w", "y")],
                       {"x": (["m", "k"], TensorProto.UINT8), "w": (["k", "n"], TensorProto.INT8)},
                       {"y": (["m", "n"], TensorProto.INT32)})
    random = np.random.default_rng(4)
    for m, k, n in ((1, 1, 1), (5, 30, 19), (16, 64, 33)):
        x, w = (random.integers(*limits(t), s).astype(t)
                for t, s in ((np.uint8, (m, k)), (np.int8, (k, n))))
        found, = run(model, [x, w], target)
        np.testing.assert_array_equal(found, x.astype(np.int32) @ w.astype(np.int32))


@pytest.mark.parametrize("target, instruction", [
    ("aarch64", "smull"), ("aarch64-dotprod", "sdot"), ("aarch64-i8mm", "usdot")])
def test_products_of_bytes_use_the_instructions_of_their_level(tmp_path, target, instruction):
    model = save(integer_model(np.uint8, np.int8, 21), tmp_path / "m.onnx")
    ok("compile", model, "--target", target, "-o", tmp_path / "m.s")
    words = set((tmp_path / "m.s").read_text(encoding="utf-8").split())
    assert instruction in words
    assert not words & ({"sdot", "usdot", "udot"} - {instruction})


def test_products_of_bf16():
    random = np.random.default_rng(5)
    weight = random.integers(-64, 64, (37, 50)).astype(np.float32)  # numbers of bf16
    model = make_model([make_node("MatMul", "x w", "y")], {"x": ["n", 37]}, {"y": ["n", 50]},
                       {"w": weight})
    for rows in (1, 9, 0):
        x = random.integers(-64, 64, (rows, 37)).astype(np.float32)
        found, = run(model, [x], "aarch64-bf16", "max", math="bf16")
        np.testing.assert_array_equal(found, x @ weight)  # which sums of f32 hold exactly


# ---- Arithmetic of each type

FUNCTIONS = {"Exp": np.exp, "Log": np.log, "Tanh": np.tanh, "Sin": np.sin, "Cos": np.cos,
             "Sqrt": np.sqrt, "Atan": np.arctan, "Erf": np.vectorize(math.erf),
             "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Softplus": lambda x: np.log1p(np.exp(x))}


@pytest.mark.parametrize("dtype, tolerance", [(np.float16, 1e-3), (np.float32, 1e-6),
                                              (np.float64, 1e-12)])
def test_functions_of_floats(dtype, tolerance):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = make_model([make_node(op, "x", [op]) for op in FUNCTIONS], {"x": (["n"], kind)},
                       {op: (["n"], kind) for op in FUNCTIONS})
    x = np.concatenate([np.linspace(1e-3, 9, 997), [0.5, 1, 2, 1e-3]]).astype(dtype)
    for (op, function), found in zip(FUNCTIONS.items(), run(model, [x])):
        np.testing.assert_allclose(found.astype(np.float64), function(x.astype(np.float64)),
                                   tolerance, tolerance, err_msg=op)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_a_function_of_bytes_is_looked_up(dtype):
    parameters = {"s": np.float32(0.05), "t": np.float32(0.0041), "z": dtype(7)}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = make_model([make_node("DequantizeLinear", "x s z", "wide"),
                        make_node("Sigmoid", "wide", "gate"),
                        make_node("QuantizeLinear", "gate t z", "y")],
                       {"x": (["n"], kind)}, {"y": (["n"], kind)},
                       {name: np.array(array) for name, array in parameters.items()})
    low, high = limits(dtype)
    x = np.arange(low, high).astype(dtype)
    gate = 1 / (1 + np.exp(-0.05 * (x.astype(np.float64) - 7)))
    found, = run(model, [x])
    np.testing.assert_array_equal(found, np.clip(np.round(gate / 0.0041) + 7, low, high - 1))


def test_bfloat16_is_computed_in_f32_and_rounded():
    import ml_dtypes

    kind = TensorProto.BFLOAT16
    model = make_model([make_node("Mul", "x x", "m"), make_node("Add", "m x", "y")],
                       {"x": (["n"], kind)}, {"y": (["n"], kind)})
    x = np.random.default_rng(11).normal(size=301).astype(ml_dtypes.bfloat16)
    found, = run(model, [x])
    exact = x.astype(np.float64) ** 2 + x.astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), exact, 2**-7, 2**-7)


def test_threads_share_a_run():
    model = make_model([make_node("MatMul", "x w", "y")], {"x": [64, 96], "w": [96, 128]},
                       {"y": [64, 128]})
    random = np.random.default_rng(6)
    x, w = (random.normal(size=shape).astype(np.float32) for shape in ((64, 96), (96, 128)))
    made = emulator.Emulated(model, "max", "aarch64", threads=2)
    encoded = [emulator.encode(array, info) for array, info in zip((x, w), made.infos)]
    (found,), _ = emulator.run_artefact(made.path, encoded, threads=2)
    np.testing.assert_allclose(found, x @ w, 1e-4, 1e-4)


# ---- Several forms, and what is refused

def test_the_best_form_that_the_cpu_has_runs():
    model = integer_model(np.uint8, np.int8, 8)
    made = emulator.Emulated(model, target="aarch64+dotprod+i8mm", threads=1)
    feeds = [np.ones(shape, np.uint8) for shape in ((9, 37), (1, 5, 6, 7))]
    encoded = [emulator.encode(array, info) for array, info in zip(feeds, made.infos)]
    for target, cpu in LEVELS.items():
        assert emulator.run_artefact(made.path, encoded, cpu)[1] == target
    assert emulator.run_artefact(made.path, encoded, "max", variant="aarch64")[1] == "aarch64"


def test_a_cpu_that_lacks_something_is_told_what():
    made = emulator.Emulated(integer_model(np.uint8, np.int8, 8), target="aarch64-i8mm", threads=1)
    with pytest.raises(emulator.Failure, match="this machine lacks: dotprod, i8mm; compile"):
        emulator.run_artefact(made.path, [], "cortex-a57")


def test_this_machine_refuses_it(tmp_path):
    model = save(integer_model(np.uint8, np.int8, 8), tmp_path / "m.onnx")
    ok("compile", model, "--target", "aarch64", "-o", tmp_path / "m.so")
    fails("run", tmp_path / "m.so", status=REFUSED,
          says="was compiled for aarch64, but this machine is x86-64")
    fails("run", model, "--target", "aarch64", status=REFUSED,
          says="is compiled for 'aarch64', which is of another arch")


def test_an_object_is_embedded_in_a_program(tmp_path):
    model = save(integer_model(np.uint8, np.int8, 8), tmp_path / "m.onnx")
    for name in ("m.o", "m.h"):
        ok("compile", model, "--target", "aarch64+dotprod", "-o", tmp_path / name)
    (tmp_path / "main.c").write_text(MAIN, encoding="utf-8")
    subprocess.run(["aarch64-linux-gnu-gcc", "main.c", "m.o", str(emulator.ARCHIVES[1]),
                    f"-I{ROOT / 'include'}", "-lm", "-lpthread", "-o", "main"], cwd=tmp_path,
                   check=True)
    for cpu, target in (("cortex-a57", "aarch64"), ("max", "aarch64-dotprod")):
        done = subprocess.run(["qemu-aarch64", "-L", emulator.SYSROOT, "-cpu", cpu, "./main"],
                              cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == target


# ---- Whole models

def bert_like():
    """Two layers of attention with residuals, layer norms and GELU, over embedded tokens."""
    random = np.random.default_rng(8)
    width, heads, nodes, constants = 32, 4, [], {}

    def constant(name, *shape, scale=0.2):
        constants[name] = (random.normal(size=shape) * scale).astype(np.float32)
        return name

    def node(op, *inputs, **attributes):
        output = f"node{len(nodes)}"
        nodes.append(make_node(op, list(inputs), [output], **attributes))
        return output

    constants["split"] = np.array([0, 0, heads, width // heads], np.int64)
    constants["join"] = np.array([0, 0, width], np.int64)
    constants["root"] = np.array((width // heads) ** -0.5, np.float32)
    x = node("Gather", constant("table", 50, width, scale=1.0), "tokens")
    for layer in range(2):
        q, k, v = (node("Transpose", node("Reshape", node("MatMul", x, constant(
            f"{name}{layer}", width, width)), "split"), perm=[0, 2, 1, 3]) for name in "qkv")
        scores = node("Mul", node("MatMul", q, node("Transpose", k, perm=[0, 1, 3, 2])), "root")
        mixed = node("MatMul", node("Softmax", scores), v)
        mixed = node("Reshape", node("Transpose", mixed, perm=[0, 2, 1, 3]), "join")
        x = node("LayerNormalization", node("Add", x, mixed),
                 constant(f"s{layer}", width, scale=1.0), constant(f"t{layer}", width))
        wide = node("Gelu", node("MatMul", x, constant(f"up{layer}", width, 4 * width)))
        x = node("Add", x, node("MatMul", wide, constant(f"down{layer}", 4 * width, width)))
    nodes.append(make_node("Identity", [x], "y"))
    return make_model(nodes, {"tokens": (["batch", "length"], TensorProto.INT64)},
                      {"y": ["batch", "length", width]}, constants, opset=20)


def test_a_model_like_bert():
    model = bert_like()
    tokens = np.random.default_rng(9).integers(0, 50, (2, 11))
    expected, = onnx.reference.ReferenceEvaluator(model).run(None, {"tokens": tokens})
    found, = run(model, [tokens])
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


@pytest.mark.parametrize("rows", [1, 30])
@pytest.mark.parametrize("bits, element", [(4, "UINT4"), (8, "INT8")])
def test_weights_in_fewer_bits(bits, element, rows):
    random = np.random.default_rng(bits)
    low = 0 if bits == 4 else -128
    codes = random.integers(low, low + 2 ** bits, (192, 101))
    scales = random.uniform(0.01, 0.02, (6, 101)).astype(np.float32)
    kept = (codes.reshape(-1, 2) << [0, 4]).sum(1).astype(np.uint8)
    raw = kept.tobytes() if bits == 4 else codes.astype(np.int8).tobytes()
    weights = helper.make_tensor("w", getattr(TensorProto, element), codes.shape, raw, raw=True)
    nodes = [make_node("DequantizeLinear", "w s", "d", axis=0, block_size=32),
             make_node("MatMul", "x d", "y")]
    model = make_model(nodes, {"x": ["rows", 192]}, {"y": ["rows", 101]},
                       [weights, numpy_helper.from_array(scales, "s")], opset=21)
    x = random.uniform(-1, 1, (rows, 192)).astype(np.float32)
    expected = x.astype(np.float64) @ (codes * scales.repeat(32, 0))
    np.testing.assert_allclose(run(model, [x])[0], expected, 1e-4, 1e-4)


@pytest.mark.parametrize("target", LEVELS)
@pytest.mark.parametrize("name", ["kws_fp32", "kws_qdq", "silero_vad", "ultraface"])
def test_models(name, target):
    import onnxruntime

    if name in ("silero_vad", "ultraface") and target == "aarch64-i8mm":
        pytest.skip("it has no products of bytes: the other levels say the same")
    model = catalogue.find(name)
    try:
        path = model.path()
    except catalogue.Missing as reason:
        pytest.skip(str(reason))
    proto, feeds = onnx.load(path), model.make_feeds()[0]
    order = [info.name for info in emulator.tensor_types(proto)]
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    expected = session.run(None, feeds)
    found = run(proto, [feeds[name] for name in order], target)
    steps = quantisation_steps(path) if model.quantised else {}
    for output, x, y in zip(session.get_outputs(), found, expected):
        assert worst_difference(x, y, steps.get(output.name)) <= 1
