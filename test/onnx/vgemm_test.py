"""Vgemm of the domain `heddle`: against its function in ONNX's evaluator and in ONNX Runtime, with
NaN beyond the sizes of each matrix."""

import heddle
import numpy as np
import onnx
import onnxruntime
import pytest
from heddle import ops
from heddle.onnx_graph import make_model, make_node
from heddle_lab.fuzz.check import run_reference
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

pytestmark = pytest.mark.usefixtures("compiler")

OPEN = ("batch", "M", "K", "N")
SIZES = ("m", "k", "n")
BATCHES = [  # the padded sizes, then m, k, n of each matrix
    ((5, 7, 4), [(5, 7, 4), (1, 1, 1), (0, 3, 4), (2, 0, 3), (3, 5, 0)]),
    ((65, 33, 70), [(64, 32, 64), (65, 33, 70), (31, 1, 17), (1, 33, 70), (63, 31, 1)]),
    ((130, 129, 97), [(129, 127, 97), (96, 128, 33)]),
    ((3, 3, 3), [(0, 0, 0)]),
    ((3, 3, 3), []),
]


def model_of(dims=OPEN, kind=TensorProto.FLOAT, function=None):
    batch, m, k, n = dims
    inputs = {"A": ([batch, m, k], kind), "B": ([batch, k, n], kind),
              **{name: ([batch], TensorProto.INT64) for name in SIZES}}
    node = make_node("Vgemm", list(inputs), "C", "product", domain=ops.DOMAIN)
    return make_model([node], inputs, {"C": ([batch, m, n], kind)}, domains={ops.DOMAIN: 1},
                      functions=[function or ops.vgemm()])


def values_of(padded, sizes, dtype=np.float32):
    random = np.random.default_rng(len(sizes))
    m, k, n = padded
    a, b = (random.standard_normal((len(sizes), *dims)).astype(dtype) for dims in ((m, k), (k, n)))
    for i, (rows, depth, columns) in enumerate(sizes):
        a[i, rows:] = a[i, :, depth:] = b[i, depth:] = b[i, :, columns:] = np.nan
    table = np.array(sizes, np.int64).reshape(-1, 3)
    return {"A": a, "B": b, **{name: table[:, i].copy() for i, name in enumerate(SIZES)}}


def expected(values):
    a, b, *sizes = values.values()
    c = np.zeros((len(a), a.shape[1], b.shape[2]), a.dtype)
    for i, (m, k, n) in enumerate(zip(*sizes, strict=True)):
        c[i, :m, :n] = a[i, :m, :k].astype(np.float64) @ b[i, :k, :n].astype(np.float64)
    return c


def compiled(model, threads=1):
    module = heddle.compile(model, cache=False)
    return heddle.Session(module, threads=threads), module


@pytest.fixture(scope="module")
def session():
    return compiled(model_of())[0]


@pytest.mark.parametrize(("padded", "sizes"), BATCHES)
def test_agrees_with_its_function(session, padded, sizes):
    model, values = model_of(), values_of(padded, sizes)
    (c,) = session.run(None, values)
    np.testing.assert_allclose(c, expected(values), rtol=1e-4, atol=1e-4)
    runtime = onnxruntime.InferenceSession(model.SerializeToString())
    for other in (ReferenceEvaluator(model), runtime):
        np.testing.assert_allclose(c, other.run(None, values)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("padded", "sizes"), BATCHES[:3])
def test_constant_sizes_and_the_interpreter(padded, sizes, threads):
    model, values = model_of((len(sizes), *padded)), values_of(padded, sizes)
    made, module = compiled(model, threads)
    (c,) = made.run(None, values)
    np.testing.assert_allclose(c, expected(values), rtol=1e-4, atol=1e-4)
    told = run_reference(model.SerializeToString(), module, values)["C"]
    np.testing.assert_allclose(c, told, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kind", "dtype", "most"), [(TensorProto.DOUBLE, np.float64, 1e-12),
                                                     (TensorProto.FLOAT16, np.float16, 3e-2)])
def test_other_types(kind, dtype, most):
    values = values_of(*BATCHES[1], dtype)
    (c,) = compiled(model_of(kind=kind))[0].run(None, values)
    assert c.dtype == dtype
    np.testing.assert_allclose(c, expected(values), rtol=most, atol=most)


def test_infinities_stay_within_their_matrix(session):
    values = values_of(*BATCHES[1])
    values["A"][0, 3, 5] = np.inf
    (c,) = session.run(None, values)
    assert not np.isfinite(c[0, 3, :64]).any()
    assert (c[0, 3, 64:] == 0).all() and np.isfinite(c[1:]).all()


@pytest.mark.parametrize(("name", "value", "most"), [
    ("m", -1, "M"), ("m", 66, "M"), ("k", 34, "K"), ("k", -(2 ** 63), "K"), ("n", 2 ** 63 - 1, "N"),
    ("n", 71, "N")])
def test_refuses_sizes_outside(session, name, value, most):
    values = values_of(*BATCHES[1])
    values[name][3] = value
    message = f"'{name}' of row 3 is {value}, which must be from 0 to {most}"
    with pytest.raises(heddle.UsageError, match=message):
        session.run(None, values)
    good = values_of(*BATCHES[1])
    np.testing.assert_allclose(session.run(None, good)[0], expected(good), rtol=1e-4, atol=1e-4)


def test_refuses_lengths_of_another_batch(session):
    values = values_of(*BATCHES[1])
    values["k"] = values["k"][:3].copy()
    with pytest.raises(heddle.Error):
        session.run(None, values)


def test_another_function_of_the_name_is_what_it_says():
    other = ops.vgemm()
    other.node[-1].input[2] = "one"
    other.node.insert(0, make_node("CastLike", "one_f A", "one"))
    other.node.insert(0, make_node("Constant", "", "one_f", value_float=1.0))
    values = values_of(*BATCHES[0])
    (c,) = compiled(model_of(function=other))[0].run(None, values)
    assert (c[2] == 1).all() and c[0, 0, 0] != 1


@pytest.mark.parametrize(("dims", "kind", "message"), [
    ((2, 3, 4, 5), TensorProto.INT32, "A and B must be of one floating-point type")])
def test_refuses_types(dims, kind, message):
    with pytest.raises(heddle.RefusedError, match=message):
        heddle.compile(model_of(dims, kind), cache=False)


def test_the_function_is_a_model_of_onnx():
    onnx.checker.check_model(model_of(), full_check=True)
