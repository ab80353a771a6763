"""Random ops: what their numbers are distributed like, and that a seed repeats them."""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node
from onnx import TensorProto

COUNT = 40000


def run(op, inputs, outputs=("y",), opset=22, **attributes):
    feeds = {f"x{i}": array for i, array in enumerate(inputs)}
    node = make_node(op, list(feeds), outputs, **attributes)
    return heddle.compile(make_model([node], feeds, outputs, opset=opset)).run(None, feeds)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_uniform(kind):
    draw = run("RandomUniform", [], shape=[200, COUNT // 200], low=-1.0, high=3.0, seed=7.0,
               dtype=kind)[0]
    assert draw.min() >= -1 and draw.max() < 3
    assert abs(draw.mean() - 1) < 0.03
    assert abs(draw.std() - 4 / np.sqrt(12)) < 0.03
    counts = np.histogram(draw, 16, (-1, 3))[0]
    assert np.abs(counts - COUNT / 16).max() < 5 * np.sqrt(COUNT / 16)
    assert abs(np.corrcoef(draw.ravel()[:-1], draw.ravel()[1:])[0, 1]) < 0.03


def test_a_seed_repeats_its_numbers():
    like = np.zeros((3, 5), np.float32)
    one, again = (run("RandomUniformLike", [like], seed=5.0)[0] for _ in range(2))
    other = run("RandomUniformLike", [like], seed=6.0)[0]
    assert (one == again).all()
    assert (one != other).any()


def test_nodes_without_a_seed_differ_by_name():
    like = np.zeros((3, 5), np.float32)
    one, again = (run("RandomNormalLike", [like], ("a",))[0] for _ in range(2))
    assert (one == again).all()
    assert (one != run("RandomNormalLike", [like], ("b",))[0]).any()


def test_bernoulli():
    chances = np.full(COUNT, 0.3, np.float32)
    draw = run("Bernoulli", [chances], seed=2.0, dtype=TensorProto.BOOL)[0]
    assert draw.dtype == bool
    assert abs(draw.mean() - 0.3) < 0.02
    assert not run("Bernoulli", [np.zeros(99, np.float32)])[0].any()
    assert run("Bernoulli", [np.ones(99, np.float32)])[0].all()


def test_multinomial():
    shares = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]], np.float32)
    with np.errstate(divide="ignore"):
        draw = run("Multinomial", [np.log(shares)], sample_size=COUNT, seed=3.0)[0]
    assert draw.shape == (2, COUNT) and draw.dtype == np.int32
    for row, share in zip(draw, shares):
        assert np.abs(np.bincount(row, minlength=3) / COUNT - share).max() < 0.02


@pytest.mark.parametrize("training", [False, True])
def test_dropout(training):
    x = np.linspace(1, 2, COUNT, dtype=np.float32)
    inputs = [x, np.array(0.25, np.float32), np.array(training)]
    y, mask = run("Dropout", inputs, ("y", "m"), seed=4)
    if not training:
        assert (y == x).all() and mask.all()
        return
    assert abs(mask.mean() - 0.75) < 0.02
    np.testing.assert_allclose(y, np.where(mask, x / 0.75, 0), rtol=1e-6)


def test_dropout_of_nothing_is_exact():
    x = np.linspace(-3, 3, 101, dtype=np.float32)
    y, mask = run("Dropout", [x, np.array(0, np.float32), np.array(True)], ("y", "m"))
    assert (y == x).all() and mask.all()
