"""onnx_graph: what readers of ONNX graphs share. SPDX-License-Identifier: Apache-2.0"""


def nodes_of(graph):
    """The nodes of a graph and of the graphs in their attributes, each before those in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from nodes_of(inner)
