"""layers: the layers of an ONNX model, and quadratic ones in their place.

SPDX-License-Identifier: Apache-2.0
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from heddle import UsageError
from heddle.onnx_graph import nodes_of
from heddle.packages import need

# Kinds of a layer f(x) = W x, with further weights of W's shape:
KINDS = {
    "bilinear": "x' W x, one matrix an output; T1, dense layers only",
    "squared_input": "W (x x); T2",
    "square": "(W x) (W x); T3",
    "product": "(W_a x) (W x); T4",
    "sum": "BN(W_a x) BN(W_b x) + BN(W x): QuadraLib's own",
}
BATCH_NORM = ("scale", "bias", "mean", "variance")
EPSILON = 1e-5
BILINEAR_OPSET = 13  # ReduceSum and Unsqueeze with axes as inputs
# Initial scales of the normalisations of a sum's factors. With less than 1 the layer begins
# near its linear part, and learns better (bench/notes/2026-11-25-quadratic.md).
SCALES = {"a": 0.1, "b": 0.1}
MARK = "quadratic layer "  # begins the doc_string of the nodes of one


@dataclass
class Layer:
    """A node that multiplies by an initializer, and the batch normalisation that alone follows it.
    """

    name: str
    node: object
    weight: object  # a TensorProto
    norm: object = None
    shares: tuple = ()  # outputs of other nodes that read the weight

    @property
    def output(self):
        return (self.norm or self.node).output[0]


def _layer_types(onnx):
    kinds = onnx.TensorProto
    return (kinds.FLOAT, kinds.DOUBLE, kinds.FLOAT16, kinds.BFLOAT16)


def layers_of(model):
    """The convolutions and dense layers of a model whose weights are initializers. A layer has its
    node's name or, where that is empty or not the only one, its output's."""
    types = _layer_types(need("onnx", "heddle_lab.quadratic", "quadratic"))
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    readers, names = {}, Counter(node.name for node in model.graph.node)
    for node in nodes_of(model.graph):
        for name in node.input:
            readers.setdefault(name, []).append(node)
    results = {value.name for value in model.graph.output}
    found = []
    for node in model.graph.node:
        if node.op_type not in ("Conv", "Gemm", "MatMul") or node.input[1] not in weights:
            continue
        weight = weights[node.input[1]]
        is_dense = node.op_type != "Conv"
        if weight.data_type not in types or (is_dense and len(weight.dims) != 2):
            continue
        after = readers.get(node.output[0], [])
        is_normed = (len(after) == 1 and after[0].op_type == "BatchNormalization"
                     and after[0] in model.graph.node
                     and after[0].input[0] == node.output[0] and node.output[0] not in results)
        found.append(Layer(
            node.name if names[node.name] == 1 and node.name else node.output[0], node, weight,
            after[0] if is_normed else None,
            tuple(other.output[0] for other in readers[weight.name]
                  if other.output[0] != node.output[0])))
    return found


class _Converter:
    def __init__(self, model, kind, seed):
        self.onnx = need("onnx", "heddle_lab.quadratic", "quadratic")
        self.model, self.kind = model, kind
        self.random = np.random.default_rng(seed)
        self.ranks = _ranks(self.onnx, model)
        self.taken = {tensor.name for tensor in model.graph.initializer} | {
            name for node in nodes_of(model.graph) for name in [node.name, *node.output]}

    def refuse(self, layer):
        """Refuses layers that the kind cannot replace."""
        if layer.shares:
            raise UsageError(
                f"'{layer.name}' has the weight '{layer.weight.name}', which '{layer.shares[0]}' "
                "reads, too; a quadratic layer has weights of its own: give each node an "
                "initializer, or leave this layer out of `layers`")
        if self.kind == "bilinear" and layer.node.op_type == "Conv":
            raise UsageError(f"'{layer.name}' is a convolution: 'bilinear' is for dense layers, "
                             "since it has a matrix of weights for each output")
        if self.kind not in ("bilinear", "sum") or layer.node.op_type == "Conv":
            return
        rank = self.ranks.get(layer.node.input[0], 2)
        if rank != 2 or self._attribute(layer, "transA"):
            found = f"of rank {rank}" if rank != 2 else "that is transposed (transA)"
            raise UsageError(
                f"'{layer.name}' multiplies a tensor {found}: '{self.kind}' is for dense layers of "
                "[batch, features]; reshape its input, or take 'product', 'square' or "
                "'squared_input'")
        opset = next((each.version for each in self.model.opset_import if not each.domain), 0)
        if self.kind == "bilinear" and opset < BILINEAR_OPSET:
            raise UsageError(f"the model has opset {opset}, but 'bilinear' needs one of at least "
                             f"{BILINEAR_OPSET}: see onnx.version_converter")

    def convert(self, layer):
        nodes = getattr(self, f"_{self.kind}")(layer, layer.node.input[0])
        place = list(self.model.graph.node).index(layer.node)
        for node in [layer.node] + ([layer.norm] if self.kind == "sum" and layer.norm else []):
            self.model.graph.node.remove(node)
        for offset, node in enumerate(nodes):
            node.doc_string = MARK + layer.name
            self.model.graph.node.insert(place + offset, node)

    # Each gives the nodes of a layer with the input x.

    def _squared_input(self, layer, x):
        squared = self._node("Mul", [x, x], layer, "squares")
        return [squared, self._linear(layer, squared.output[0], output=layer.node.output[0])]

    def _square(self, layer, x):
        linear = self._linear(layer, x, "linear")
        return [linear, self._node("Mul", [linear.output[0]] * 2, layer, "square",
                                   layer.node.output[0])]

    def _product(self, layer, x):
        first = self._linear(layer, x, "a", self._drawn(layer, "a"))
        second = self._linear(layer, x, "linear")
        return [first, second, self._node("Mul", [first.output[0], second.output[0]], layer,
                                          "product", layer.node.output[0])]

    def _bilinear(self, layer, x):
        """x' W x as (x W') x, where W' has the matrices of all outputs side by side."""
        rows, columns = self._sizes(layer)
        weight = self._initializer(layer, "a.weight", self.random.normal(
            0, 1 / rows, (rows, columns * rows)).astype(self._own(layer).dtype))
        split = self._initializer(layer, "sizes", np.array([0, columns, rows], np.int64))
        axis = self._initializer(layer, "axis", np.array([1], np.int64))
        last = self._initializer(layer, "last", np.array([2], np.int64))
        wide = self._node("MatMul", [x, weight], layer, "wide")
        parts = self._node("Reshape", [wide.output[0], split], layer, "parts")
        middle = self._node("Unsqueeze", [x, axis], layer, "middle")
        each = self._node("Mul", [parts.output[0], middle.output[0]], layer, "each")
        total = self._node("ReduceSum", [each.output[0], last], layer, "sum",
                           layer.node.output[0], keepdims=0)
        return [wide, parts, middle, each, total]

    def _sum(self, layer, x):
        nodes, branches = [], []
        for part in ("a", "b", "linear"):
            weight = None if part == "linear" else self._drawn(layer, part)
            linear = self._linear(layer, x, part, weight)
            nodes += [linear, self._normed(layer, part, linear.output[0])]
            branches.append(nodes[-1].output[0])
        product = self._node("Mul", branches[:2], layer, "product")
        return [*nodes, product, self._node("Add", [product.output[0], branches[2]], layer, "sum",
                                            layer.output)]

    def _normed(self, layer, part, x):
        """The linear part keeps the layer's own batch normalisation, where it has one."""
        if part == "linear" and layer.norm:
            node = self.onnx.NodeProto()
            node.CopyFrom(layer.norm)
            node.input[0], node.output[0] = x, self._free(layer, f"{part}.normed")
            return node
        count, kind = self._outputs(layer), self._own(layer).dtype
        scale = SCALES.get(part, 1)
        values = [self._initializer(layer, f"{part}.norm.{name}", np.full(
            count, {"scale": scale, "variance": 1}.get(name, 0), kind)) for name in BATCH_NORM]
        return self._node("BatchNormalization", [x, *values], layer, f"{part}.normed",
                          epsilon=EPSILON)

    def _linear(self, layer, x, part="linear", weight=None, output=None):
        """The layer's node, on another input or with other weights of their shape."""
        node = self.onnx.NodeProto()
        node.CopyFrom(layer.node)
        node.name = self._free(layer, part)
        node.input[0], node.output[0] = x, output or node.name
        if weight:
            node.input[1] = weight
            del node.input[2:]  # the linear part has the bias
        return node

    def _node(self, op, inputs, layer, part, output=None, **attributes):
        name = self._free(layer, part)
        return self.onnx.helper.make_node(op, inputs, [output or name], name, **attributes)

    def _free(self, layer, part):
        """A name that the model has not."""
        name = f"{layer.name}.{part}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def _initializer(self, layer, part, array):
        name = self._free(layer, part)
        self.model.graph.initializer.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def _drawn(self, layer, part):
        """Weights as large as the layer's own."""
        own = self._own(layer)
        scale = own.std() or 1 / np.sqrt(max(1, own[0].size))
        return self._initializer(layer, f"{part}.weight",
                                 self.random.normal(0, scale, own.shape).astype(own.dtype))

    def _own(self, layer):
        return self.onnx.numpy_helper.to_array(layer.weight)

    def _attribute(self, layer, name):
        return next((each.i for each in layer.node.attribute if each.name == name), 0)

    def _sizes(self, layer):
        """Inputs and outputs of a dense layer."""
        rows, columns = layer.weight.dims
        return (columns, rows) if self._attribute(layer, "transB") else (rows, columns)

    def _outputs(self, layer):
        return layer.weight.dims[0] if layer.node.op_type == "Conv" else self._sizes(layer)[1]


def _ranks(onnx, model):
    """tensor -> rank, where it is known."""
    try:
        known = onnx.shape_inference.infer_shapes(model).graph
    except (onnx.shape_inference.InferenceError, ValueError):  # of a model above 2 GiB
        known = model.graph
    return {value.name: len(value.type.tensor_type.shape.dim)
            for value in [*known.value_info, *known.input]
            if value.type.tensor_type.HasField("shape")}


def _wanted(layers, names):
    """The names of `layers`; by default all but the last."""
    if layers is None:
        if len(names) < 2:
            raise UsageError(
                "the model has " + (f"one layer, '{names[0]}', which" if names else "no layer that")
                + " gives its result; `layers` names those to convert, of Conv, Gemm and MatMul "
                "nodes whose weight is an initializer of floating-point numbers")
        return names[:-1]
    if isinstance(layers, str):
        raise UsageError(f"`layers` is '{layers}', but must be a list of names: ['{layers}']")
    layers = list(layers)
    for name in layers:
        if name not in names:
            raise UsageError(f"the model has no layer '{name}' with weights of its own; it has: "
                             + ", ".join(names))
        if layers.count(name) > 1:
            raise UsageError(f"`layers` has '{name}' {layers.count(name)} times; once is allowed")
    return layers


def convert(model, kind="sum", layers=None, seed=0):
    """A copy of the model in which layers are quadratic: those named, by default all but the last.
    Weights and normalisations that are there become the linear part; further weights are drawn.
    A "sum" is near its linear part at first.
    """
    if kind not in KINDS:
        raise UsageError(f"there is no kind of quadratic layer '{kind}'; there are: "
                         + "; ".join(f"{name}, {what}" for name, what in KINDS.items()))
    onnx = need("onnx", "heddle_lab.quadratic", "quadratic")
    if not isinstance(model, onnx.ModelProto):
        raise UsageError(f"the model is of type {type(model).__name__}, but must be an "
                         "onnx.ModelProto: onnx.load(path) reads one")
    made = onnx.ModelProto()
    made.CopyFrom(model)
    found = layers_of(made)
    wanted = _wanted(layers, [layer.name for layer in found])
    converter = _Converter(made, kind, seed)
    chosen = [layer for layer in found if layer.name in wanted]
    for layer in chosen:
        converter.refuse(layer)
    for layer in chosen:
        converter.convert(layer)
    del made.graph.value_info[:]  # of tensors that may be gone
    onnx.checker.check_model(made)
    return made
