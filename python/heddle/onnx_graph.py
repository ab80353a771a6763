"""onnx_graph: ONNX graphs, read and built.

    graph = Graph(seed=0)
    x = graph.input("x", ["batch", 8])
    y = graph.op("Relu", graph.op("MatMul", x, graph.weight(8, 4)), name="y")
    graph.output(y, ["batch", 4])
    model = graph.model(opset=17)

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from .packages import need

FLOAT, INT64 = 1, 7  # of onnx.TensorProto


def nodes_of(graph):
    """The nodes of a graph and of the graphs in their attributes, each before those in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from nodes_of(inner)


class Graph:
    """A graph as it grows: each method adds something and returns its name. Names that are not
    given are made of the op and the number of the node; random weights are those of the seed."""

    def __init__(self, seed=0):
        self.onnx = need("onnx", "building a graph", "training")
        self.random = np.random.default_rng(seed)
        self.nodes, self.inputs, self.outputs, self.arrays = [], [], [], {}

    def input(self, name, shape, dtype=FLOAT):
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, name, shape, dtype=FLOAT):
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, dtype, shape))
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
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, names, name, **attributes))
        return names[0] if outputs == 1 else names

    def model(self, opset=17, ir_version=8):
        """The ModelProto of what was added."""
        onnx = self.onnx
        weights = [onnx.numpy_helper.from_array(each, name) for name, each in self.arrays.items()]
        graph = onnx.helper.make_graph(self.nodes, "graph", self.inputs, self.outputs, weights)
        return onnx.helper.make_model(graph, ir_version=ir_version,
                                      opset_imports=[onnx.helper.make_opsetid("", opset)])
