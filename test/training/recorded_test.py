"""Losses of 40 steps, each of another batch, are those that PyTorch had (record_losses.py)."""

import json
from pathlib import Path

import numpy as np
import pytest
from heddle.training import Trainer

import networks

RECORDED = json.loads((Path(__file__).parent / "recorded_losses.json").read_text(encoding="utf-8"))

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.mark.parametrize("row", RECORDED,
                         ids=lambda row: f"{row['network']}-{row['optimizer']}")
def test_losses_are_those_of_pytorch(row):
    trainer = Trainer(getattr(networks, row["network"])(3), optimizer=row["optimizer"], cache=False,
                      threads=1, learning_rate=row["rate"], recipe={"dropout": False})
    shape, classes = row["batch"]
    found = [trainer.step(networks.batch(step, shape, classes))
             for step in range(len(row["losses"]))]
    np.testing.assert_allclose(found, row["losses"], rtol=1e-5)
