"""drawn: random networks with the layers and sizes that real ones have.

`network(seed)` is always the same model: a convolutional net, a transformer, a perceptron, an
encoder and decoder, a recurrent net, a quantised net or a chain of statistics, of sizes from a
distribution over what is common. Every third one of the families that can be trained is a step:
the loss and its gradients for all weights. Only `onnx` is needed. Weights are random: which numbers
they are does not change how long a group takes.
"""

import numpy as np
from heddle.onnx_graph import make_node

from bench.networks.sized import PREVIEW, Sized


class Network(Sized):
    def activation(self, x, kind=None):
        kind = kind or self.pick("Relu", "Relu", "Gelu", "Silu", "HardSwish", "LeakyRelu", "Tanh")
        if kind == "Silu":
            return self.op("Mul", x, self.op("Sigmoid", x))
        return self.op(kind, x)

    def norm(self, x):
        return self.rms_norm(x) if self.chance(0.3) else self.layer_norm(x)

    def trained(self, loss):
        """The model as a step: its outputs are the loss and the gradients of all weights that the
        loss depends on."""
        reached, open_ = set(), {loss}
        makers = {node.output[0]: node for node in self.nodes}
        while open_:
            name = open_.pop()
            reached.add(name)
            if name in makers:
                open_ |= {each for each in makers[name].input if each and each not in reached}
        variables = [name for name in self.arrays
                     if name.startswith("weight") and name in reached]
        feeds = [value.name for value in self.inputs if value.name in reached]
        gradients = [f"gradient_of_{name}" for name in variables]
        self.nodes.append(make_node("Gradient", [*variables, *feeds], gradients, "gradient",
                                    domain=PREVIEW, xs=variables, zs=feeds, y=loss))
        self.shapes.update({gradient: list(self.arrays[name].shape)
                            for name, gradient in zip(variables, gradients)})
        return self.finished(loss, *gradients)


def _mean_square(g, x):
    count = len(g.shapes[x])
    return g.op("ReduceMean", g.op("Mul", x, x), g.constant(np.arange(count)), keepdims=0)


def convolutional(g):
    """VGG, ResNet, MobileNet or ConvNeXt, a few stages of it."""
    size, style = g.pick(32, 48, 56, 64, 96, 112, 160, 224), g.pick("plain", "residual", "bottle",
                                                                  "inverted", "next")
    act = g.pick("Relu", "Relu", "HardSwish", "Silu", "LeakyRelu")
    x = g.input([g.pick(1, 1, 1, 2, 4), g.pick(1, 3, 3, 3, 4), size, size])
    width = g.pick(16, 24, 32, 40, 48, 64)
    x = g.activation(g.conv(x, width, g.pick(3, 3, 5, 7), 2), act)
    for stage in range(g.random.integers(2, 5)):
        for block in range(g.random.integers(1, 3)):
            stride = 2 if block == 0 and stage and g.shapes[x][2] > 7 else 1
            x = _block(g, x, style, width, stride, act)
        width = min(512, int(width * g.pick(1, 1.5, 2)) // 8 * 8)
    if g.chance(0.3):
        x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    return g.dense(g.pooled(x), g.pick(2, 10, 100, 1000))


def _block(g, x, style, width, stride, act):
    channels = g.shapes[x][1]
    if style == "plain":
        return g.activation(g.conv(x, width, g.pick(1, 3, 3, 5), stride), act)
    if style == "residual":
        y = g.conv(g.activation(g.conv(x, width, 3, stride), act), width, 3)
    elif style == "bottle":
        y = g.activation(g.conv(x, max(8, width // 2), 1), act)
        y = g.conv(g.activation(g.conv(y, max(8, width // 2), 3, stride), act), width, 1)
    elif style == "inverted":
        inner = channels * g.pick(2, 4, 6)
        y = g.activation(g.conv(x, inner, 1), act)
        y = g.activation(g.conv(y, inner, g.pick(3, 5), stride, groups=inner), act)
        y = g.conv(y, width, 1)
    else:
        y = g.conv(x, channels, 7, stride, groups=channels)
        y = g.conv(g.activation(g.conv(y, 4 * channels, 1), "Gelu"), width, 1)
    if stride == 1 and channels == width:
        return g.op("Add", x, y)
    if style in ("residual", "bottle"):
        return g.activation(g.op("Add", y, g.conv(x, width, 1, stride)), act)
    return g.activation(y, act)


def transformer(g):
    """Blocks of an encoder or decoder; sometimes with a second sequence."""
    each, heads = g.pick(16, 32, 32, 48, 64, 64, 80), g.pick(2, 3, 4, 6, 8, 12)
    width, length = each * heads, g.pick(7, 16, 24, 49, 64, 77, 100, 128, 197, 256)
    x = g.input([g.pick(1, 1, 1, 2, 3, 8), length, width])
    memory = g.input([g.shapes[x][0], g.pick(16, 37, 64, 120), width]) if g.chance(0.2) else None
    act = g.pick("Gelu", "Gelu", "Relu", "Silu")
    for _ in range(g.random.integers(1, 3)):
        x = g.op("Add", x, g.attention(g.norm(x), heads))
        if memory:
            x = g.op("Add", x, g.attention(g.norm(x), heads, memory))
        y, inner = g.norm(x), g.pick(2, 3, 4, 4) * width
        if g.chance(0.3):  # gated
            y = g.op("Mul", g.activation(g.dense(y, inner, False), act), g.dense(y, inner, False))
        else:
            y = g.activation(g.dense(y, inner), act)
        x = g.op("Add", x, g.dense(y, width))
    x = g.norm(x)
    return g.dense(x, g.pick(2, 64, 1000, 4000)) if g.chance(0.6) else x


def perceptron(g):
    """Dense layers, of recommenders and of small controllers."""
    x = g.input([g.pick(1, 1, 4, 16, 32, 64, 100, 256, 1024), g.pick(8, 13, 64, 128, 300, 784)])
    if g.chance(0.3):
        x = g.op("Concat", x, g.input(g.shapes[x]), axis=1)
    for _ in range(g.random.integers(2, 6)):
        x = g.activation(g.dense(x, g.pick(16, 30, 64, 100, 128, 200, 256, 512, 1000, 1024, 2048)))
    x = g.dense(x, g.pick(1, 2, 10, 100))
    return g.op(g.pick("Softmax", "Sigmoid", "Identity"), x)


def encoder_decoder(g):
    """Down and up again with skips, as in segmentation and super-resolution."""
    size = g.pick(32, 48, 64, 96, 128)
    x = g.input([g.pick(1, 1, 2), g.pick(1, 3, 4), size, size])
    width, act, skips = g.pick(8, 16, 24, 32), g.pick("Relu", "LeakyRelu", "Silu"), []
    for _ in range(g.random.integers(1, 4)):
        x = g.activation(g.conv(x, width, 3), act)
        skips.append(x)
        x = g.activation(g.conv(x, 2 * width, 3, 2), act)
        width = 2 * width
    for skip in reversed(skips):
        width //= 2
        batch, channels, *space = g.shapes[x]
        if g.chance(0.5):
            w = g.weight(channels, width, 2, 2, fan=4 * channels)
            x = g.op("ConvTranspose", x, w, kernel_shape=[2, 2], strides=[2, 2])
        else:
            x = g.op("Resize", x, "", g.constant(np.array([1, 1, 2, 2], np.float32)),
                     mode=g.pick("nearest", "linear"))
        x = g.op("Concat", x, skip, axis=1)
        x = g.activation(g.conv(x, width, 3), act)
    return g.conv(x, g.pick(1, 2, 3, 19), 1)


def recurrent(g):
    """Convolutions of sound, then an LSTM or GRU."""
    x = g.input([g.pick(1, 2, 4), g.pick(16, 40, 80), g.pick(32, 64, 100, 160)])
    for _ in range(g.random.integers(1, 3)):
        x = g.activation(g.conv(x, g.pick(32, 64, 96, 128, 256), g.pick(3, 5, 9), g.pick(1, 2)))
    batch, channels, length = g.shapes[x]
    x, hidden = g.transpose(x, 2, 0, 1), g.pick(32, 48, 64, 128, 192)
    kind, gates = g.pick(("LSTM", 4), ("GRU", 3))
    y = g.op(kind, x, g.weight(1, gates * hidden, channels, fan=channels),
             g.weight(1, gates * hidden, hidden, fan=hidden),
             g.weight(1, 2 * gates * hidden, fan=100), hidden_size=hidden)
    return g.dense(g.reshape(y, length * batch, hidden), g.pick(10, 29, 64, 512))


def quantised(g):
    """Layers whose operands are 8-bit integers, with their scales between."""
    isImage = g.chance(0.6)
    x = g.input([g.pick(1, 2), 3, g.pick(32, 48, 96), 64] if isImage
                else [g.pick(1, 8, 32, 128), g.pick(64, 128, 256, 512)])
    scale = g.number(0.05)

    def narrow(y):
        zero = g.constant(np.uint8(128))
        return g.op("DequantizeLinear", g.op("QuantizeLinear", y, scale, zero), scale, zero)

    def weight(*shape):
        values = g.random.integers(-127, 128, shape).astype(np.int8)
        return g.op("DequantizeLinear", g.constant(values), scale, g.constant(np.int8(0)))

    width = g.pick(16, 32, 48, 64)
    for layer in range(g.random.integers(2, 5)):
        x = narrow(x)
        if isImage:
            batch, channels, *space = g.shapes[x]
            stride = g.pick(1, 2) if min(space) > 8 else 1
            size = g.pick(1, 3, 3)
            x = g.op("Conv", x, weight(width, channels, size, size), kernel_shape=[size] * 2,
                     strides=[stride] * 2, pads=[size // 2] * 4)
            width = min(256, width * g.pick(1, 2))
        else:
            rows, columns = g.shapes[x]
            width = g.pick(64, 128, 256, 512, 768)
            x = g.op("MatMul", x, weight(columns, width))
        x = g.op("Relu", x)
    return narrow(x)


def statistics(g):
    """Reductions, softmaxes and elementwise chains over tensors of many shapes."""
    rows, columns = g.pick(1, 8, 64, 100, 512, 2000), g.pick(5, 17, 64, 100, 384, 1000, 4096)
    x, axes = g.input([rows, columns]), g.ints(-1)
    y = g.input([rows, columns]) if g.chance(0.5) else x
    for _ in range(g.random.integers(2, 6)):
        kind = g.pick("norm", "softmax", "center", "chain", "transpose", "columns")
        if kind == "norm":
            x = g.norm(x)
        elif kind == "softmax":
            x = g.op("Softmax", x, axis=-1)
        elif kind == "center":
            mean = g.op("ReduceMean", x, axes, keepdims=1)
            x = g.op("Sub", x, mean)
        elif kind == "columns":
            most = g.op("ReduceMax", x, g.ints(0), keepdims=1)
            x = g.op("Div", x, g.op("Add", g.op("Abs", most), g.number(1)))
        elif kind == "transpose":
            x = g.transpose(x, 1, 0)
            y = x
        else:
            x = g.activation(g.op(g.pick("Add", "Mul", "Sub", "Max"), x, y))
    return x


FAMILIES = {"convolutional": convolutional, "transformer": transformer, "perceptron": perceptron,
            "encoder_decoder": encoder_decoder, "recurrent": recurrent, "quantised": quantised,
            "statistics": statistics}
TRAINED = ("convolutional", "transformer", "perceptron")


def network(seed):
    """(name, model) of this seed."""
    g = Network(seed)
    names = list(FAMILIES)
    family = names[seed % len(names)]
    output = FAMILIES[family](g)
    is_step = family in TRAINED and (seed // len(names)) % 3 == 2
    model = g.trained(_mean_square(g, output)) if is_step else g.finished(output)
    return f"drawn_{seed:03}_{'step_of_' if is_step else ''}{family}", model
