"""layers: the layers of an ONNX model, and quadratic ones in their place.

SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass

import numpy as np

from ..library import UsageError
from ..training.checkpoint import need

# Of a layer f(x) = W x, with further weights of W's shape:
KINDS = {
    "bilinear": "x' W x, one matrix an output; T1, dense layers only",
    "squared_input": "W (x x); T2",
    "square": "(W x) (W x); T3",
    "product": "(W_a x) (W x); T4",
    "sum": "BN(W_a x) BN(W_b x) + BN(W x): QuadraLib's own",
}
FLOAT = 1  # of TensorProto
BATCH_NORM = ("scale", "bias", "mean", "variance")
EPSILON = 1e-5
# Of the normalisation of W_a x: a layer begins near its linear part, since products of two branches
# that are as large as that make training unsteady (bench/notes/2026-11-25-quadratic.md).
FIRST_SCALE = 0.1
MARK = "quadratic layer "  # begins the doc_string of the nodes of one


@dataclass
class Layer:
    """A node that multiplies by an initializer, and the batch normalisation that alone follows it.
    """

    node: object
    weight: object  # a TensorProto
    norm: object = None

    @property
    def name(self):
        return self.node.name or self.node.output[0]

    @property
    def output(self):
        return (self.norm or self.node).output[0]


def layers_of(model):
    """The convolutions and dense layers of a model whose weights are initializers."""
    weights = {tensor.name: tensor for tensor in model.graph.initializer
               if tensor.data_type == FLOAT}
    readers = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    results = {value.name for value in model.graph.output}
    found = []
    for node in model.graph.node:
        if node.op_type not in ("Conv", "Gemm", "MatMul") or node.input[1] not in weights:
            continue
        if node.op_type != "Conv" and len(weights[node.input[1]].dims) != 2:
            continue  # a stack of matrices
        after = readers.get(node.output[0], [])
        is_normed = (len(after) == 1 and after[0].op_type == "BatchNormalization"
                     and after[0].input[0] == node.output[0] and node.output[0] not in results)
        found.append(Layer(node, weights[node.input[1]], after[0] if is_normed else None))
    return found


class _Converter:
    def __init__(self, model, kind, seed):
        self.onnx = need("onnx", "heddle.quadratic")
        self.model, self.kind = model, kind
        self.random = np.random.default_rng(seed)

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
        if layer.node.op_type == "Conv":
            raise UsageError(f"'{layer.name}' is a convolution: 'bilinear' is for dense layers, "
                             "since it has a matrix of weights for each output")
        rows, columns = self._sizes(layer)
        scale = 1 / rows
        weight = self._initializer(layer, "a.weight", self.random.normal(
            0, scale, (rows, columns * rows)).astype(np.float32))
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
            node.input[0], node.output[0] = x, f"{layer.name}.{part}.normed"
            return node
        count = self._outputs(layer)
        begin = {"scale": FIRST_SCALE if part == "a" else 1, "variance": 1}
        values = [self._initializer(layer, f"{part}.norm.{name}",
                                    np.full(count, begin.get(name, 0), np.float32))
                  for name in BATCH_NORM]
        return self._node("BatchNormalization", [x, *values], layer, f"{part}.normed",
                          epsilon=EPSILON)

    def _linear(self, layer, x, part="linear", weight=None, output=None):
        """The layer's node, on another input or with other weights of their shape."""
        node = self.onnx.NodeProto()
        node.CopyFrom(layer.node)
        node.name = f"{layer.name}.{part}"
        node.input[0], node.output[0] = x, output or node.name
        if weight:
            node.input[1] = weight
            del node.input[2:]  # the linear part has the bias
        return node

    def _node(self, op, inputs, layer, part, output=None, **attributes):
        name = f"{layer.name}.{part}"
        return self.onnx.helper.make_node(op, inputs, [output or name], name, **attributes)

    def _initializer(self, layer, part, array):
        name = f"{layer.name}.{part}"
        self.model.graph.initializer.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def _drawn(self, layer, part):
        """Weights as large as the layer's own."""
        own = self.onnx.numpy_helper.to_array(layer.weight)
        scale = own.std() or 1 / np.sqrt(max(1, own[0].size))
        return self._initializer(layer, f"{part}.weight",
                                 self.random.normal(0, scale, own.shape).astype(own.dtype))

    def _attribute(self, layer, name):
        return next((each.i for each in layer.node.attribute if each.name == name), 0)

    def _sizes(self, layer):
        """Inputs and outputs of a dense layer."""
        rows, columns = layer.weight.dims
        return (columns, rows) if self._attribute(layer, "transB") else (rows, columns)

    def _outputs(self, layer):
        return layer.weight.dims[0] if layer.node.op_type == "Conv" else self._sizes(layer)[1]


def convert(model, kind="sum", layers=None, seed=0):
    """A copy of the model in which layers are quadratic: those named, by default all but the last.
    What is there of weights and normalisations becomes the linear part; further weights are drawn.
    """
    if kind not in KINDS:
        raise UsageError(f"there is no kind of quadratic layer '{kind}'; there are: "
                         + "; ".join(f"{name}, {what}" for name, what in KINDS.items()))
    onnx = need("onnx", "heddle.quadratic")
    made = onnx.ModelProto()
    made.CopyFrom(model)
    found = layers_of(made)
    names = [layer.name for layer in found]
    wanted = names[:-1] if layers is None else list(layers)
    for name in wanted:
        if name not in names:
            raise UsageError(f"the model has no layer '{name}' with weights of its own; it has: "
                             + ", ".join(names))
    converter = _Converter(made, kind, seed)
    for layer in found:
        if layer.name in wanted:
            converter.convert(layer)
    del made.graph.value_info[:]  # of tensors that may be gone
    onnx.checker.check_model(made)
    return made
