"""blocks: blocks of published networks, with layers of their sizes and random weights.

`network(name)` is always the same model; `NAMES` has what there is: each in two sizes, and where
that can be with symbols for its batch, its length or its height and width. Beside `drawn`, which
varies what is common, these have what is rarer: windows, dilations, groups, gates, graphs, volumes,
caches. No rule of the compiler was made for them. Only `onnx` is needed.
"""

import numpy as np
from heddle.onnx_graph import FLOAT, INT64

from bench.networks.sized import Sized


class Block(Sized):
    """A model while it is built, in one of two sizes; `symbols`: of dimensions by their numbers."""

    def __init__(self, seed, is_big, symbols):
        super().__init__(seed)
        self.is_big, self.symbols = is_big, symbols

    def size(self, small, big):
        return big if self.is_big else small

    def input(self, shape, dtype=FLOAT):
        name = super().input(shape, dtype)
        for axis, symbol in self.symbols.items():
            self.inputs[-1].type.tensor_type.shape.dim[axis].dim_param = symbol
        return name

    def reshape(self, x, *shape):
        """Leading sizes that stay are copied, so that they may be symbols."""
        kept, given = True, []
        for axis, size in enumerate(shape):
            kept = kept and axis < len(self.shapes[x]) and size == self.shapes[x][axis]
            given.append(0 if kept else size)
        return self.op("Reshape", x, self.ints(*given))

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def concat(self, axis, *parts):
        return self.op("Concat", *parts, axis=axis)

    def slice(self, x, axis, begin, end, step=1):
        return self.op("Slice", x, *map(self.ints, (begin, end, axis, step)))

    def pads(self, x, *pads, value=0.0):
        return self.op("Pad", x, self.ints(*pads), self.number(value))

    def instance_norm(self, x):
        width = self.shapes[x][1]
        return self.op("InstanceNormalization", x, self.weight(width, fan=1),
                       self.weight(width, fan=100))

    def group_norm(self, x, groups=8):
        batch, channels, height, width = self.shapes[x]
        y = self.reshape(x, batch, groups, channels // groups * height * width)
        y = self.op("InstanceNormalization", y, self.constant(np.ones(groups, np.float32)),
                    self.constant(np.zeros(groups, np.float32)))
        y = self.reshape(y, batch, channels, height, width)
        y = self.op("Mul", y, self.weight(1, channels, 1, 1, fan=1))
        return self.op("Add", y, self.weight(1, channels, 1, 1, fan=100))

    def up(self, x, mode="nearest"):
        return self.op("Resize", x, "", self.constant(np.float32([1, 1, 2, 2])), mode=mode)

    def deconv(self, x, width, size=4, pad=1):
        _, channels, *space = self.shapes[x]
        rank = len(space)
        filters = self.weight(channels, width, *[size] * rank, fan=channels * 4)
        return self.op("ConvTranspose", x, filters, self.weight(width, fan=100),
                       kernel_shape=[size] * rank, strides=[2] * rank, pads=[pad] * 2 * rank)


# Images.


def resnext(g):
    x = g.input([1, 256, g.size(14, 56), g.size(14, 56)])
    for _ in range(2):
        y = g.op("Relu", g.conv(x, 128, 1))
        y = g.op("Relu", g.conv(y, 128, 3, groups=32))
        x = g.op("Relu", g.op("Add", x, g.conv(y, 256, 1)))
    return x


def convnext(g):
    """The norm has channels last, as the paper's code has it."""
    x = g.input([1, g.size(96, 192), g.size(28, 56), g.size(28, 56)])
    for _ in range(2):
        width = g.shapes[x][1]
        y = g.transpose(g.conv(x, width, 7, groups=width), 0, 2, 3, 1)
        y = g.dense(g.op("Gelu", g.dense(g.layer_norm(y), 4 * width)), width)
        y = g.op("Mul", y, g.weight(width, fan=100))
        x = g.op("Add", x, g.transpose(y, 0, 3, 1, 2))
    return x


def swin(g):
    """Attention in windows of 7 x 7."""
    side, width, heads = g.size(14, 28), g.size(96, 192), g.size(3, 6)
    x, count = g.input([1, side * side, width]), side // 7
    y = g.reshape(g.layer_norm(x), 1, count, 7, count, 7, width)
    y = g.reshape(g.transpose(y, 0, 1, 3, 2, 4, 5), count * count, 49, width)
    y = g.reshape(g.attention(y, heads), 1, count, count, 7, 7, width)
    x = g.op("Add", x, g.reshape(g.transpose(y, 0, 1, 3, 2, 4, 5), 1, side * side, width))
    y = g.dense(g.op("Gelu", g.dense(g.layer_norm(x), 4 * width)), width)
    return g.op("Add", x, y)


def mixer(g):
    x = g.input([1, g.size(49, 196), g.size(256, 512)])
    for _ in range(2):
        y = g.transpose(g.layer_norm(x), 0, 2, 1)
        y = g.dense(g.op("Gelu", g.dense(y, 256)), g.shapes[y][2])
        x = g.op("Add", x, g.transpose(y, 0, 2, 1))
        y = g.dense(g.op("Gelu", g.dense(g.layer_norm(x), 1024)), g.shapes[x][2])
        x = g.op("Add", x, y)
    return x


def efficientnet(g):
    x = g.input([1, g.size(24, 40), g.size(28, 56), g.size(28, 56)])
    for _ in range(2):
        width = g.shapes[x][1]
        y = g.silu(g.conv(x, 6 * width, 1))
        y = g.silu(g.conv(y, 6 * width, 5, groups=6 * width))
        gate = g.silu(g.conv(g.op("GlobalAveragePool", y), width // 4, 1))
        y = g.op("Mul", y, g.op("Sigmoid", g.conv(gate, 6 * width, 1)))
        x = g.op("Add", x, g.conv(y, width, 1))
    return x


def dcgan(g):
    x = g.input([g.size(1, 4), 100])
    x, width = g.reshape(g.dense(x, 256 * 16), g.shapes[x][0], 256, 4, 4), 128
    while width >= g.size(64, 32):
        x = g.op("Relu", g.deconv(x, width))
        width //= 2
    return g.op("Tanh", g.deconv(x, 3))


def deeplab(g):
    """Atrous spatial pyramid pooling."""
    x = g.input([1, g.size(64, 256), g.size(28, 40), g.size(28, 40)])
    parts = [g.conv(x, 64, 1)] + [g.conv(x, 64, 3, dilation=rate) for rate in (2, 4, 8)]
    x = g.op("Relu", g.concat(1, *parts))
    return g.up(g.conv(g.op("Relu", g.conv(x, 64, 1)), 21, 1), "linear")


def edsr(g):
    """Residual blocks without norms, then pixels from channels."""
    x = g.conv(g.input([1, 3, g.size(48, 96), g.size(48, 96)]), g.size(32, 64))
    first, width = x, g.shapes[x][1]
    for _ in range(2):
        x = g.op("Add", x, g.conv(g.op("Relu", g.conv(x, width)), width))
    x = g.conv(g.op("Add", g.conv(x, width), first), 12)
    batch, _, height, across = g.shapes[x]
    return g.op("DepthToSpace", x, blocksize=2, mode="CRD")


def yolo(g):
    """A cross-stage block and a path upwards."""
    x = g.input([1, g.size(32, 64), g.size(40, 80), g.size(40, 80)])
    width = g.shapes[x][1]
    y = g.silu(g.conv(x, 2 * width, 3, 2))
    left, right = g.slice(y, 1, 0, width), g.slice(y, 1, width, 2 * width)
    right = g.op("Add", right, g.silu(g.conv(g.silu(g.conv(right, width, 1)), width)))
    y = g.silu(g.conv(g.concat(1, left, right), width, 1))
    x = g.silu(g.conv(g.concat(1, g.up(y), x), width, 1))
    return g.op("Sigmoid", g.conv(g.silu(g.conv(x, width)), 3 * 85, 1))


def style(g):
    x = g.pads(g.input([1, 3, g.size(56, 112), g.size(56, 112)]), 0, 0, 4, 4, 0, 0, 4, 4)
    width = g.size(16, 32)
    y = g.op("Relu", g.instance_norm(g.conv(x, width, 9)))
    y = g.op("Relu", g.instance_norm(g.conv(y, 2 * width, 3, 2)))
    z = g.op("Relu", g.instance_norm(g.conv(y, 2 * width)))
    y = g.op("Add", y, g.instance_norm(g.conv(z, 2 * width)))
    return g.conv(g.op("Relu", g.instance_norm(g.conv(g.up(y), width))), 3, 9)


def inception(g):
    x = g.input([1, 192, g.size(14, 28), g.size(14, 28)])
    pool = g.op("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
    wide = g.op("Relu", g.conv(x, 96, 1))
    five = g.op("Relu", g.conv(x, 16, 1))
    return g.op("Relu",
                g.concat(1, g.conv(x, 64, 1), g.conv(wide, 128, 3), g.conv(five, 32, 5),
                         g.conv(pool, 32, 1)))


def dense_block(g):
    """Norms before activations before convolutions, whose inputs grow."""
    x = g.input([1, 64, g.size(14, 28), g.size(14, 28)])
    for _ in range(g.size(4, 6)):
        channels = g.shapes[x][1]
        y = g.op("Mul", x, g.weight(1, channels, 1, 1, fan=1))
        y = g.op("Relu", g.op("Add", y, g.weight(1, channels, 1, 1, fan=100)))
        x = g.concat(1, x, g.conv(g.op("Relu", g.conv(y, 128, 1)), 32))
    return x


def shuffle(g):
    x = g.input([1, g.size(48, 116), 28, 28])
    for _ in range(3):
        channels = g.shapes[x][1]
        left, right = g.slice(x, 1, 0, channels // 2), g.slice(x, 1, channels // 2, channels)
        right = g.op("Relu", g.conv(right, channels // 2, 1))
        right = g.conv(right, channels // 2, 3, groups=channels // 2)
        x = g.concat(1, left, g.op("Relu", g.conv(right, channels // 2, 1)))
        x = g.reshape(g.transpose(g.reshape(x, 1, 2, channels // 2, 28, 28), 0, 2, 1, 3, 4), 1,
                      channels, 28, 28)
    return x


def diffusion(g):
    """A residual block of a diffusion model with attention of its pixels."""
    width, side = g.size(64, 128), g.size(8, 16)
    x, when = g.input([1, width, side, side]), g.input([1, 256])
    y = g.conv(g.silu(g.group_norm(x)), width)
    shift = g.reshape(g.dense(g.silu(when), width), 1, width, 1, 1)
    y = g.op("Add", y, shift)
    x = g.op("Add", x, g.conv(g.silu(g.group_norm(y)), width))
    y = g.transpose(g.reshape(g.group_norm(x), 1, width, side * side), 0, 2, 1)
    y = g.reshape(g.transpose(g.attention(y, 4), 0, 2, 1), 1, width, side, side)
    return g.op("Add", x, y)


def video(g):
    """Convolutions of volumes, as in C3D."""
    side = g.size(16, 32)
    x = g.input([1, 3, 8, side, side])
    x = g.op("Relu", g.conv(x, 32))
    x = g.op("MaxPool", x, kernel_shape=[2] * 3, strides=[2] * 3)
    return g.pooled(g.op("Relu", g.conv(x, g.size(32, 64))))


def filters(g):
    """Blurred, its edges, and statistics of windows."""
    x = g.input([1, 3, g.size(64, 256), g.size(64, 256)])
    blurred = g.conv(x, 3, 5, groups=3)
    square = g.op("Mul", *[g.op("Sub", x, blurred)] * 2)
    local = g.op("AveragePool", square, kernel_shape=[7, 7], pads=[3] * 4, strides=[1, 1],
                 count_include_pad=1)
    gain = g.op("Div", g.number(1.0), g.op("Sqrt", g.op("Add", local, g.number(0.01))))
    return g.op("Clip", g.op("Mul", g.op("Sub", x, blurred), gain), g.number(-2.0), g.number(2.0))


# Sound and sequences.


def wavenet(g):
    """Dilated causal convolutions with gates."""
    x, width = g.input([1, g.size(32, 64), g.size(256, 1024)]), g.size(32, 64)
    skips = []
    for layer in range(5):
        rate = 2 ** layer
        y = g.pads(x, 0, 0, rate, 0, 0, 0)
        batch, _, length = g.shapes[x]

        def dilated(y=y, length=length, batch=batch, rate=rate):
            return g.op("Conv", y, g.weight(width, width, 2, fan=2 * width),
                        g.weight(width, fan=100), kernel_shape=[2], dilations=[rate])

        y = g.op("Mul", g.op("Tanh", dilated()), g.op("Sigmoid", dilated()))
        skips.append(g.conv(y, width, 1))
        x = g.op("Add", x, g.conv(y, width, 1))
    for skip in skips[1:]:
        skips[0] = g.op("Add", skips[0], skip)
    return g.conv(g.op("Relu", skips[0]), 256, 1)


def conv_tasnet(g):
    x = g.input([1, g.size(64, 128), g.size(200, 800)])
    for layer in range(3):
        width = 2 * g.shapes[x][1]
        y = g.conv(x, width, 1)
        y = g.op("PRelu", y, g.constant(np.full((1, 1), 0.25, np.float32)))
        y = g.instance_norm(y)
        y = g.conv(y, width, 3, groups=width, dilation=2 ** layer)
        y = g.op("PRelu", y, g.constant(np.full((1, 1), 0.25, np.float32)))
        x = g.op("Add", x, g.conv(g.instance_norm(y), g.shapes[x][1], 1))
    return x


def conformer(g):
    """Half a feed-forward layer, attention, and a convolution with a gate."""
    x = g.input([1, g.size(50, 200), g.size(144, 256)])
    width = g.shapes[x][2]
    y = g.dense(g.silu(g.dense(g.layer_norm(x), 4 * width)), width)
    x = g.op("Add", x, g.op("Mul", y, g.number(0.5)))
    x = g.op("Add", x, g.attention(g.layer_norm(x), 4))
    y = g.transpose(g.dense(g.layer_norm(x), 2 * width), 0, 2, 1)
    y = g.op("Mul", g.slice(y, 1, 0, width), g.op("Sigmoid", g.slice(y, 1, width, 2 * width)))
    y = g.silu(g.conv(y, width, 15, groups=width))
    return g.op("Add", x, g.dense(g.transpose(y, 0, 2, 1), width))


def tagger(g):
    """An LSTM in both directions."""
    length, hidden = g.size(20, 60), g.size(64, 128)
    x = g.input([length, g.size(1, 4), 100])
    batch = g.shapes[x][1]
    y = g.op("LSTM", x, g.weight(2, 4 * hidden, 100, fan=100),
             g.weight(2, 4 * hidden, hidden, fan=hidden), g.weight(2, 8 * hidden, fan=9),
             hidden_size=hidden, direction="bidirectional")
    y = g.reshape(g.transpose(y, 0, 2, 1, 3), length, batch, 2 * hidden)
    return g.op("LogSoftmax", g.dense(y, 17), axis=-1)


def llama(g):
    """A layer of a decoder: root mean squares, rotated positions, gates."""
    length, heads, each = g.size(16, 64), g.size(4, 8), 64
    width = heads * each
    x = g.input([1, length, width])
    h = g.rms_norm(x)
    angles = np.outer(np.arange(length), 1e4 ** (-np.arange(0, each, 2) / each))
    cos, sin = (g.constant(np.tile(f(angles), 2).astype(np.float32)) for f in (np.cos, np.sin))

    def heads_of(rotated):
        y = g.reshape(g.dense(h, width, False), 1, length, heads, each)
        y = g.transpose(y, 0, 2, 1, 3)
        if not rotated:
            return y
        half = g.concat(3, g.op("Neg", g.slice(y, 3, each // 2, each)), g.slice(y, 3, 0, each // 2))
        return g.op("Add", g.op("Mul", y, cos), g.op("Mul", half, sin))

    q, k, v = heads_of(True), heads_of(True), heads_of(False)
    scores = g.op("MatMul", q, g.transpose(k, 0, 1, 3, 2))
    scores = g.op("Mul", scores, g.number(each ** -0.5))
    scores = g.op("Add", scores,
                  g.constant(np.triu(np.full((length, length), -1e9, np.float32), 1)))
    y = g.transpose(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), 0, 2, 1, 3)
    x = g.op("Add", x, g.dense(g.reshape(y, 1, length, width), width, False))
    h, inner = g.rms_norm(x), 8 * width // 3 // 8 * 8
    y = g.op("Mul", g.silu(g.dense(h, inner, False)), g.dense(h, inner, False))
    return g.op("Add", x, g.dense(y, width, False))


def decoding(g):
    """One token beside a cache of keys and values."""
    heads, each, past = g.size(4, 12), 64, g.size(64, 512)
    width = heads * each
    x = g.input([1, 1, width])
    keys, values = g.input([1, heads, past, each]), g.input([1, heads, past, each])
    h = g.layer_norm(x)

    def heads_of():
        return g.transpose(g.reshape(g.dense(h, width), 1, 1, heads, each), 0, 2, 1, 3)

    q, k, v = heads_of(), g.concat(2, keys, heads_of()), g.concat(2, values, heads_of())
    scores = g.op("Mul", g.op("MatMul", q, g.transpose(k, 0, 1, 3, 2)), g.number(0.125))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    x = g.op("Add", x, g.dense(g.reshape(g.transpose(y, 0, 2, 1, 3), 1, 1, width), width))
    y = g.dense(g.op("Gelu", g.dense(g.layer_norm(x), 4 * width)), width)
    return g.op("Add", x, y)


def linear_attention(g):
    """Keys times values first: a sum over positions instead of a softmax."""
    length, heads, each = g.size(128, 512), 4, 32
    width = heads * each
    x = g.input([1, length, width])

    def heads_of():
        y = g.reshape(g.dense(x, width), 1, length, heads, each)
        return g.transpose(y, 0, 2, 1, 3)

    def kept(y):
        return g.op("Add", g.op("Elu", y), g.number(1.0))

    q, k, v = kept(heads_of()), kept(heads_of()), heads_of()
    state = g.op("MatMul", g.transpose(k, 0, 1, 3, 2), v)
    total = g.op("ReduceSum", k, g.ints(2), keepdims=1)
    below = g.op("MatMul", q, g.transpose(total, 0, 1, 3, 2))
    y = g.op("Div", g.op("MatMul", q, state), below)
    return g.op("Add", x, g.dense(g.reshape(g.transpose(y, 0, 2, 1, 3), 1, length, width), width))


def perceiver(g):
    """Few queries that are weights read many inputs."""
    x = g.input([1, g.size(256, 1024), 64])
    latents = g.op("Identity",
                   g.constant(g.random.standard_normal((1, 32, 128)).astype(np.float32)))
    y = g.op("Add", latents, g.attention(g.layer_norm(latents), 4, g.layer_norm(x)))
    y = g.op("Add", y, g.dense(g.op("Gelu", g.dense(g.layer_norm(y), 512)), 128))
    return g.op("Add", y, g.attention(g.layer_norm(y), 4))


# Tables, points, graphs.


def dlrm(g):
    """Embeddings, and the products of all pairs of them."""
    batch, each = g.size(16, 128), 32
    x, numbers = g.input([batch, 13]), g.input([batch, 8], INT64)
    dense = g.op("Relu", g.dense(g.op("Relu", g.dense(x, 128)), each))
    table = g.constant((0.1 * g.random.standard_normal((1000, each))).astype(np.float32))
    rows = g.op("Gather", table, numbers, axis=0)
    all_ = g.concat(1, g.reshape(dense, batch, 1, each), rows)
    pairs = g.op("MatMul", all_, g.transpose(all_, 0, 2, 1))
    x = g.concat(1, dense, g.reshape(pairs, batch, 81))
    x = g.op("Relu", g.dense(g.op("Relu", g.dense(x, 256)), 64))
    return g.op("Sigmoid", g.dense(x, 1))


def factors(g):
    """Factorisation machines: squares of sums less sums of squares."""
    x = g.input([g.size(64, 1024), 26, 16])
    batch = g.shapes[x][0]
    total = g.op("ReduceSum", x, g.ints(1), keepdims=0)
    squares = g.op("ReduceSum", g.op("Mul", x, x), g.ints(1), keepdims=0)
    pair = g.op("Sub", g.op("Mul", total, total), squares)
    deep = g.op("Relu", g.dense(g.reshape(x, batch, 416), 64))
    return g.op("Sigmoid", g.dense(g.concat(1, pair, deep), 1))


def points(g):
    """PointNet: what each point says, and the most of all."""
    x = g.input([1, 3, g.size(256, 1024)])
    for width in (64, 64, 128, g.size(256, 1024)):
        x = g.op("Relu", g.conv(x, width, 1))
    x = g.op("ReduceMax", x, g.ints(2), keepdims=0)
    return g.dense(g.op("Relu", g.dense(x, 256)), 40)


def neighbours(g):
    """Distances of all pairs, and the nearest ones."""
    rows, width = g.size(64, 256), g.size(16, 64)
    x, y = g.input([rows, width]), g.input([2 * rows, width])
    product = g.op("MatMul", x, g.transpose(y, 1, 0))

    def squares(z, shape):
        total = g.op("ReduceSum", g.op("Mul", z, z), g.ints(1), keepdims=0)
        return g.reshape(total, *shape)

    far = g.op("Sub", squares(x, (rows, 1)), g.op("Mul", product, g.number(2.0)))
    far = g.op("Add", far, squares(y, (1, 2 * rows)))
    return g.op("ReduceMin", g.op("Sqrt", g.op("Relu", far)), g.ints(1), keepdims=0)


def graph(g):
    """Messages along edges, summed at their ends, as in graph networks."""
    nodes, edges, width = g.size(200, 1000), g.size(1000, 5000), 64
    x = g.input([nodes, width])
    ends = [g.constant(g.random.integers(0, nodes, edges)) for _ in range(2)]
    for _ in range(2):
        sent = g.op("Gather", x, ends[0], axis=0)
        sent = g.op("Relu", g.dense(sent, width))
        target = g.op("Unsqueeze", ends[1], g.ints(1))
        target = g.op("Expand", target, g.ints(edges, width))
        zeros = g.constant(np.zeros((nodes, width), np.float32))
        total = g.op("ScatterElements", zeros, target, sent, axis=0, reduction="add")
        x = g.op("Relu", g.op("Add", g.dense(x, width), g.dense(total, width)))
    return x


def radiance(g):
    """Sines and cosines of positions, then a perceptron with a skip."""
    x = g.input([g.size(256, 2048), 3])
    waves = g.dense(x, 30, bias=False)
    first = g.concat(1, x, g.op("Sin", waves), g.op("Cos", waves))
    y = first
    for layer in range(4):
        y = g.op("Relu", g.dense(g.concat(1, y, first) if layer == 2 else y, 128))
    return g.op("Sigmoid", g.dense(y, 4))


def experts(g):
    """Four perceptrons, weighted by a gate."""
    x = g.input([g.size(16, 128), 128])
    gate = g.op("Softmax", g.dense(x, 4), axis=-1)
    total = None
    for i in range(4):
        y = g.dense(g.op("Gelu", g.dense(x, 256)), 128)
        y = g.op("Mul", y, g.slice(gate, 1, i, i + 1))
        total = g.op("Add", total, y) if total else y
    return total


def small_matrices(g):
    """The update of a covariance, of many filters at once."""
    batch, n = g.size(64, 1000), g.size(6, 12)
    p, f = g.input([batch, n, n]), g.input([batch, n, n])
    y = g.op("MatMul", g.op("MatMul", f, p), g.transpose(f, 0, 2, 1))
    return g.op("Add", y, g.constant(np.eye(n, dtype=np.float32)))


MAKERS = {each.__name__: each for each in (
    resnext, convnext, swin, mixer, efficientnet, dcgan, deeplab, edsr, yolo, style, inception,
    dense_block, shuffle, diffusion, video, filters, wavenet, conv_tasnet, conformer, tagger,
    llama, decoding, linear_attention, perceiver, dlrm, factors, points, neighbours, graph,
    radiance, experts, small_matrices)}
IMAGE, SOUND, ROWS = {2: "height", 3: "width"}, {2: "length"}, {0: "batch"}
SYMBOLS = {"resnext": IMAGE, "convnext": IMAGE, "efficientnet": IMAGE, "deeplab": IMAGE,
           "edsr": IMAGE, "yolo": IMAGE, "inception": IMAGE, "dense_block": IMAGE,
           "filters": IMAGE, "conv_tasnet": SOUND, "points": SOUND, "dcgan": ROWS, "dlrm": ROWS,
           "factors": ROWS, "radiance": ROWS, "experts": ROWS, "small_matrices": ROWS}
SIZES = ("small", "dynamic", "big")
NAMES = [f"{maker}_{size}" for size in SIZES for maker in MAKERS
         if size != "dynamic" or maker in SYMBOLS]


def network(name):
    """The model of this name."""
    maker, size = name.rsplit("_", 1)
    symbols = SYMBOLS[maker] if size == "dynamic" else {}
    g = Block(list(MAKERS).index(maker), size == "big", symbols)
    return g.finished(MAKERS[maker](g), are_sized=not symbols)
