"""Steps whose products have factors of bf16: losses stay those of f32, within a percent."""

import heddle
import numpy as np
import pytest
from heddle.training import Trainer

import networks

pytestmark = pytest.mark.usefixtures("compiler")
STEPS = 300
# Small products would not gain by it.
ALL = {"plan": 1, "thresholds": {"bf16_saving": 0}, "groups": []}


@pytest.mark.parametrize("network, shape, classes", [
    ("mlp", (16, 6), 4), ("convolutional", (12, 2, 6, 6), 3)])
@pytest.mark.parametrize("optimizer, rate", [("adam", 0.003), ("sgd", 0.05)])
def test_losses_stay_near(network, shape, classes, optimizer, rate):
    losses = []
    for math in ("fast", "bf16-emulated"):
        trainer = Trainer(getattr(networks, network)(3), optimizer=optimizer, learning_rate=rate,
                          cache=False, threads=1, recipe={"dropout": False}, math=math, plan=ALL)
        losses.append([trainer.step(networks.batch(step % 8, shape, classes))
                       for step in range(STEPS)])
    exact, short = map(np.array, losses)
    assert exact[-8:].mean() < 0.9 * exact[:8].mean()  # something was learnt
    np.testing.assert_allclose(short.reshape(-1, 20).mean(1), exact.reshape(-1, 20).mean(1), 1e-2)
    assert (short != exact).any()


def test_weights_are_float32():
    trainer = Trainer(networks.mlp(3), cache=False, threads=1, math="bf16-emulated", plan=ALL)
    trainer.step(networks.batch(0, (16, 6), 4))
    bits = np.concatenate([weight.ravel() for weight in trainer.weights.values()]).view(np.uint32)
    assert (bits & 0xffff).any()  # which a number of bf16 has not


def test_integers_are_refused():
    with pytest.raises(heddle.UsageError, match="'--math int8' takes products with constant"):
        Trainer(networks.mlp(3), cache=False, math="int8").step(networks.batch(0, (16, 6), 4))
