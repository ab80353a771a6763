"""network: a convolutional network for images of 8 x 8, with weights that know nothing yet.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    """Layers one after the other, each by its ONNX node."""

    def __init__(self, shape, seed=0):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.last = [], [], "images"
        self.channels, self.shape = shape[0], shape

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def drawn(self, name, shape, fan_in):
        """He et al., Delving Deep into Rectifiers (2015)."""
        return self.weight(name, self.random.normal(0, np.sqrt(2 / fan_in), shape))

    def add(self, op, *inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, [self.last, *inputs], [name], name, **attributes))
        self.last = name

    def conv(self, name, channels):
        """3 x 3, batch normalisation, relu."""
        filters = self.drawn(f"{name}.weight", (channels, self.channels, 3, 3), 9 * self.channels)
        self.add("Conv", filters, name=name, pads=[1, 1, 1, 1])
        ones, zeros = np.ones(channels), np.zeros(channels)
        norm = [self.weight(f"{name}.norm.{what}", value) for what, value in (
            ("scale", ones), ("bias", zeros), ("mean", zeros), ("variance", ones))]
        self.add("BatchNormalization", *norm, name=f"{name}.norm")
        self.add("Relu", name=f"{name}.relu")
        self.channels = channels

    def model(self, classes):
        self.add("GlobalAveragePool", name="pool")
        self.add("Flatten", name="flat")
        self.add("Dropout", self.weight("dropout.ratio", np.float32(0.2)), name="dropout")
        self.add("Gemm", self.drawn("classes.weight", (self.channels, classes), self.channels),
                 self.weight("classes.bias", np.zeros(classes)), name="scores")
        graph = helper.make_graph(
            self.nodes, "digits",
            [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", *self.shape])],
            [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", classes])],
            self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def digits_network(seed=0):
    network = Network((1, 8, 8), seed)
    network.conv("conv1", 32)
    network.conv("conv2", 32)
    network.add("MaxPool", name="pool2", kernel_shape=[2, 2], strides=[2, 2])
    network.conv("conv3", 64)
    network.conv("conv4", 64)
    return network.model(10)
