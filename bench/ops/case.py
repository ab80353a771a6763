"""A case of bench.ops: a model of one op, what is fed to it, and how many elements it has."""

import dataclasses

import numpy as np
from heddle.onnx_graph import make_model, make_node

OPSETS = {"": 21, "ai.onnx.ml": 3, "com.microsoft": 1}
SIZES = ("small", "usual", "large")


@dataclasses.dataclass(frozen=True)
class Row:
    """An op, or a few, in one form. `feeds(n)` gives arrays for a size of about n elements."""
    op: str
    form: str
    feeds: object
    sizes: tuple = (64, 65536, 4194304)
    attributes: dict = dataclasses.field(default_factory=dict)
    constants: tuple = ()  # numbers of the feeds that the model holds itself
    outputs: int = 1
    domain: str = ""
    opset: int = 0
    nodes: object = None  # of several: from names of operands and results

    @property
    def name(self):
        return f"{self.op} {self.form}".strip()

    def model(self, feeds):
        """The model and what it is fed, by name."""
        names = [f"i{i}" if each is not None else "" for i, each in enumerate(feeds)]
        attributes = self.attributes
        if callable(attributes):
            attributes = attributes(feeds)
        outputs = [f"o{i}" for i in range(self.outputs)]
        nodes = self.nodes(names, outputs) if self.nodes else [
            make_node(self.op, names, outputs, domain=self.domain, **attributes)]
        held = {names[i]: feeds[i] for i in self.constants}
        given = {name: each for name, each in zip(names, feeds) if name and name not in held}
        domains = {"": OPSETS[""]} | {self.domain: self.opset or OPSETS[self.domain]}
        return make_model(nodes, given, outputs, held, domains=domains), given


random = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    return random.standard_normal(shape).astype(dtype)


def between(low, high, *shape, dtype=np.int64):
    """Random integers."""
    return random.integers(low, high, shape).astype(dtype)


def ints(*values):
    return np.array(values, np.int64)


def scalar(value, dtype=np.int64):
    return np.array(value, dtype)


def side(n):
    """The side of a square of n elements."""
    return max(1, round(n ** 0.5))
