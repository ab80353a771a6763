"""Networks of one layer, with random weights, as ONNX models."""

import numpy as np
from heddle.onnx_graph import make_model, make_node

random = np.random.default_rng(0)


def normal(*shape):
    return random.standard_normal(shape).astype(np.float32) / 8


def model(nodes, inputs, output, constants):
    return make_model(nodes, inputs, {"y": output}, constants)


def node(op, inputs, output, **attributes):
    return make_node(op, inputs, [output], name=output, **attributes)


def conv(channels, filters, window, stride, size):
    pad, out = window // 2, (size + 2 * (window // 2) - window) // stride + 1
    return model([node("Conv", ["x", "w", "b"], "h", strides=[stride] * 2, pads=[pad] * 4),
                  node("Relu", ["h"], "y")], {"x": [1, channels, size, size]},
                 [1, filters, out, out],
                 {"w": normal(filters, channels, window, window), "b": normal(filters)})
