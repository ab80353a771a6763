"""seeded: ONNX graphs whose weights are drawn from their names, so that these need not be carried.

    net = Network()
    y = net.linear(net.input("x", ["n", 8]), "dense", 8, 4)
    save(net.whole(y, ["n", 4]), folder)    # model.onnx without weights, and what these are
    fill(folder)                            # draws them, with NumPy alone

Weights have the names of torch's parameters, with ".T" where the graph has them turned: whoever
makes the module in torch gives it the same ones. No torch is needed to make the graph.
"""

import json
import zlib
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from heddle.onnx_graph import FLOAT, INT64, Graph, make_model

MODEL, LIST, FILE = "model.onnx", "weights.json", "weights.bin"
HIDDEN = np.float32(np.finfo(np.float32).min)


@dataclass(frozen=True)
class Weight:
    """A parameter as torch has it: normal numbers about `mean`."""

    name: str
    shape: tuple
    scale: float
    mean: float = 0.0

    def draw(self):
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        drawn = random.standard_normal(self.shape, np.float32)
        return drawn * np.float32(self.scale) + np.float32(self.mean)


def value(name, weight):
    """The values of an initializer."""
    return np.ascontiguousarray(weight.draw().T) if name.endswith(".T") else weight.draw()


class Network(Graph):
    """A graph whose weights are drawn when they are needed."""

    def __init__(self):
        super().__init__()
        self.weights = {}  # by initializer

    def weight(self, name, *shape, scale=0.1, mean=0.0, is_turned=False):
        """An initializer; `shape` is torch's."""
        placed = name + ".T" * is_turned
        self.weights[placed] = Weight(name, shape, scale, mean)
        return placed

    def linear(self, x, name, rows, columns, bias=True, scale=1.0, is_turned=True, dot="."):
        """torch's Linear, which is turned, or a matrix as it is."""
        w = self.weight(f"{name}{dot}weight", *((columns, rows) if is_turned else (rows, columns)),
                        scale=scale * rows**-0.5, is_turned=is_turned)
        y = self.op("MatMul", x, w)
        return self.op("Add", y, self.weight(f"{name}{dot}bias", columns)) if bias else y

    def norm(self, x, name, width, epsilon):
        return self.op("LayerNormalization", x, self.weight(f"{name}.weight", width, mean=1.0),
                       self.weight(f"{name}.bias", width), axis=-1, epsilon=epsilon)

    def rms(self, x, name, width, epsilon=1e-6):
        mean = self.op("ReduceMean", self.op("Pow", x, self.number(2)), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.number(epsilon)))
        return self.op("Mul", self.weight(f"{name}.weight", width, mean=1.0),
                       self.op("Div", x, root))

    def number(self, value):
        return self.constant(np.float32(value))

    def ints(self, *values):
        return self.constant(np.int64(values))

    def gelu(self, x):
        half = self.op("Add", self.op("Erf", self.op("Mul", x, self.number(0.5**0.5))),
                       self.number(1))
        return self.op("Mul", self.op("Mul", x, half), self.number(0.5))

    def gelu_new(self, x):
        """By a hyperbolic tangent."""
        cube = self.op("Mul", self.op("Pow", x, self.number(3)), self.number(0.044715))
        inner = self.op("Mul", self.op("Add", x, cube), self.number((2 / np.pi) ** 0.5))
        half = self.op("Add", self.op("Tanh", inner), self.number(1))
        return self.op("Mul", self.op("Mul", x, self.number(0.5)), half)

    def mixture(self, q, k, v, bias=None, scale=None):
        """Attention; keys are turned."""
        scores = self.op("MatMul", q, k)
        if scale:
            scores = self.op("Mul", scores, self.number(scale))
        if bias:
            scores = self.op("Add", scores, bias)
        return self.op("MatMul", self.op("Softmax", scores, axis=-1), v)

    def attend(self, q, k, v, heads, bias=None, scale=None):
        """q, k and v [batch, length, width] -> their mixture."""
        split = self.ints(0, 0, heads, -1)
        q, k, v = (self.op("Transpose", self.op("Reshape", x, split), perm=perm) for x, perm in (
            (q, (0, 2, 1, 3)), (k, (0, 2, 3, 1)), (v, (0, 2, 1, 3))))
        mixed = self.mixture(q, k, v, bias, scale)
        return self.op("Reshape", self.op("Transpose", mixed, perm=(0, 2, 1, 3)),
                       self.ints(0, 0, -1))

    def tokens(self):
        """input_ids and attention_mask [batch, seq] -> the names of ids and of the mask's bias."""
        ids, mask = (self.input(name, ["batch", "seq"], INT64)
                     for name in ("input_ids", "attention_mask"))
        kept = self.op("Cast", self.op("Unsqueeze", mask, self.ints(1, 2)), to=FLOAT)
        return ids, self.op("Mul", self.op("Sub", self.number(1), kept), self.number(HIDDEN))

    def places(self, ids):
        """0, 1, ... seq - 1."""
        length = self.op("Squeeze", self.op("Shape", ids, start=1, end=2))
        return self.op("Range", self.constant(np.int64(0)), length, self.constant(np.int64(1)))

    def gather(self, name, shape, ids):
        return self.op("Gather", self.weight(name, *shape), ids)

    def pick(self, x, place):
        """One token of each row, [batch, width]."""
        return self.op("Gather", x, self.constant(np.int64(place)), axis=1)

    def whole(self, given, shape):
        """The network with this output."""
        self.output(self.op("Identity", given, name="output"), shape)
        return self

    def model(self, opset=17, ir_version=8, is_filled=True, **more):
        """The ModelProto; with no weights in it where these are to lie in FILE."""
        from onnx import TensorProto, numpy_helper
        made = [numpy_helper.from_array(array, name) for name, array in self.arrays.items()]
        offset = 0
        for name, weight in self.weights.items():
            if is_filled:
                made.append(numpy_helper.from_array(self.drawn(name), name))
                continue
            dims = weight.shape[::-1] if name.endswith(".T") else weight.shape
            tensor = TensorProto(name=name, dims=dims, data_type=FLOAT,
                                 data_location=TensorProto.EXTERNAL)
            size = 4 * int(np.prod(weight.shape))
            for key, value in (("location", FILE), ("offset", offset), ("length", size)):
                tensor.external_data.add(key=key, value=str(value))
            offset += size
            made.append(tensor)
        return make_model(self.nodes, self.inputs, self.outputs, made, opset,
                          ir_version=ir_version, **more)

    def drawn(self, name):
        return value(name, self.weights[name])


def save(net, folder):
    """Writes the model without its weights."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MODEL).write_bytes(net.model(is_filled=False).SerializeToString())
    listed = {name: astuple(weight) for name, weight in net.weights.items()}
    (folder / LIST).write_text(json.dumps(listed), encoding="utf-8")


def weights(folder):
    """{initializer: Weight} of a model that was saved."""
    listed = json.loads((Path(folder) / LIST).read_text(encoding="utf-8"))
    return {name: Weight(of, tuple(shape), *numbers)
            for name, (of, shape, *numbers) in listed.items()}


def fill(folder):
    """Draws the weights of a model that was saved; gives the path of the model."""
    folder = Path(folder)
    if not (folder / FILE).exists():
        partial = folder / f"{FILE}.part"
        with open(partial, "wb") as out:
            for name, weight in weights(folder).items():
                value(name, weight).tofile(out)
        partial.replace(folder / FILE)
    return folder / MODEL
