"""onnx_reader: an ONNX model as a graph of heddle_lab.go, by ONNX's shape inference.

SPDX-License-Identifier: Apache-2.0
"""

import os

import numpy as np

from heddle import RefusedError, UsageError
from heddle.onnx_graph import nodes_of
from heddle.packages import need

from .graph import Builder

OPS = {
    "matmul": ("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul", "Einsum"),
    "conv": ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv"),
    "pool": ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"),
    "activation": ("Sigmoid", "Tanh", "Exp", "Log", "Erf", "Gelu", "Elu", "Softplus", "Sqrt",
                   "Pow", "Sin", "Cos", "HardSigmoid", "HardSwish", "Mish", "Selu"),
    "elementwise": ("Add", "Sub", "Mul", "Div", "Relu", "LeakyRelu", "Clip", "Neg", "Abs", "Min",
                    "Max", "Where", "Cast", "Equal", "Greater", "Less", "Not", "And", "Or", "Sum",
                    "PRelu", "Floor", "Ceil", "Round", "QuantizeLinear", "DequantizeLinear"),
    "reduce": ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2",
               "ArgMax", "ArgMin"),
    "softmax": ("Softmax", "LogSoftmax"),
    "normalize": ("BatchNormalization", "LayerNormalization", "InstanceNormalization",
                  "GroupNormalization", "RMSNormalization", "LRN"),
    "move": ("Concat", "Split", "Slice", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten",
             "Expand", "Pad", "Identity", "Tile", "Resize", "DepthToSpace", "SpaceToDepth",
             "Dropout"),
    "gather": ("Gather", "GatherElements", "GatherND", "ScatterND", "ScatterElements"),
}
KIND_OF_OP = {op: kind for kind, ops in OPS.items() for op in ops}
PER_ELEMENT = {"elementwise": 1, "activation": 4, "softmax": 5, "normalize": 8, "reduce": 1}


def _loaded(onnx, model):
    if not isinstance(model, (str, os.PathLike)):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        return copy
    path = os.fspath(model)
    if not os.path.exists(path):
        raise UsageError(f"there is no '{path}'")
    try:
        return onnx.load(path, load_external_data=False)
    except Exception as error:  # protobuf's, whose type differs between versions
        raise RefusedError(f"'{path}' is no ONNX model: {error}") from error


class _Reader:
    def __init__(self, onnx, model, sizes):
        self.onnx, self.sizes = onnx, dict(sizes or {})
        for value in model.graph.input:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in self.sizes:
                    dim.dim_value = int(self.sizes[dim.dim_param])
        try:
            self.graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
        except Exception as error:
            raise RefusedError(f"ONNX finds no shapes for the model: {error}") from error
        self.types = {each.name: (tuple(each.dims), each.data_type)
                      for each in self.graph.initializer}
        for each in [*self.graph.input, *self.graph.value_info, *self.graph.output]:
            if each.type.HasField("tensor_type") and each.name not in self.types:
                tensor = each.type.tensor_type
                dims = tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?"
                             for dim in tensor.shape.dim) if tensor.HasField("shape") else None
                self.types[each.name] = dims, tensor.elem_type

    def shape(self, name, node):
        dims, _ = self.types.get(name, (None, 0))
        if dims is None:
            raise RefusedError(f"node '{node}': ONNX finds no shape for '{name}'")
        unknown = [dim for dim in dims if not isinstance(dim, int)]
        if unknown:
            hint = "" if unknown == ["?"] else f"; give it: sizes={{'{unknown[0]}': 1}}"
            raise UsageError(f"node '{node}': the shape of '{name}' is {list(dims)}, but all sizes "
                             f"have to be numbers{hint}")
        return dims

    def byte_count(self, name, node):
        count = int(np.prod(self.shape(name, node), dtype=np.int64))
        kind = self.types[name][1]
        if kind == self.onnx.TensorProto.STRING:
            return 8.0 * count
        return float(count * self.onnx.helper.tensor_dtype_to_np_dtype(kind).itemsize)

    def flops(self, node, kind):
        result = int(np.prod(self.shape(node.output[0], node.name), dtype=np.int64))
        if kind == "matmul":
            left = self.shape(node.input[0], node.name)
            flips = any(each.name == "transA" and each.i for each in node.attribute)
            inner = left[0 if flips else -1] if left else 1
            return 2.0 * result * inner
        if kind == "conv":
            filters = self.shape(node.input[1], node.name)
            if node.op_type == "ConvTranspose":
                image = int(np.prod(self.shape(node.input[0], node.name), dtype=np.int64))
                return 2.0 * image * int(np.prod(filters[1:]))
            return 2.0 * result * int(np.prod(filters[1:]))
        if kind == "pool":
            image = int(np.prod(self.shape(node.input[0], node.name), dtype=np.int64))
            return float(max(image, result))
        if kind == "reduce":
            return float(np.prod(self.shape(node.input[0], node.name), dtype=np.int64))
        return float(PER_ELEMENT.get(kind, 0) * result)

    def read(self):
        graph, builder, number = self.graph, Builder(self.graph.name or "model"), {}
        weights = {each.name for each in graph.initializer}
        for kind, values in (("variable", graph.initializer), ("input", graph.input)):
            for each in values:
                if kind == "input" and each.name in weights:
                    continue
                size = self.byte_count(each.name, each.name)
                number[each.name] = builder.node(kind, (), 0, size, size, name=each.name)
        first = len(builder)
        for node in graph.node:  # inputs follow, since a reader may come before its producer
            node.name = node.name or f"{node.op_type}_{len(builder) - first}"
            kind, outputs = KIND_OF_OP.get(node.op_type, "other"), [o for o in node.output if o]
            if node.op_type == "Constant":
                size = self.byte_count(outputs[0], node.name)
                made = builder.node("variable", (), 0, size, size, name=node.name)
            else:
                made = builder.node(kind, (), self.flops(node, kind),
                                    sum(self.byte_count(name, node.name) for name in outputs),
                                    name=node.name)
            number.update({name: made for name in outputs})
        for place, node in enumerate(graph.node):
            builder.inputs[first + place] = [number[name] for name in self._reads(node, number)]
        builder.colocate_resident()
        return builder.graph()

    @staticmethod
    def _reads(node, number):
        """Tensors that a node reads, those of its inner graphs too."""
        for name in node.input:
            if name and name not in number:
                raise RefusedError(f"node '{node.name}' ({node.op_type}) reads '{name}', which "
                                   "nothing in the model computes")
        inner = [name for attribute in node.attribute
                 for graph in [attribute.g, *attribute.graphs]
                 for each in nodes_of(graph) for name in each.input if name in number]
        return dict.fromkeys([*(name for name in node.input if name), *inner])


def from_onnx(model, sizes=None):
    """The graph of an ONNX model, a path or an onnx.ModelProto. `sizes` gives the sizes that the
    inputs leave open, by symbol: {"batch": 8}."""
    onnx = need("onnx", "heddle_lab.go", "go")
    return _Reader(onnx, _loaded(onnx, model), sizes).read()
