"""First-order and quadratic networks of about equal parameters on scikit-learn's digits, and what
a step of the quadratic one keeps in memory.

    ./dev bench quadratic [--seeds 5] [--epochs 30]

The network is that of examples/train-digits; its quadratic form has narrower layers, three
convolutions each. `hybrid` computes again in the way back what it needs of the quadratic part;
`everything` stores each tensor (--without fusion,cards).
"""

import argparse
import statistics
import sys

import numpy as np

from bench.kernels import report
from bench.models import tool

sys.path[:0] = [str(tool.ROOT / "python"), str(tool.ROOT / "examples" / "train-digits")]
BATCH = 64


def network(widths, seed):
    """examples/train-digits with other widths."""
    from network import Network

    made = Network((1, 8, 8), seed)
    for i, width in enumerate(widths):
        made.conv(f"conv{i + 1}", width)
        if i == 1:
            made.add("MaxPool", name="pool2", kernel_shape=[2, 2], strides=[2, 2])
    return made.model(10)


def quadratic_network(widths, seed):
    from heddle import quadratic

    made = network(widths, seed)
    return quadratic.convert(made, "sum", [f"conv{i + 1}" for i in range(len(widths))], seed)


def parameters(model):
    return sum(int(np.prod(tensor.dims)) for tensor in model.graph.initializer)


def digits():
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    found = load_digits()
    images = (found.images[:, None] / 16).astype(np.float32)
    return train_test_split(images, found.target.astype(np.int64), test_size=0.5,
                            stratify=found.target, random_state=0)


def accuracy(model, epochs, seed, data):
    """Of the digits that were not learned from."""
    from heddle.training import Trainer, cosine

    images, asked, labels, wanted = data
    random = np.random.default_rng(seed)
    steps = epochs * (len(images) // BATCH)
    trainer = Trainer(model, optimizer="adamw", learning_rate=cosine(4e-3, steps, warmup=30),
                      seed=seed, threads=1)
    for _ in range(epochs):
        order = random.permutation(len(images))
        for first in range(0, len(images) - BATCH + 1, BATCH):
            chosen = order[first:first + BATCH]
            trainer.step({"images": images[chosen], "labels": labels[chosen]})
    _, outputs = trainer.evaluate({"images": asked, "labels": wanted})
    return float((outputs["scores"].argmax(1) == wanted).mean())


def arena_bytes(model, without=None):
    """Of a step: what lies between its kernels."""
    from heddle.training import Trainer

    trainer = Trainer(model, threads=1, without=without)
    random = np.random.default_rng(0)
    trainer.step({"images": random.standard_normal((BATCH, 1, 8, 8), dtype=np.float32),
                  "labels": random.integers(0, 10, BATCH)})
    return trainer.memory["arena_bytes"]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--epochs", type=int, default=30)
    given = options.parse_args()
    makers = {"first order": lambda seed: network((16, 16, 32, 32), seed),
              "quadratic": lambda seed: quadratic_network((9, 9, 18, 19), seed)}
    forms = {name: make(0) for name, make in makers.items()}
    data, rows = digits(), []
    for name, make in makers.items():
        figures = [accuracy(make(seed), given.epochs, seed, data) for seed in range(given.seeds)]
        spread = statistics.stdev(figures) if len(figures) > 1 else 0.0
        rows.append([name, parameters(forms[name]), f"{statistics.mean(figures):.4f}",
                     f"{spread:.4f}"])
    kept = arena_bytes(forms["quadratic"])
    stored = arena_bytes(forms["quadratic"], "fusion,cards")
    print("\n".join([*report.table(["form", "parameters", "accuracy", "deviation"], rows), "",
                     f"Between the kernels of a step of the quadratic form, batch {BATCH}: hybrid "
                     f"{kept / 2**20:.2f} MiB, everything {stored / 2**20:.2f} MiB."]))


if __name__ == "__main__":
    main()
