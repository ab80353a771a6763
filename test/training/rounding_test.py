"""QuantizeLinear and DequantizeLinear pass derivatives straight through, within their range."""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import Graph
from heddle.training import Trainer

pytestmark = pytest.mark.usefixtures("compiler")
OPTIONS = {"cache": False, "threads": 1}
ENDS = {np.uint8: (0, 255), np.int8: (-128, 127), np.int16: (-32768, 32767)}


def along(vector, axis, rank):
    return np.reshape(vector, [-1 if place == axis else 1 for place in range(rank)])


def pair(graph, x, scale, zero, **axis):
    """x as its integers stand for it."""
    given = scale, graph.constant(zero)
    return graph.op("DequantizeLinear", graph.op("QuantizeLinear", x, *given, **axis), *given,
                    **axis)


def derivative(graph, variable, opset=17):
    recipe = {"phase": "derivative", "variables": [variable]}
    return heddle.compile(graph.model(opset), training=recipe, **OPTIONS)


@pytest.mark.parametrize("dtype, zero, axis", [
    (np.uint8, 0, None), (np.uint8, 128, None), (np.uint8, 255, None), (np.int8, 0, None),
    (np.int8, -5, None), (np.int16, 9, None), (np.int8, [0, 0, 0], 0), (np.uint8, [0, 7, 255], 0),
    (np.int8, [0, 3, -128, 127, 5], 1)], ids=str)
def test_derivatives_beside_formulas(dtype, zero, axis):
    random = np.random.default_rng(3)
    least, most = ENDS[dtype]
    zero = np.array(zero, dtype)
    shape, rank, width = (3, 5, 40), 3, most - least
    scale = random.uniform(0.5, 2, zero.shape).astype(np.float32) / np.float32(width)
    if axis is not None:
        shape = tuple(zero.size if place == axis else size for place, size in enumerate(shape))
    zeros, scales = (along(each, axis, rank).astype(np.float64) for each in (zero, scale))
    steps = random.uniform(least - zeros - 0.1 * width, most - zeros + 0.1 * width, shape)
    ends = steps[..., :8]  # within half a step of an end, or just beyond it, and no numbers
    ends[...] = np.array([-0.4, 0, 0.4, -0.6, 0.6, 0, 0, 0]) + np.where(
        np.arange(8) % 2, least - zeros, most - zeros)
    x = (steps * scales).astype(np.float32)
    x[..., 8] = np.nan
    graph = Graph()
    graph.input("x", list(shape))
    graph.output(graph.op("Identity", pair(
        graph, "x", graph.constant(scale, "scale"), zero,
        **({} if axis is None else {"axis": axis})), name="y"), list(shape))
    module = derivative(graph, "x", 21)
    weight = random.uniform(0.5, 1.5, shape).astype(np.float32)
    _, slope = module.run(None, {"x": x, "grad.y": weight})
    quotient = x / scales.astype(np.float32)
    shifted = np.rint(quotient) + zeros
    within = (shifted >= least) & (shifted <= most)
    assert 0.1 < within.mean() < 0.95 and within[..., :8].any() and not within[..., 8].any()
    np.testing.assert_allclose(slope, np.where(within, weight, 0), rtol=1e-6)


def test_a_scale_learns_as_lsq_says():
    """Esser et al., ICLR 2020, equation 3."""
    x = np.array([-9, -3.2, -0.7, 0.2, 1.6, 5.9, 40], np.float32)
    graph = Graph()
    graph.input("x", [7])
    graph.output(graph.op("Identity", pair(graph, "x", graph.constant(np.float32(0.25), "scale"),
                                           np.uint8(20)), name="y"), [7])
    module = derivative(graph, "scale")
    weight = np.arange(1, 8, dtype=np.float32)
    _, slope = module.run(None, {"x": x, "grad.y": weight})
    steps = x / 0.25
    each = np.where(steps < -20, -20, np.where(steps > 235, 235, np.rint(steps) - steps))
    np.testing.assert_allclose(slope, (weight * each).sum(), rtol=1e-5)


def test_weights_before_integers_are_trained():
    graph = Graph(1)
    graph.input("x", ["n", 6])
    weight = pair(graph, graph.weight(6, 3, name="w"), graph.constant(
        np.full(3, 0.02, np.float32), "of_w"), np.zeros(3, np.int8), axis=1)
    x = pair(graph, "x", graph.constant(np.float32(0.03), "of_x"), np.uint8(128))
    graph.op("MatMul", x, weight, name="y")
    graph.output("y", ["n", 3])
    trainer = Trainer(graph.model(), "mse", learning_rate=0.02, trainable=["w"], **OPTIONS)
    random = np.random.default_rng(2)
    truth = random.standard_normal((6, 3)).astype(np.float32)
    losses = []
    for _ in range(150):
        x = random.uniform(-1, 1, (16, 6)).astype(np.float32)
        losses.append(trainer.step({"x": x, "labels": x @ truth}))
    assert np.mean(losses[-5:]) < 0.02 * np.mean(losses[:5]), losses[::30]


def test_a_rounding_alone_has_no_slope():
    graph = Graph()
    graph.input("x", [4])
    graph.output(graph.op("Round", "x", name="y"), [4])
    module = derivative(graph, "x")
    _, slope = module.run(None, {"x": np.ones(4, np.float32), "grad.y": np.ones(4, np.float32)})
    assert (slope == 0).all()
