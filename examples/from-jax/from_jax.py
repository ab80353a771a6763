"""from_jax: a function of jax learns to read digits, and becomes a model that needs no jax.

    python from_jax.py [--steps 400] [--output digits.onnx]

The digits are scikit-learn's, each a sequence of 8 rows of 8 numbers, which attend to each other.
SPDX-License-Identifier: Apache-2.0
"""

import argparse

import heddle
import jax
import jax.numpy as jnp
import numpy as np
from jax2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

WIDTH, BATCH, RATE = 32, 64, 3e-3


def weights(random):
    shapes = {"rows": (8, WIDTH), "places": (8, WIDTH), "query": (WIDTH, WIDTH),
              "key": (WIDTH, WIDTH), "value": (WIDTH, WIDTH), "up": (WIDTH, 64),
              "down": (64, WIDTH), "head": (8 * WIDTH, 10)}
    return {name: jnp.asarray(random.standard_normal(shape) / np.sqrt(shape[0]), jnp.float32)
            for name, shape in shapes.items()}


def scores(w, images):
    """Scores [batch, 10] of images [batch, 8, 8]."""
    x = images @ w["rows"] + w["places"]
    alike = (x @ w["query"]) @ jnp.swapaxes(x @ w["key"], 1, 2) / WIDTH**0.5
    x = x + jax.nn.softmax(alike, axis=-1) @ (x @ w["value"])
    x = x + jax.nn.gelu(x @ w["up"]) @ w["down"]
    return x.reshape(x.shape[0], -1) @ w["head"]


def loss(w, images, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(scores(w, images)), labels[:, None], 1).mean()


@jax.jit
def step(w, moments, images, labels, rate):
    """One step of Adam: (weights, moments)."""
    gradients = jax.grad(loss)(w, images, labels)
    moments = jax.tree.map(lambda m, g: (0.9 * m[0] + 0.1 * g, 0.99 * m[1] + 0.01 * g * g),
                           moments, gradients, is_leaf=lambda m: isinstance(m, tuple))
    return {name: w[name] - rate * first / (jnp.sqrt(second) + 1e-8)
            for name, (first, second) in moments.items()}, moments


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--output", default="digits.onnx")
    options = parser.parse_args()
    digits, random = load_digits(), np.random.default_rng(0)
    learned, asked, labels, wanted = train_test_split(
        (digits.images / 16).astype(np.float32), digits.target, test_size=0.2,
        stratify=digits.target, random_state=0)
    w = weights(random)
    moments = {name: (jnp.zeros_like(each), jnp.zeros_like(each)) for name, each in w.items()}
    for i in range(options.steps):
        chosen = random.integers(0, len(learned), BATCH)
        w, moments = step(w, moments, learned[chosen], labels[chosen],
                          RATE * (1 - i / options.steps))

    to_onnx(lambda images: scores(w, images), [("batch", 8, 8)], input_names=["images"],
            output_names=["scores"], return_mode="file", output_path=options.output)
    made, = heddle.compile(options.output).run(None, {"images": asked})
    right = (made.argmax(1) == wanted).mean()
    difference = np.abs(made - np.asarray(scores(w, asked))).max()
    print(f"{100 * right:.2f}% of {len(asked)} other digits are right; difference from jax "
          f"{difference:.1e}")


if __name__ == "__main__":
    main()
