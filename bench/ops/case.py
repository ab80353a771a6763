"""A case of bench.ops: a model of one op, what is fed to it, and how many elements it has."""

import dataclasses

import numpy as np
from onnx import TensorProto, helper, numpy_helper

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
            helper.make_node(self.op, names, outputs, domain=self.domain, **attributes)]
        held = {names[i]: feeds[i] for i in self.constants}
        given = {name: each for name, each in zip(names, feeds) if name and name not in held}
        infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype),
                                               each.shape) for name, each in given.items()]
        graph = helper.make_graph(
            nodes, self.op, infos, [_unknown(name) for name in outputs],
            [numpy_helper.from_array(each, name) for name, each in held.items()])
        domains = {"": OPSETS[""]} | {self.domain: self.opset or OPSETS[self.domain]}
        return helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid(*each) for each in domains.items()]), given


def _unknown(name):
    """An output of which the model says nothing."""
    info = helper.make_empty_tensor_value_info(name)
    info.type.tensor_type.elem_type = TensorProto.UNDEFINED
    info.ClearField("type")
    return info


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
    """Of a square of n elements."""
    return max(1, round(n ** 0.5))
