"""network: a convolutional network for images of 8 x 8, with weights that know nothing yet.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import onnx
from heddle.onnx_graph import Graph


class Network(Graph):
    """Layers one after the other, each by its ONNX node."""

    def __init__(self, shape, seed=0):
        super().__init__(seed)
        self.last, self.channels = self.input("images", ["batch", *shape]), shape[0]

    def filled(self, name, array):
        return self.constant(array.astype(np.float32), name)

    def drawn(self, name, shape, fan_in):
        """He et al., Delving Deep into Rectifiers (2015)."""
        return self.filled(name, self.random.normal(0, np.sqrt(2 / fan_in), shape))

    def add(self, op, *inputs, name, **attributes):
        self.last = self.op(op, self.last, *inputs, name=name, **attributes)

    def conv(self, name, channels):
        """3 x 3, batch normalisation, relu."""
        filters = self.drawn(f"{name}.weight", (channels, self.channels, 3, 3), 9 * self.channels)
        self.add("Conv", filters, name=name, pads=[1, 1, 1, 1])
        ones, zeros = np.ones(channels), np.zeros(channels)
        norm = [self.filled(f"{name}.norm.{what}", value) for what, value in (
            ("scale", ones), ("bias", zeros), ("mean", zeros), ("variance", ones))]
        self.add("BatchNormalization", *norm, name=f"{name}.norm")
        self.add("Relu", name=f"{name}.relu")
        self.channels = channels

    def classifier(self, classes):
        self.add("GlobalAveragePool", name="pool")
        self.add("Flatten", name="flat")
        self.add("Dropout", self.filled("dropout.ratio", np.float32(0.2)), name="dropout")
        self.add("Gemm", self.drawn("classes.weight", (self.channels, classes), self.channels),
                 self.filled("classes.bias", np.zeros(classes)), name="scores")
        self.output("scores", ["batch", classes])
        model = self.model()
        onnx.checker.check_model(model)
        return model


def digits_network(seed=0):
    network = Network((1, 8, 8), seed)
    network.conv("conv1", 32)
    network.conv("conv2", 32)
    network.add("MaxPool", name="pool2", kernel_shape=[2, 2], strides=[2, 2])
    network.conv("conv3", 64)
    network.conv("conv4", 64)
    return network.classifier(10)
