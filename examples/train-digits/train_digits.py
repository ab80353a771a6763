"""train_digits: a convolutional network learns to read digits, from nothing, in a minute.

    python train_digits.py [--epochs 40] [--output digits.onnx] [--picture loss.svg]

The digits are scikit-learn's: 1,797 images of 8 x 8, of which 1,437 are learned and 360 are asked
for afterwards. SPDX-License-Identifier: Apache-2.0
"""

import argparse
import time

import heddle
import numpy as np
from heddle.training import Trainer, cosine
from network import digits_network
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

BATCH = 64


def shifted(images, random):
    """Each image moved by up to one pixel: more to learn from."""
    places = random.integers(-1, 2, (len(images), 2))
    wide = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.stack([image[:, 1 + y:9 + y, 1 + x:9 + x] for image, (y, x) in zip(wide, places)])


def train(trainer, images, labels, epochs, random):
    """The loss of each step."""
    losses = []
    for _ in range(epochs):
        order = random.permutation(len(images))
        for first in range(0, len(images) - BATCH + 1, BATCH):
            chosen = order[first:first + BATCH]
            losses.append(trainer.step({"images": shifted(images[chosen], random),
                                        "labels": labels[chosen]}))
    return losses


def draw(losses, path):
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
    axes.semilogy(losses, linewidth=0.5, alpha=0.5, label="a step")
    width = min(23, len(losses))
    mean = np.convolve(losses, np.ones(width) / width, mode="valid")
    axes.semilogy(np.arange(width - 1, len(losses)), mean, label=f"mean of {width}")
    axes.set(xlabel="step", ylabel="cross entropy")
    axes.legend()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--output", default="digits.onnx")
    parser.add_argument("--picture", metavar="FILE.svg", help="draw the loss of all steps")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    learned, asked, labels, wanted = train_test_split(
        images, digits.target.astype(np.int64), test_size=0.2, stratify=digits.target,
        random_state=0)
    begin = time.perf_counter()
    steps = options.epochs * (len(learned) // BATCH)
    trainer = Trainer(digits_network(options.seed), "cross_entropy", optimizer="adamw",
                      learning_rate=cosine(4e-3, steps, warmup=50), seed=options.seed)
    losses = train(trainer, learned, labels, options.epochs, np.random.default_rng(options.seed))
    seconds = time.perf_counter() - begin
    trainer.save(options.output)

    model = heddle.compile(options.output)
    scores, = model.run(None, {"images": asked})
    right = (scores.argmax(1) == wanted).mean()
    print(f"{steps} steps in {seconds:.1f} s, with compiling; loss {losses[0]:.3f} -> "
          f"{np.mean(losses[-22:]):.4f}; {right:.2%} of {len(asked)} other digits are right")
    print(f"'{options.output}' is the trained model")
    if options.picture:
        draw(losses, options.picture)


if __name__ == "__main__":
    main()
