"""branching: If, Loop and Scan, whose bodies read tensors of the graph around them.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import onnx
from onnx import helper

from .evaluate import Rejected
from .graph import dtype_of, number_of
from .spec import op, squash

UNARY = ("Relu", "Tanh", "Sigmoid", "Abs", "Neg", "Softplus", "Sin")


def body(g, nodes, inputs, outputs):
    """A subgraph; inputs and outputs are (name, dtype, rank)."""

    def described(values):
        return [helper.make_tensor_value_info(name, number_of(dtype), [None] * rank)
                for name, dtype, rank in values]

    return helper.make_graph(nodes, g.name("body"), described(inputs), described(outputs))


def steps(g, source, dtype, other=None):
    """A few nodes that turn `source` into something of the same shape; and its name."""
    nodes = []
    for _ in range(g.between(1, 3)):
        result = g.name("b")
        if other is not None and g.chance(0.4):
            nodes.append(helper.make_node(g.choice(["Add", "Sub"]), [source, other], [result]))
        elif g.chance(0.4):
            factor = g.name("b")
            value = onnx.numpy_helper.from_array(
                np.array(g.choice([0.5, -1.5, 0.75]), dtype_of(dtype)))
            nodes.append(helper.make_node("Constant", [], [factor], value=value))
            nodes.append(helper.make_node("Mul", [source, factor], [result]))
        else:
            nodes.append(helper.make_node(g.choice(UNARY), [source], [result]))
        source = result
    return nodes, source


def floating(g, rank=None, where=None):
    return squash(g, g.pick(("float32", "float64"), rank, where), -20, 20)


@op("If", weight=0.7)
def branch(g, name):
    tensor = floating(g)
    found = [t for t in g.tensors.values() if t.dtype == "bool" and t.rank == 0]
    condition = g.choice(found) if found and g.chance(0.6) else g.fresh("bool", [], 0.2)
    branches = []
    for _ in range(2):
        nodes, result = steps(g, tensor.name, tensor.dtype)
        if g.chance(0.3) and tensor.rank:  # a result whose size hangs on the branch
            sliced = g.name("b")
            at = [g.ints([value]).name for value in (0, 1)]
            nodes.append(helper.make_node("Slice", [result, *at], [sliced]))
            result = sliced
        branches.append(body(g, nodes, [], [(result, tensor.dtype, tensor.rank)]))
    g.emit(name, [condition], then_branch=branches[0], else_branch=branches[1])


@op("Loop", weight=0.5)
def loop(g, name):
    tensor = floating(g, range(0, 4))
    trips = np.array(g.between(0 if g.chance(0.2) else 1, 5), np.int64)
    count = g.constant(trips) if g.chance(0.5) else g.input("int64", [], [trips] * g.cases)
    step, going, carried = g.name("b"), g.name("b"), g.name("b")
    nodes, result = steps(g, carried, tensor.dtype, tensor.name if g.chance(0.5) else None)
    still = g.name("b")
    nodes.append(helper.make_node("Identity", [going], [still]))
    outputs = [(still, "bool", 0), (result, tensor.dtype, tensor.rank)]
    has_scan = g.chance(0.6)
    if has_scan:
        more, scanned = steps(g, carried, tensor.dtype)
        nodes += more
        outputs.append((scanned, tensor.dtype, tensor.rank))
    graph = body(g, nodes, [(step, "int64", 0), (going, "bool", 0),
                            (carried, tensor.dtype, tensor.rank)], outputs)
    condition = g.scalar(True, "bool") if g.chance(0.5) else None
    if has_scan and int(trips) == 0:
        raise Rejected("a stack of nothing has no shape")
    g.emit(name, [count, condition, tensor], outputs=2 if has_scan else 1, body=graph)


@op("Scan", weight=0.4)
def scan(g, name):
    tensor = floating(g, range(1, 4), lambda t: 1 <= min(t.dims[0]) and max(t.dims[0]) <= 16)
    state = g.fresh(tensor.dtype, tensor.dims[1:])
    carried, element = g.name("b"), g.name("b")
    nodes, result = steps(g, carried, tensor.dtype, element)
    more, scanned = steps(g, element, tensor.dtype, carried)
    rank = tensor.rank - 1
    graph = body(g, nodes + more, [(carried, tensor.dtype, rank), (element, tensor.dtype, rank)],
                 [(result, tensor.dtype, rank), (scanned, tensor.dtype, rank)])
    g.emit(name, [state, tensor], outputs=2, body=graph, num_scan_inputs=1)
