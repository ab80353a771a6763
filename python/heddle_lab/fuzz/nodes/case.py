"""case: one node with its inputs, and the model that it becomes.

SPDX-License-Identifier: Apache-2.0
"""

import copy
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from heddle.onnx_graph import make_model, make_node, make_value

# Forms of an input of the model. `open`: a flat input that a Reshape, whose shape is an input too,
# gives its shape; so the rank is known when the model is compiled and no size is.
FORMS = ("constant", "fixed", "symbols", "shared", "open")
ML = "ai.onnx.ml"


def limits(dtype):
    """(least, greatest) of an integer dtype, also of those that NumPy itself does not know."""
    import ml_dtypes

    about = np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.iinfo(dtype)
    return int(about.min), int(about.max)


def is_integer(dtype):
    return dtype.kind in "iu" or dtype.name in ("int4", "uint4", "int2", "uint2")


@dataclass
class Case:
    """A node and what it is fed. `inputs` are arrays, or None for one that is left out."""

    op: str
    domain: str
    opset: int
    attributes: list  # of AttributeProto
    inputs: list
    outputs: int
    forms: list = field(default_factory=list)
    name: str = ""

    def copy(self):
        return copy.deepcopy(self)

    def input_names(self):
        return [f"x{i}" if array is not None else "" for i, array in enumerate(self.inputs)]

    def model(self):
        """(model, feeds)"""
        graph = _Graph()
        names = [graph.add(f"x{i}", array, form) if array is not None else ""
                 for i, (array, form) in enumerate(zip(self.inputs, self.forms))]
        while names and not names[-1]:
            names.pop()
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = make_node(self.op, names, outputs, "the node", domain=self.domain)
        node.attribute.extend(self.attributes)
        model = make_model([*graph.nodes, node], graph.inputs, outputs, graph.constants, opset=21,
                           domains={self.domain: self.opset})
        return model, graph.feeds

    def __str__(self):
        def shown(array):
            if array is None:
                return "-"
            return f"{array.dtype}{list(array.shape)} {array.ravel().tolist()[:12]}"

        inputs = "; ".join(f"{form} {shown(array)}" for array, form in zip(self.inputs, self.forms))
        attributes = ", ".join(f"{a.name}={helper.get_attribute_value(a)}" for a in self.attributes)
        return f"{self.domain or 'onnx'}.{self.op}-{self.opset}({attributes}) on {inputs}"


class _Graph:
    """The model's inputs, constants and nodes that make the inputs of the node."""

    def __init__(self):
        self.inputs, self.constants, self.nodes, self.feeds = [], {}, [], {}

    def add(self, name, array, form):
        if form == "constant":
            self.constants[name] = array
            return name
        if form == "open":
            self._feed(f"{name}_flat", array.reshape(-1), [f"{name}_count"])
            self._feed(f"{name}_shape", np.array(array.shape, np.int64), [array.ndim])
            self.nodes.append(make_node("Reshape", [f"{name}_flat", f"{name}_shape"], [name],
                                        f"shape of {name}", allowzero=1))
            return name
        dims = {"fixed": list(array.shape),
                "symbols": [f"{name}_{i}" for i in range(array.ndim)],
                "shared": [f"s{size}" for size in array.shape]}[form]
        self._feed(name, array, dims)
        return name

    def _feed(self, name, array, dims):
        self.inputs.append(make_value(name, dims, array.dtype))
        self.feeds[name] = array


def case_of(model, arrays):
    """The Case of a model of one node, or None where it is more than a node of tensors."""
    node, = model.graph.node
    if any(a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
           for a in node.attribute):
        return None
    values = dict(zip([value.name for value in model.graph.input], arrays))
    values.update((t.name, numpy_helper.to_array(t)) for t in model.graph.initializer)
    inputs = [values.get(name) if name else None for name in node.input]
    if any(name and not isinstance(array, np.ndarray)
           for name, array in zip(node.input, inputs)):
        return None
    domain = "" if node.domain == "ai.onnx" else node.domain
    opset = next((o.version for o in model.opset_import
                  if ("" if o.domain == "ai.onnx" else o.domain) == domain), 1)
    return Case(node.op_type, domain, opset, list(node.attribute), inputs, len(node.output),
                ["fixed"] * len(inputs))
