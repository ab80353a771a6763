"""record_losses: what PyTorch's losses are for the networks that recorded_test trains.

    python test/training/record_losses.py      # writes recorded_losses.json beside it; needs torch

The weights and batches are those of networks.py, so nothing but losses is written.
"""

import json
from pathlib import Path

import torch
from networks import batch, convolutional, mlp
from onnx import numpy_helper
from torch.nn import functional

PLACE = Path(__file__).with_name("recorded_losses.json")
STEPS = 40
RATES = {"sgd": 0.1, "momentum": 0.02, "adam": 0.01}
SHAPES = {"mlp": ((16, 6), 4), "convolutional": ((12, 2, 6, 6), 3)}


def forward(name, x, w):
    if name == "mlp":
        h = torch.tanh(x @ w["first.weight"] + w["first.bias"])
        return h @ w["second.weight"] + w["second.bias"]
    y = functional.conv2d(x, w["conv.weight"], padding=1)
    y = functional.batch_norm(y, None, None, w["norm.scale"], w["norm.bias"], training=True)
    y = functional.max_pool2d(functional.relu(y), 2)
    return y.flatten(1) @ w["classes.weight"]


def losses(name, optimizer):
    made = (mlp if name == "mlp" else convolutional)(3)
    skipped = ("unused", "ratio", "norm.mean", "norm.variance")
    weights = {tensor.name: torch.tensor(numpy_helper.to_array(tensor), requires_grad=True)
               for tensor in made.graph.initializer if tensor.name not in skipped}
    rate, kind = RATES[optimizer], torch.optim.Adam if optimizer == "adam" else torch.optim.SGD
    options = {"momentum": 0.9} if optimizer == "momentum" else {}
    updates = kind(weights.values(), rate, **options)
    found = []
    for step in range(STEPS):
        feeds = batch(step, *SHAPES[name])
        updates.zero_grad()
        loss = functional.cross_entropy(forward(name, torch.tensor(feeds["x"]), weights),
                                        torch.tensor(feeds["labels"]))
        loss.backward()
        updates.step()
        found.append(loss.item())
    return found


if __name__ == "__main__":
    rows = [{"network": name, "optimizer": optimizer, "rate": RATES[optimizer],
             "batch": SHAPES[name], "losses": losses(name, optimizer)}
            for name in SHAPES for optimizer in RATES]
    PLACE.write_text("[" + ",\n ".join(map(json.dumps, rows)) + "]\n", encoding="utf-8")
