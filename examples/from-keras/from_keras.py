"""from_keras: a network of Keras 3 learns to read digits, and becomes a model that needs no Keras.

    python from_keras.py [--epochs 20] [--output digits.onnx]

The backend is jax, unless KERAS_BACKEND says torch or tensorflow. The digits are scikit-learn's.
SPDX-License-Identifier: Apache-2.0
"""

import argparse
import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import heddle  # noqa: E402: Keras reads its backend as it is imported
import keras  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402


def network():
    layers = keras.layers
    return keras.Sequential([
        keras.Input((8, 8, 1), name="images"), layers.Conv2D(16, 3, padding="same"),
        layers.BatchNormalization(), layers.Activation("relu"), layers.MaxPooling2D(),
        layers.Conv2D(32, 3, padding="same", activation="relu"), layers.Flatten(),
        layers.Dropout(0.3), layers.Dense(10, activation="softmax")])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--output", default="digits.onnx")
    options = parser.parse_args()
    keras.utils.set_random_seed(0)
    digits = load_digits()
    learned, asked, labels, wanted = train_test_split(
        (digits.images[..., None] / 16).astype(np.float32), digits.target, test_size=0.2,
        stratify=digits.target, random_state=0)
    model = network()
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(learned, labels, batch_size=32, epochs=options.epochs, verbose=0)

    model.export(options.output, format="onnx", verbose=False)
    compiled = heddle.compile(options.output)
    made, = compiled.run(None, {compiled.inputs[0].name: asked})
    right = (made.argmax(1) == wanted).mean()
    difference = np.abs(made - model.predict(asked, verbose=0)).max()
    print(f"{100 * right:.2f}% of {len(asked)} other digits are right; difference from Keras "
          f"{difference:.1e}")


if __name__ == "__main__":
    main()
