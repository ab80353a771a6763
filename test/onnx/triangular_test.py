"""Trmm, Tradd and Trmul of the domain `heddle`, and Trilu before a product: against ONNX's
evaluator and ONNX Runtime, with sizes around those of tiles, and numbers that are not finite."""

import heddle
import numpy as np
import onnx
import onnxruntime
import pytest
from heddle import ops
from heddle.onnx_graph import make_model, make_node, make_value
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

pytestmark = pytest.mark.usefixtures("compiler")

FUNCTIONS = {"Trmm": ops.trmm, "Tradd": ops.tradd, "Trmul": ops.trmul}
SIZES = [(1, 1, 1), (7, 7, 3), (8, 8, 16), (13, 29, 50), (29, 13, 17), (129, 129, 65),
         (200, 130, 48), (96, 257, 33)]


def model_of(op, dims, upper, kind=TensorProto.FLOAT, has_function=True):
    a, b, c = dims
    node = make_node(op, "A B", "C", "product", domain=ops.DOMAIN, upper=int(upper))
    return make_model([node], [make_value("A", a, kind), make_value("B", b, kind)],
                      [make_value("C", c, kind)], domains={ops.DOMAIN: 1},
                      functions=[FUNCTIONS[op]()] if has_function else [])


def product_of(dims, diagonal, upper, kind=TensorProto.FLOAT):
    """Trilu with a diagonal, and a product."""
    a, b, c = dims
    nodes = [make_node("Trilu", "A k", "T", "side", upper=int(upper)),
             make_node("MatMul", "T B", "C", "product")]
    return make_model(nodes, [make_value("A", a, kind), make_value("B", b, kind)],
                      [make_value("C", c, kind)], {"k": np.int64(diagonal)})


def normal(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def session_of(model, threads=1):
    module = heddle.compile(model, cache=False, threads=threads)
    return heddle.Session(module, threads=threads), module


def agree(found, wanted, tolerance=1e-4):
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.fixture(scope="module")
def open_sessions():
    """Products of sizes known only at run time, by op and side."""
    made = {}

    def get(op, upper):
        if (op, upper) not in made:
            dims = ((["m", "k"], ["k", "n"], ["m", "n"]) if op == "Trmm" else (["m", "n"],) * 3)
            model = model_of(op, dims, upper)
            made[op, upper] = model, session_of(model)[0]
        return made[op, upper]
    return get


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize("size", SIZES)
def test_agrees_with_its_function(open_sessions, op, upper, size):
    m, k, n = size
    model, session = open_sessions(op, upper)
    a, b = normal(1, m, k), (normal(2, k, n) if op == "Trmm" else normal(2, m, k))
    (c,) = session.run(None, {"A": a, "B": b})
    runtime = onnxruntime.InferenceSession(model.SerializeToString())
    for other in (ReferenceEvaluator(model), runtime):
        agree(c, other.run(None, {"A": a, "B": b})[0])


@pytest.mark.parametrize("op", FUNCTIONS)
def test_needs_no_function(op):
    dims = ([40, 40],) * 3
    feeds = {"A": normal(1, 40, 40), "B": normal(2, 40, 40)}
    found = [session_of(model_of(op, dims, True, has_function=has))[0].run(None, feeds)[0]
             for has in (False, True)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("diagonal", [0, 1, -1, 5, -5, 300, -300])
@pytest.mark.parametrize("size", [(13, 29, 50), (130, 96, 64)])
def test_any_diagonal(size, diagonal, upper, threads):
    m, k, n = size
    model = product_of(([m, k], [k, n], [m, n]), diagonal, upper)
    feeds = {"A": normal(1, m, k), "B": normal(2, k, n)}
    agree(session_of(model, threads)[0].run(None, feeds)[0],
          ReferenceEvaluator(model).run(None, feeds)[0])


@pytest.mark.parametrize("a, b, c", [
    (["b", 3, 70, 40], ["b", 3, 40, 33], ["b", 3, 70, 33]),
    (["b", 3, 70, 40], [40, 33], ["b", 3, 70, 33]),
    ([70, 40], ["b", 40, 33], ["b", 70, 33])])
def test_batches(a, b, c):
    def values(seed, dims):
        return normal(seed, *(2 if dim == "b" else dim for dim in dims))
    model, feeds = model_of("Trmm", (a, b, c), False), {"A": values(1, a), "B": values(2, b)}
    agree(session_of(model, 2)[0].run(None, feeds)[0],
          ReferenceEvaluator(model).run(None, feeds)[0])


@pytest.mark.parametrize("kind, dtype, tolerance", [(TensorProto.DOUBLE, np.float64, 1e-12),
                                                    (TensorProto.FLOAT16, np.float16, 5e-2)])
@pytest.mark.parametrize("op", FUNCTIONS)
def test_other_types(op, kind, dtype, tolerance):
    model = model_of(op, ([50, 50],) * 3, False, kind)
    feeds = {"A": normal(1, 50, 50, dtype=dtype), "B": normal(2, 50, 50, dtype=dtype)}
    agree(session_of(model)[0].run(None, feeds)[0], ReferenceEvaluator(model).run(None, feeds)[0],
          tolerance)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("place", [(0, 0), (60, 33), (99, 69)])
def test_numbers_that_are_not_finite_in_the_right_operand(place, upper, is_constant, bad):
    """0 times one is NaN, in rows of the other side too; columns of other panels are as ever."""
    model = product_of(([100, 100], [100, 70], [100, 70]), 0, upper)
    feeds = {"A": normal(1, 100, 100), "B": normal(2, 100, 70)}
    feeds["B"][place] = bad
    wanted = ReferenceEvaluator(model).run(None, feeds)[0]
    if is_constant:
        model.graph.input.pop()
        model.graph.initializer.append(numpy_helper.from_array(feeds.pop("B"), "B"))
    agree(session_of(model)[0].run(None, feeds)[0], wanted)


@pytest.mark.parametrize("op", FUNCTIONS)
def test_what_is_beyond_the_diagonal_counts_for_nothing(op):
    a = np.where(np.tri(90, dtype=bool), normal(1, 90, 90), np.float32(np.nan))
    model, b = model_of(op, ([90, 90],) * 3, False), normal(2, 90, 90)
    (c,) = session_of(model)[0].run(None, {"A": a, "B": b})
    agree(c, session_of(model)[0].run(None, {"A": np.tril(np.nan_to_num(a)), "B": b})[0])


@pytest.mark.parametrize("shape", [(0, 5, 4), (5, 0, 4), (5, 4, 0), (0, 0, 0)])
def test_empty_matrices(open_sessions, shape):
    m, k, n = shape
    (c,) = open_sessions("Trmm", False)[1].run(None, {"A": normal(1, m, k), "B": normal(2, k, n)})
    assert c.shape == (m, n) and not c.any()


def test_a_product_and_its_triangle_are_one_kernel():
    model = product_of((["m", "k"], ["k", "n"], ["m", "n"]), 3, False)
    (group,) = session_of(model)[1].compiled.plan["groups"]
    assert group["card"] == "matmul"


@pytest.mark.parametrize("dims, kind, message", [
    (([3, 3], [3, 3], [3, 3]), TensorProto.INT32, "A and B must be of one floating-point type"),
    (([3], [3, 3], [3]), TensorProto.FLOAT, "A and B must have rank 2 or more, but have 1 and 2"),
    (([3, 4], [5, 3], [3, 3]), TensorProto.FLOAT, "product")])
def test_refuses(dims, kind, message):
    with pytest.raises(heddle.RefusedError, match=message):
        heddle.compile(model_of("Trmm", dims, False, kind, has_function=False), cache=False)


def test_the_functions_are_models_of_onnx():
    for op in FUNCTIONS:
        onnx.checker.check_model(model_of(op, ([3, 3],) * 3, False), full_check=True)
