"""Results that nothing but products of bf16 reads, which are stored as bf16: no number changes."""

import heddle as package
import numpy as np
import pytest
from command import save
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.usefixtures("compiler")

PLAN = {"plan": 1, "thresholds": {"bf16_saving": 0}, "groups": []}  # rounds on any machine


class Network:
    """A chain of nodes with random weights, from x to the name in `last`."""

    def __init__(self, shape, seed=0):
        self.nodes, self.weights, self.last, self.shape = [], [], "x", shape
        self.numbers = np.random.default_rng(seed)

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        made = self.numbers.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
        self.weights.append(numpy_helper.from_array(made.astype(np.float32), name))
        return name

    def add(self, op, *others, **attributes):
        out = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [self.last, *others], [out], **attributes))
        self.last = out
        return self

    def conv(self, into, out, kernel=3, **attributes):
        groups = attributes.get("group", 1)
        return self.add("Conv", self.weight(out, into // groups, kernel, kernel), self.weight(out),
                        **attributes)

    def product(self, into, out):
        return self.add("MatMul", self.weight(into, out)).add("Add", self.weight(out))

    def save(self, path, outputs=()):
        def info(name, shape=None):
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

        graph = helper.make_graph(
            self.nodes, "network", [info("x", self.shape)],
            [info(name) for name in (*outputs, self.last)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)],
                                  ir_version=9)
        return save(model, path)


def images(channels):
    """Convolutions, with and without borders, and what may be between them."""
    network = Network(["n", channels, "h", "w"]).conv(channels, 32, pads=[1] * 4).add("Relu")
    network.conv(32, 64, pads=[1] * 4).add("Relu").add("MaxPool", kernel_shape=[2, 2],
                                                        strides=[2, 2])
    network.conv(64, 32, 1).add("Relu").conv(32, 40, strides=[2, 2]).add("Relu").conv(40, 7, 1)
    return network


def rows(width):
    """Products of rows, through a nonlinearity and a transpose."""
    network = Network(["n", 5, width]).product(width, 96).add("Gelu").product(96, 33).add("Relu")
    network.add("Transpose", perm=[0, 2, 1]).add("Transpose", perm=[0, 2, 1])
    network.product(33, 64).add("Tanh").add("Transpose", perm=[1, 0, 2]).product(64, 17)
    return network


def attention(size):
    """Heads of `size`; few rows are read in another way than many."""
    network = Network(["n", "s", 4 * size])
    start = network.last
    parts = []
    for part in range(3):
        network.last = start
        network.product(4 * size, 4 * size).add("Reshape", "heads")
        network.add("Transpose", perm=[0, 2, 3, 1] if part == 1 else [0, 2, 1, 3])
        parts.append(network.last)
    network.last = parts[0]
    network.add("MatMul", parts[1]).add("Mul", "scale").add("Softmax").add("MatMul", parts[2])
    network.add("Transpose", perm=[0, 2, 1, 3]).add("Reshape", "rows").product(4 * size, 16)
    network.weights += [numpy_helper.from_array(np.array(x), name) for x, name in (
        ([0, 0, 4, size], "heads"), ([0, 0, 4 * size], "rows"))]
    network.weights.append(numpy_helper.from_array(np.float32(size ** -0.5), "scale"))
    return network


NETWORKS = {
    "images": (images(3), [(1, 3, 12, 13), (2, 3, 9, 31), (0, 3, 12, 12)]),
    "rows": (rows(64), [(1, 5, 64), (13, 5, 64), (64, 5, 64), (0, 5, 64)]),
    "odd rows": (rows(31), [(1, 5, 31), (7, 5, 31)]),
    "groups": (Network(["n", 8, 10, 10]).conv(8, 64, pads=[1] * 4).add("Relu")
               .conv(64, 64, group=4, pads=[1] * 4).add("Relu").conv(64, 64, group=64)
               .add("Relu").conv(64, 8, 1), [(1, 8, 10, 10), (3, 8, 10, 10)]),
    "dilated": (Network(["n", 4, 20, 20]).conv(4, 32).add("Relu").conv(32, 32, dilations=[2, 2])
                .add("Relu").conv(32, 16, 5, strides=[2, 2]), [(1, 4, 20, 20), (2, 4, 20, 20)]),
    "chosen": (Network(["n", 32]).product(32, 64).product(64, 64)
               .add("Clip", "low", "high").product(64, 8), [(1, 32), (33, 32)]),
}
NETWORKS["chosen"][0].weights += [numpy_helper.from_array(np.float32(x), name)
                                  for x, name in ((-0.123, "low"), (0.457, "high"))]


def sessions_of(path):
    """With results that are stored as bf16, and without."""
    for without in (None, "short-results"):
        made = package.compile(path, math="bf16-emulated", plan=PLAN, without=without)
        yield package.Session(made)


def runs(path, shapes, special=False):
    """Both sessions after a run of each shape, in which no number differs."""
    stored, wide = sessions_of(path)
    numbers = np.random.default_rng(1)
    for shape in shapes:
        x = numbers.normal(size=shape).astype(np.float32)
        if special and x.size:
            x.flat[numbers.integers(x.size, size=3)] = np.nan, np.inf, -np.inf
        found, wanted = (session.run(None, {"x": x})[0] for session in (stored, wide))
        np.testing.assert_array_equal(found, wanted, f"{shape}")
        yield x.size, stored, wide


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_no_number_changes(tmp_path, name, special):
    network, shapes = NETWORKS[name]
    for size, stored, wide in runs(network.save(tmp_path / "m.onnx"), shapes, special):
        assert not size or stored.memory["arena_bytes"] < wide.memory["arena_bytes"]


def test_no_number_of_an_attention_changes(tmp_path):
    shapes = [(1, 1, 64), (2, 3, 64), (1, 8, 64), (1, 40, 64), (0, 4, 64)]
    assert len(list(runs(attention(16).save(tmp_path / "m.onnx"), shapes))) == len(shapes)


def test_what_others_read_stays_as_it_is(tmp_path):
    """A result of the model, and one that is added to what follows it."""
    network = Network(["n", 64]).product(64, 64)
    kept = network.last
    network.product(64, 64)
    network.nodes.append(helper.make_node("Add", [kept, network.last], ["y"]))
    network.last = "y"
    for outputs in ((), (kept,)):
        stored, wide = sessions_of(network.save(tmp_path / "m.onnx", outputs))
        x = np.random.default_rng(2).normal(size=(33, 64)).astype(np.float32)
        for found, wanted in zip(stored.run(None, {"x": x}), wide.run(None, {"x": x})):
            np.testing.assert_array_equal(found, wanted)
        assert stored.memory["arena_bytes"] == wide.memory["arena_bytes"]
