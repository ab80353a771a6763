"""Small networks that are quantised, and samples of their inputs."""

import numpy as np
from heddle.onnx_graph import INT64, Graph


class Net(Graph):
    """A graph of layers with random weights."""

    def conv(self, x, inputs, outputs, size=3, group=1, bias=True, **attributes):
        """With borders that keep the size of the image."""
        weight = self.weight(outputs, inputs // group, size, size,
                             scale=(2 / (inputs // group * size**2)) ** 0.5)
        more = [self.weight(outputs, scale=0.1)] if bias else []
        return self.op("Conv", x, weight, *more, pads=[size // 2] * 4, group=group, **attributes)

    def relu(self, x):
        return self.op("Relu", x)

    def dense(self, x, inputs, outputs, **named):
        made = self.op("MatMul", x, self.weight(inputs, outputs, scale=inputs**-0.5))
        return self.op("Add", made, self.weight(outputs, scale=0.1), **named)

    def norm(self, x, size):
        return self.op("LayerNormalization", x, self.constant(
            1 + 0.2 * self.random.standard_normal(size).astype(np.float32)),
            self.weight(size, scale=0.1), axis=-1)

    def batch_norm(self, x, size):
        given = [self.constant(self.random.uniform(0.5, 2, size).astype(np.float32)),
                 self.weight(size), self.weight(size),
                 self.constant(self.random.uniform(0.5, 2, size).astype(np.float32))]
        return self.op("BatchNormalization", x, *given)

    def image(self, channels=3, size=12):
        return self.input("x", ["batch", channels, size, size])

    def classes(self, x, channels, name="y"):
        pooled = self.op("Flatten", self.op("GlobalAveragePool", x))
        self.op("Gemm", pooled, self.weight(5, channels), self.weight(5), transB=1, name=name)
        return self.output(name, ["batch", 5])


def residual(opset=17, **given):
    net = Net(1)
    x = net.relu(net.batch_norm(net.conv(net.image(), 3, 8, bias=False), 8))
    x = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    y = net.conv(net.relu(net.conv(x, 8, 8)), 8, 8)
    x = net.relu(net.op("Add", x, y))
    net.classes(net.relu(net.conv(x, 8, 16, strides=[2, 2])), 16)
    return net.model(opset, **given)


def depthwise(opset=17):
    net = Net(2)
    x = net.relu(net.conv(net.image(), 3, 8))
    x = net.relu(net.conv(x, 8, 8, group=8))
    x = net.conv(x, 8, 6, size=1)
    low, high = net.constant(np.float32(0)), net.constant(np.float32(6))
    net.classes(net.op("Clip", net.conv(x, 6, 12), low, high), 12)
    return net.model(opset)


def concatenated(opset=17):
    net = Net(3)
    x = net.relu(net.conv(net.image(), 3, 4))
    y = net.op("Concat", net.relu(net.conv(x, 4, 4, size=1)), net.relu(net.conv(x, 4, 6)), axis=1)
    y = net.op("AveragePool", y, kernel_shape=[2, 2], strides=[2, 2])
    pads = net.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    net.classes(net.relu(net.conv(net.op("Pad", y, pads), 10, 8)), 8)
    return net.model(opset)


def transformer(opset=17, size=16, length="length"):
    """A block with attention of two heads, which normalises first."""
    net = Net(4)
    x = net.input("x", ["batch", length, size])
    n = net.norm(x, size)
    heads = net.constant(np.array([0, 0, 2, size // 2]))
    q, k, v = (net.op("Reshape", net.dense(n, size, size), heads) for _ in range(3))
    q, v = (net.op("Transpose", each, perm=[0, 2, 1, 3]) for each in (q, v))
    scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 2, 3, 1]))
    scores = net.op("Softmax", net.op("Mul", scores, net.constant(np.float32(0.35))), axis=-1)
    joined = net.op("Transpose", net.op("MatMul", scores, v), perm=[0, 2, 1, 3])
    joined = net.op("Reshape", joined, net.constant(np.array([0, 0, size])))
    x = net.op("Add", x, net.dense(joined, size, size))
    inner = net.op("Tanh", net.dense(net.norm(x, size), size, 2 * size))
    net.op("Add", x, net.dense(inner, 2 * size, size), name="y")
    net.output("y", ["batch", length, size])
    return net.model(opset)


def gemm(opset=17):
    net = Net(5)
    x = net.input("x", ["batch", 20])
    x = net.relu(net.op("Gemm", x, net.weight(20, 30, scale=0.2), net.weight(30)))
    net.op("Gemm", x, net.weight(4, 30, scale=0.2), transB=1, alpha=0.5, name="y")
    net.output("y", ["batch", 4])
    return net.model(opset)


def several_outputs(opset=17):
    net = Net(6)
    x = net.relu(net.conv(net.input("x", ["batch", 3, "height", "width"]), 3, 8))
    net.output(net.conv(x, 8, 4, name="a"), ["batch", 4, "height", "width"])
    net.op("Sigmoid", net.conv(net.relu(net.conv(x, 8, 8)), 8, 2), name="b")
    net.output("b", ["batch", 2, "height", "width"])
    return net.model(opset)


def shared_weights(opset=17):
    net = Net(7)
    x, weight = net.input("x", ["batch", 12]), net.weight(12, 12, scale=0.3)
    x = net.relu(net.op("MatMul", x, weight))
    net.op("MatMul", net.op("Tanh", net.op("MatMul", x, weight)), weight, name="y")
    net.output("y", ["batch", 12])
    return net.model(opset)


def upsampled(opset=17):
    net = Net(8)
    x = net.relu(net.conv(net.image(), 3, 8, strides=[2, 2]))
    sizes = net.constant(np.array([1, 1, 2, 2], np.float32))
    x = net.conv(net.op("Resize", x, "", sizes, mode="nearest"), 8, 8)
    x = net.op("ConvTranspose", x, net.weight(8, 3, 2, 2, scale=0.2), net.weight(3),
               strides=[2, 2])
    net.op("DepthToSpace", net.conv(x, 3, 4), blocksize=2, name="y")
    net.output("y", ["batch", 1, 48, 48])
    return net.model(opset)


def embedded(opset=17):
    """Tokens, whose table is a weight, too."""
    net = Net(9)
    ids, table = net.input("ids", ["batch", "length"], INT64), net.weight(40, 16)
    x = net.norm(net.op("Gather", table, ids), 16)
    x = net.dense(net.op("Tanh", net.dense(x, 16, 16)), 16, 16)
    net.op("MatMul", x, net.op("Transpose", table, perm=[1, 0]), name="y")
    net.output("y", ["batch", "length", 40])
    return net.model(opset)


NETWORKS = {made.__name__: made for made in (
    residual, depthwise, concatenated, transformer, gemm, several_outputs, shared_weights,
    upsampled, embedded)}
SIZES = {"height": 12, "width": 10, "length": 7, "batch": 2}


def samples(model, count=12, seed=0):
    """Feeds of a network's inputs."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        feed = {}
        for value in model.graph.input:
            kind = value.type.tensor_type
            shape = [dim.dim_value or SIZES[dim.dim_param] for dim in kind.shape.dim]
            feed[value.name] = (random.integers(0, 40, shape) if kind.elem_type == INT64
                                else random.uniform(-1.7, 1.7, shape).astype(np.float32))
        found.append(feed)
    return found
