"""heddle.training: train ONNX models; each step is one compiled artefact.

    trainer = Trainer("model.onnx", loss="cross_entropy", optimizer="adam", learning_rate=1e-3)
    for x, y in batches:
        loss = trainer.step({"x": x, "labels": y})
    trainer.save("trained.onnx")

`heddle train` is the same as a command (docs/guide/training.md).
SPDX-License-Identifier: Apache-2.0
"""

from .schedules import constant, cosine, linear
from .trainer import RATE, STEP, DivergedError, Trainer

__all__ = ["RATE", "STEP", "DivergedError", "Trainer", "constant", "cosine", "linear"]
