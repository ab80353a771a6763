"""Random recipes on random models: what the judge finds, and a short campaign."""

import heddle
import numpy as np
import pytest
from heddle_lab.fuzz import training
from heddle_lab.fuzz.campaign import Campaign

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 5), ()])
def test_recipes_are_legal(shape):
    random, y = np.random.default_rng(1), np.zeros(shape)
    for _ in range(50):
        recipe = training.recipe_of(random, y, ["w", "v"])
        labels = training.labels_of(random, recipe, y)
        if recipe["loss"] in training.OF_CLASSES:
            assert labels.size * shape[recipe["class_axis"]] == y.size
            assert labels.max() < shape[recipe["class_axis"]]
        else:
            assert labels.shape == shape


def test_an_update_of_micro_batches_needs_no_input_of_the_model():
    """The labels of this model have a size that is checked when it runs."""
    outcome = training.judge(*training.generate(1, 1), 1)
    assert not outcome.is_finding and outcome.held == 4


def test_what_differs_from_the_interpreter_is_found(monkeypatch):
    """A state that is off in its second digit stands for a compiler that gets it wrong."""
    run = heddle.Session.run

    def wrong(session, names, feeds, out=None):
        found = run(session, names, feeds, out=out)
        for array in (out or {}).values():
            array *= 1.01
        return found

    monkeypatch.setattr(heddle.Session, "run", wrong)
    outcome = training.judge(*training.generate(1, 1), 1)
    assert outcome.kind == "wrong" and outcome.message.startswith("call 1 of ")


def test_a_short_campaign_finds_nothing():
    campaign = Campaign(1, lambda index: training.generate(1, index), limit=600, kind="training")
    campaign.run(range(8))
    assert not campaign.findings and campaign.models == 8 and campaign.held > 4


def test_the_sign_of_a_rounded_number_is_either():
    before = {"w/first_moment": np.zeros(3, np.float32)}
    expected = {"w": np.float32([1, 1, 1]), "w/first_moment": np.float32([1e-2, 1e-9, -1e-9])}
    found = {"w": np.float32([1.02, 1.02, 1.5])}
    training.settle_signs({"name": "lion"}, before, expected, found)
    # The first has a sign, the third is more than a step away.
    np.testing.assert_array_equal(found["w"], np.float32([1.02, 1, 1.5]))
