"""A model of two products, of which tests of smaller numbers take one, both or none."""

import numpy as np
import onnx.parser

from command import OK, heddle, save

MODEL = """<ir_version: 10, opset_import: ["" : 22]>
m (float[n, 96] x) => (float[n, 80] y, float[n, 96] z) {
    hidden = MatMul(x, first)
    kept = Relu(hidden)
    y = MatMul(kept, second)
    z = Exp(x)
}"""
NAMES = ["MatMul_hidden", "MatMul_y"]


def weights_of_two():
    numbers = np.random.default_rng(0)
    return [numbers.normal(size=shape).astype(np.float32) / 10 for shape in ((96, 200), (200, 80))]


def save_two(path):
    model = onnx.parser.parse_model(MODEL)
    for name, weight in zip(("first", "second"), weights_of_two()):
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    return save(model, path)


def plan_of(model, *options):
    done = heddle("plan", model, "--json", *options)
    assert done.status == OK, done.errors
    return done.json


def worst(found, wanted):
    """The greatest difference, relative to the largest number."""
    return np.abs(found - wanted).max() / np.abs(wanted).max()
