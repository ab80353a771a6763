"""removal: layers that are worth little are taken out of a trained network (QuadraLib, section 4).

SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass

import numpy as np

from heddle import UsageError
from heddle.packages import need

from .layers import MARK, convert, layers_of


@dataclass
class Block:
    """The nodes of a layer, first-order or quadratic, with the normalisation that follows it."""

    nodes: list
    input: str
    output: str


@dataclass(frozen=True)
class Indicator:
    """How little a layer is worth: its share of parameters times its share of multiplications, over
    what the accuracy loses without it (RI)."""

    layer: str
    parameters: float
    operations: float
    loss: float

    @property
    def value(self):
        return self.parameters * self.operations / max(self.loss, 1e-4)


@dataclass(frozen=True)
class Removal:
    """A layer that was taken out, and the accuracy after training without it."""

    indicator: Indicator
    accuracy: float


@dataclass
class Built:
    """`removals` were done one after the other; those of `tried` that are not among them lost too
    much."""

    model: object
    accuracy: float
    removals: list
    tried: list


def build(model, train, accuracy, sizes, *, kind="sum", layers=None, tolerance=0.005, seed=0):
    """Makes layers of a model quadratic, trains, and takes out layers, that with the greatest RI
    first. A layer stays if the accuracy without it, after training again, is not within `tolerance`
    of that of all layers.

    train(model)     returns the trained model, an onnx.ModelProto
    accuracy(model)  of a trained model, from 0 to 1
    sizes            shapes of the model's inputs by name
    """
    if not tolerance >= 0:
        raise UsageError(f"`tolerance` is {tolerance!r}, but must be a number of at least 0: how "
                         "much of the accuracy may go")
    made = train(convert(model, kind, layers, seed))
    whole = accuracy(made)
    built, stay = Built(made, whole, [], []), set()
    while True:
        ranked = [each for each in indicators(built.model, accuracy, sizes)
                  if each.layer not in stay]
        if not ranked:
            return built
        made = train(remove(built.model, [ranked[0].layer], sizes))
        tried = Removal(ranked[0], accuracy(made))
        built.tried.append(tried)
        if not tried.accuracy >= whole - tolerance:  # nor one that is no number
            stay.add(tried.indicator.layer)
            continue
        built.model, built.accuracy = made, tried.accuracy
        built.removals.append(tried)


def indicators(model, accuracy, sizes):
    """An Indicator of each layer that can be taken out, the least worth first. `accuracy(model)` is
    asked of the trained model and of those without one of its layers, which are not trained again.
    """
    onnx = need("onnx", "heddle_lab.quadratic", "quadratic")
    blocks, shapes = _blocks_of(model), _shapes_of(onnx, model, sizes)
    work = {name: _work_of(model, block, shapes) for name, block in blocks.items()}
    parameters, operations = (sum(each) or 1 for each in zip(*work.values(), (0, 0)))
    whole = accuracy(model)
    found = [Indicator(name, work[name][0] / parameters, work[name][1] / operations,
                       max(0.0, whole - accuracy(remove(model, [name], sizes))))
             for name, block in blocks.items() if not _why_not(model, block, shapes)]
    return sorted(found, key=lambda each: -each.value)


def remove(model, layers, sizes):
    """A copy of the model without layers, quadratic or not: what reads the result of one reads its
    input, which has to have its shape. `sizes` are shapes of the model's inputs by name."""
    onnx = need("onnx", "heddle_lab.quadratic", "quadratic")
    made = onnx.ModelProto()
    made.CopyFrom(model)
    shapes = _shapes_of(onnx, model, sizes)
    for name in layers:
        blocks = _blocks_of(made)
        if name not in blocks:
            raise UsageError(f"the model has no layer '{name}' with weights of its own; it has: "
                             + ", ".join(blocks))
        block = blocks[name]
        if why := _why_not(made, block, shapes):
            raise UsageError(f"layer '{name}' cannot be taken out: {why}")
        for node in block.nodes:
            made.graph.node.remove(node)
        _replace(made.graph, block.output, block.input)
    used = set(_names_in(made.graph))
    for tensor in list(made.graph.initializer):
        if tensor.name not in used:
            made.graph.initializer.remove(tensor)
    del made.graph.value_info[:]
    onnx.checker.check_model(made)
    return made


def _blocks_of(model):
    """name -> Block."""
    weights = {tensor.name for tensor in model.graph.initializer}
    readers = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    nodes = {}
    for node in model.graph.node:
        if node.doc_string.startswith(MARK):
            nodes.setdefault(node.doc_string[len(MARK):], []).append(node)
    for layer in layers_of(model):
        if not layer.node.doc_string.startswith(MARK):
            nodes[layer.name] = [layer.node]
    blocks = {}
    for name, found in nodes.items():
        last = found[-1].output[0]
        after = readers.get(last, [])
        if len(after) == 1 and after[0].op_type == "BatchNormalization":
            found = [*found, after[0]]
        results = {result for node in found for result in node.output}
        first = next(read for node in found for read in node.input
                     if read not in weights and read not in results)
        blocks[name] = Block(found, first, found[-1].output[0])
    return blocks


def _why_not(model, block, shapes):
    """Why a layer cannot be taken out; "" where it can."""
    before, after = shapes.get(block.input), shapes.get(block.output)
    if block.output in {value.name for value in model.graph.output}:
        return "its result is one of the model"
    if before is None or after is None:
        return "the shapes of its input and of its result are not known"
    if before != after:
        return f"its input is {list(before)}, its result {list(after)}"
    return ""


def _shapes_of(onnx, model, sizes):
    """name -> shape, with the sizes of the inputs; without those that are not known."""
    sized = onnx.ModelProto()
    sized.CopyFrom(model)
    for value in sized.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, sizes.get(value.name, ())):
            dim.dim_value = size
    del sized.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(sized).graph
    shapes = {}
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(dim.dim_value for dim in dims):
            shapes[value.name] = tuple(dim.dim_value for dim in dims)
    return shapes


def _work_of(model, block, shapes):
    """Parameters and multiplications."""
    weights = {tensor.name: int(np.prod(tensor.dims)) for tensor in model.graph.initializer}
    parameters = sum(weights[name] for name in
                     {read for node in block.nodes for read in node.input} & set(weights))
    operations = 0
    for node in block.nodes:
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            result = shapes.get(node.output[0], (1, 1))
            places = result[2:] if node.op_type == "Conv" else result[1:-1]
            operations += weights[node.input[1]] * int(np.prod(places))
    return parameters, operations


def _graphs(graph):
    """A graph and those in its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from _graphs(inner)


def _names_in(graph):
    """Names that the nodes of a graph and of those in it read, and their results."""
    for each in _graphs(graph):
        yield from (name for node in each.node for name in node.input)
        yield from (value.name for value in each.output)


def _replace(graph, old, new):
    for each in _graphs(graph):
        for node in each.node:
            for i, name in enumerate(node.input):
                if name == old:
                    node.input[i] = new
        for value in each.output if each is not graph else ():
            if value.name == old:
                value.name = new
