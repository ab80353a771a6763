"""onnx_graph: ONNX graphs, read and built.

    graph = Graph(seed=0)
    x = graph.input("x", ["batch", 8])
    y = graph.op("Relu", graph.op("MatMul", x, graph.weight(8, 4)), name="y")
    graph.output(y, ["batch", 4])
    model = graph.model(opset=17)

or, with names of one's own:

    model = make_model([make_node("MatMul", "x w", "h"), make_node("Relu", "h", "y")],
                       {"x": ["batch", 8]}, "y", {"w": numpy.ones((8, 4), "float32")})

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from .packages import need

FLOAT, INT64, STRING = 1, 7, 8  # of onnx.TensorProto


def nodes_of(graph):
    """The nodes of a graph and of the graphs in their attributes, each before those in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from nodes_of(inner)


def make_node(kind, inputs, outputs, name=None, **attributes):
    """A NodeProto. Operands are a list of names, or a text of names with blanks between them."""
    inputs, outputs = (each.split() if isinstance(each, str) else each
                       for each in (inputs, outputs))
    return _onnx().helper.make_node(kind, inputs, outputs, name, **attributes)


def make_value(name, shape, dtype=FLOAT):
    """The ValueInfoProto of a tensor; sizes are numbers, names or None, and so is the list. The
    type is a number of onnx.TensorProto, or NumPy's."""
    helper = _onnx().helper
    if not isinstance(dtype, int):
        dtype = STRING if dtype.kind in "OSU" else helper.np_dtype_to_tensor_dtype(dtype)
    return helper.make_tensor_value_info(name, dtype, shape)


def make_graph(nodes, inputs, outputs, constants=(), name="graph", **more):
    """A GraphProto. Inputs and outputs are a dictionary whose values are shapes of f32, pairs of a
    shape and a type, TypeProtos, or arrays whose shape and type they have; or a list of
    ValueInfoProtos, and of names, or a text of names, where nothing is known of them. Constants are
    TensorProtos, or arrays by name; `more` is of onnx.helper.make_graph."""
    onnx = _onnx()
    if isinstance(constants, dict):
        constants = [onnx.numpy_helper.from_array(np.asarray(array), each)
                     for each, array in constants.items()]
    return onnx.helper.make_graph(nodes, name, _values(inputs), _values(outputs), constants, **more)


def make_model(nodes, inputs, outputs, constants=(), opset=17, domains=(), ir_version=10, **more):
    """The ModelProto of the graph that make_graph makes of these; `domains` are versions of further
    opsets by name, `more` is of onnx.helper.make_model."""
    helper = _onnx().helper
    imports = [helper.make_opsetid(*each) for each in {"": opset, **dict(domains)}.items()]
    return helper.make_model(make_graph(nodes, inputs, outputs, constants), ir_version=ir_version,
                             opset_imports=imports, **more)


def _onnx():
    return need("onnx", "building a graph", "training")


def _values(given):
    """The ValueInfoProtos of inputs or outputs."""
    onnx = _onnx()

    def value(name, what):
        if isinstance(what, onnx.TypeProto):
            return onnx.helper.make_value_info(name, what)
        if isinstance(what, (np.ndarray, np.generic)):
            what = what.shape, what.dtype
        is_pair = isinstance(what, tuple) and len(what) == 2 and isinstance(what[0], (list, tuple))
        return make_value(name, *what) if is_pair else make_value(name, what)

    if isinstance(given, dict):
        return [value(*each) for each in given.items()]
    given = given.split() if isinstance(given, str) else given
    return [onnx.ValueInfoProto(name=each) if isinstance(each, str) else each for each in given]


class Graph:
    """A graph as it grows: each method adds something and returns its name. Names that are not
    given are made of the op and the number of the node; random weights are those of the seed."""

    def __init__(self, seed=0):
        self.onnx = _onnx()
        self.random = np.random.default_rng(seed)
        self.nodes, self.inputs, self.outputs, self.arrays = [], [], [], {}

    def input(self, name, shape, dtype=FLOAT):
        self.inputs.append(make_value(name, shape, dtype))
        return name

    def output(self, name, shape, dtype=FLOAT):
        self.outputs.append(make_value(name, shape, dtype))
        return name

    def constant(self, value, name=None):
        """An initializer with this value."""
        name = name or f"constant_{len(self.arrays)}"
        self.arrays[name] = np.asarray(value)
        return name

    def weight(self, *shape, name=None, scale=1.0):
        """An initializer of normal numbers with this deviation, as f32."""
        drawn = self.random.standard_normal(shape) * scale
        return self.constant(drawn.astype(np.float32), name)

    def op(self, kind, *inputs, name=None, outputs=1, **attributes):
        """A node; a list of names where it has several outputs, else the name of its output, which
        `name` sets as well as the node's own."""
        name = name or f"{kind.lower()}_{len(self.nodes)}"
        names = [name] if outputs == 1 else [f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(make_node(kind, inputs, names, name, **attributes))
        return names[0] if outputs == 1 else names

    def model(self, opset=17, ir_version=8, **more):
        """The ModelProto of what was added, as make_model gives it."""
        return make_model(self.nodes, self.inputs, self.outputs, self.arrays, opset,
                          ir_version=ir_version, **more)
